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
// ==== all: a composite of chlo.top_k is the sort that the operation becomes
func.func @main(%x: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %0:2 = stablehlo.composite "chlo.top_k" %x {composite_attributes = {k = 2 : i64}, decomposition = @chlo.top_k.impl, version = 1 : i32} : (tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return %0#0, %0#1 : tensor<3x2xf32>, tensor<3x2xi32>
}
func.func private @chlo.top_k.impl(%x: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %0 = stablehlo.iota dim = 1 : tensor<3x8xi32>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %4 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<3x8xf32>, tensor<3x8xi32>) -> (tensor<3x8xf32>, tensor<3x8xi32>)
  %2 = stablehlo.slice %1#0 [0:3, 0:2] : (tensor<3x8xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.slice %1#1 [0:3, 0:2] : (tensor<3x8xi32>) -> tensor<3x2xi32>
  return %2, %3 : tensor<3x2xf32>, tensor<3x2xi32>
}
// ->
func.func @main(%x: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %0 = stablehlo.iota dim = 1 : tensor<3x8xi32>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %4 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<3x8xf32>, tensor<3x8xi32>) -> (tensor<3x8xf32>, tensor<3x8xi32>)
  %2 = stablehlo.slice %1#0 [0:3, 0:2] : (tensor<3x8xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.slice %1#1 [0:3, 0:2] : (tensor<3x8xi32>) -> tensor<3x2xi32>
  return %2, %3 : tensor<3x2xf32>, tensor<3x2xi32>
}
