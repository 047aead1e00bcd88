// ==== all: what a framework writes for a mean over a row
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = func.call @mean(%x) : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
func.func private @mean(%x: tensor<2x4xf32>) -> tensor<2x1xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
  %2 = stablehlo.constant dense<4.0> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
  %4 = stablehlo.divide %1, %3 : tensor<2x1xf32>
  return %4 : tensor<2x1xf32>
}
// ->
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
  %q = stablehlo.constant dense<0.25> : tensor<2xf32>
  %1 = stablehlo.multiply %0, %q : tensor<2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}
// ==== all: nothing to do
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.sine %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.sine %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
