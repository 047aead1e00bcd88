// ==== cse: the same operation on the same operands
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.exponential %x : tensor<2xf32>
  %1 = stablehlo.exponential %x : tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.exponential %x : tensor<2xf32>
  %2 = stablehlo.add %0, %0 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
// ==== cse: other attributes, other operations
func.func @main(%x: tensor<2xf32>) -> (tensor<2xi1>, tensor<2xi1>) {
  %c = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.compare LT, %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %1 = stablehlo.compare LE, %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %0, %1 : tensor<2xi1>, tensor<2xi1>
}
// -> same
// ==== cse: 0 and -0 are different literals
func.func @main() -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<-0.0> : tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
// -> same
// ==== cse: reductions with equal bodies
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = stablehlo.add %0, %1 : tensor<2xf32>
  %4 = stablehlo.add %3, %2 : tensor<2xf32>
  return %4 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = stablehlo.add %0, %0 : tensor<2xf32>
  %4 = stablehlo.add %3, %2 : tensor<2xf32>
  return %4 : tensor<2xf32>
}
// ==== cse: from outside into a branch, but not between branches
func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.sine %x : tensor<f32>
    %3 = stablehlo.cosine %x : tensor<f32>
    %4 = stablehlo.add %2, %3 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }, {
    %3 = stablehlo.cosine %x : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %5 = stablehlo.cosine %x : tensor<f32>
  %6 = stablehlo.add %1, %0 : tensor<f32>
  %7 = stablehlo.add %6, %5 : tensor<f32>
  return %7 : tensor<f32>
}
// ->
func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = "stablehlo.if"(%p) ({
    %3 = stablehlo.cosine %x : tensor<f32>
    %4 = stablehlo.add %0, %3 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }, {
    %3 = stablehlo.cosine %x : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %5 = stablehlo.cosine %x : tensor<f32>
  %6 = stablehlo.add %1, %0 : tensor<f32>
  %7 = stablehlo.add %6, %5 : tensor<f32>
  return %7 : tensor<f32>
}
// ==== cse: constants stay in their block, a reduction's body stays closed
func.func @main(%x: tensor<3xf32>) -> tensor<f32> {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %s = stablehlo.sqrt %c : tensor<f32>
  %0 = "stablehlo.reduce"(%x, %s) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.constant dense<2.0> : tensor<f32>
    %2 = stablehlo.sqrt %1 : tensor<f32>
    %3 = stablehlo.minimum %a, %2 : tensor<f32>
    %4 = stablehlo.minimum %3, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -> same
// ==== dce: what nothing uses goes, with what only it used
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  %3 = stablehlo.compare LT, %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %2 = "stablehlo.if"(%3) ({
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %x : tensor<f32>
}
// ->
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
