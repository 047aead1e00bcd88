// ==== short_rows: a sum over a short last dimension and others
func.func @main(%x: tensor<2x20x6x8x4xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [1, 2, 4] : (tensor<2x20x6x8x4xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
// ->
func.func @main(%x: tensor<2x20x6x8x4xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x20x6x8x4xf32>, tensor<f32>) -> tensor<2x8x4xf32>
  %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x4xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}
// ==== short_rows: a maximum from any value, over the last two dimensions
func.func @main(%x: tensor<40x20x2x3xi32>, %i: tensor<i32>) -> tensor<20xi32> {
  %1 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0, 2, 3] : (tensor<40x20x2x3xi32>, tensor<i32>) -> tensor<20xi32>
  return %1 : tensor<20xi32>
}
// ->
func.func @main(%x: tensor<40x20x2x3xi32>, %i: tensor<i32>) -> tensor<20xi32> {
  %1 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0] : (tensor<40x20x2x3xi32>, tensor<i32>) -> tensor<20x2x3xi32>
  %2 = stablehlo.reduce(%1 init: %i) applies stablehlo.maximum across dimensions = [1, 2] : (tensor<20x2x3xi32>, tensor<i32>) -> tensor<20xi32>
  return %2 : tensor<20xi32>
}
// ==== short_rows: sums that stay: from 1, of bf16, of a long row, of few rows
func.func @main(%x: tensor<40x20x4xf32>, %b: tensor<40x20x4xbf16>, %l: tensor<40x20x16xf32>, %f: tensor<8x200x4xf32>) -> (tensor<20xf32>, tensor<20xbf16>, tensor<20xf32>, tensor<200xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<1.0> : tensor<f32>
  %2 = stablehlo.constant dense<0.0> : tensor<bf16>
  %3 = stablehlo.reduce(%x init: %1) applies stablehlo.add across dimensions = [0, 2] : (tensor<40x20x4xf32>, tensor<f32>) -> tensor<20xf32>
  %4 = stablehlo.reduce(%b init: %2) applies stablehlo.add across dimensions = [0, 2] : (tensor<40x20x4xbf16>, tensor<bf16>) -> tensor<20xbf16>
  %5 = stablehlo.reduce(%l init: %0) applies stablehlo.add across dimensions = [0, 2] : (tensor<40x20x16xf32>, tensor<f32>) -> tensor<20xf32>
  %6 = stablehlo.reduce(%f init: %0) applies stablehlo.add across dimensions = [0, 2] : (tensor<8x200x4xf32>, tensor<f32>) -> tensor<200xf32>
  return %3, %4, %5, %6 : tensor<20xf32>, tensor<20xbf16>, tensor<20xf32>, tensor<200xf32>
}
// -> same
// ==== short_rows: a broadcast along a short last dimension and others
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x20x6x8x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 3] : (tensor<2x8xf32>) -> tensor<2x20x6x8x4xf32>
  return %0 : tensor<2x20x6x8x4xf32>
}
// ->
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x20x6x8x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x4xf32>
  %1 = stablehlo.optimization_barrier %0 : tensor<2x8x4xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 3, 4] : (tensor<2x8x4xf32>) -> tensor<2x20x6x8x4xf32>
  return %2 : tensor<2x20x6x8x4xf32>
}
// ==== short_rows: broadcasts that stay: of one row, along a long one, into few, turned
func.func @main(%x: tensor<1000xf32>, %y: tensor<8xf32>, %z: tensor<20x80xf32>) -> (tensor<1000x4xf32>, tensor<40x8x16xf32>, tensor<40x8x2xf32>, tensor<30x80x20x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1000xf32>) -> tensor<1000x4xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8xf32>) -> tensor<40x8x16xf32>
  %2 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8xf32>) -> tensor<40x8x2xf32>
  %3 = stablehlo.broadcast_in_dim %z, dims = [2, 1] : (tensor<20x80xf32>) -> tensor<30x80x20x4xf32>
  return %0, %1, %2, %3 : tensor<1000x4xf32>, tensor<40x8x16xf32>, tensor<40x8x2xf32>, tensor<30x80x20x4xf32>
}
// -> same
