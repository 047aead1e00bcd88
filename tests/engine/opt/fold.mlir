// ==== fold: operations on literals
func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.constant dense<[3.0, -4.0]> : tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  %3 = stablehlo.abs %2 : tensor<2xf32>
  return %3 : tensor<2xf32>
}
// ->
func.func @main() -> tensor<2xf32> {
  %3 = stablehlo.constant dense<[4.0, 2.0]> : tensor<2xf32>
  return %3 : tensor<2xf32>
}
// ==== fold: a reduction
func.func @main() -> tensor<i32> {
  %0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %c = stablehlo.constant dense<10> : tensor<i32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
  return %1 : tensor<i32>
}
// ->
func.func @main() -> tensor<i32> {
  %c = stablehlo.constant dense<16> : tensor<i32>
  return %c : tensor<i32>
}
// ==== fold: what is the same everywhere is computed once, however large
func.func @main() -> tensor<f32> {
  %0 = stablehlo.constant dense<2.0> : tensor<100000x1000xf32>
  %1 = stablehlo.sqrt %0 : tensor<100000x1000xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<100000x1000xf32>
  %i = stablehlo.constant dense<7> : tensor<i32>
  %3 = stablehlo.dynamic_slice %2, %i, %i, sizes = [1, 1] : (tensor<100000x1000xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x1xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
// ->
func.func @main() -> tensor<f32> {
  %2 = stablehlo.constant dense<0x3FFFFFFF> : tensor<100000x1000xf32>
  %i = stablehlo.constant dense<7> : tensor<i32>
  %3 = stablehlo.dynamic_slice %2, %i, %i, sizes = [1, 1] : (tensor<100000x1000xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x1xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
// ==== fold: iotas and broadcasts are not written out
func.func @main() -> (tensor<3xi32>, tensor<3x2xi32>) {
  %0 = stablehlo.iota dim = 0 : tensor<3xi32>
  %1 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<3xi32>) -> tensor<3x2xi32>
  %3 = stablehlo.add %0, %1 : tensor<3xi32>
  return %3, %2 : tensor<3xi32>, tensor<3x2xi32>
}
// -> same
// ==== fold: a large result of small operands stays
func.func @main() -> tensor<200x200xi32> {
  %0 = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.pad %0, %c, low = [0, 0], high = [198, 199], interior = [0, 0] : (tensor<2x1xi32>, tensor<i32>) -> tensor<200x200xi32>
  return %1 : tensor<200x200xi32>
}
// -> same
// ==== fold: loops are left alone
func.func @main() -> tensor<i32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.while(%i = %c) : tensor<i32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.add %i, %i : tensor<i32>
      %2 = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %1, %2 : tensor<i32>
      stablehlo.return %3 : tensor<i32>
    }
  return %0 : tensor<i32>
}
// -> same
// ==== fold: what has no elements is a literal, and so is its sum
func.func @main(%x: tensor<7xi8>, %k: tensor<i32>) -> (tensor<i8>, tensor<0x2xi8>) {
  %0 = stablehlo.slice %x [0:0] : (tensor<7xi8>) -> tensor<0xi8>
  %1 = stablehlo.remainder %0, %0 : tensor<0xi8>
  %2 = stablehlo.reshape %1 : (tensor<0xi8>) -> tensor<0x2xi8>
  %c = stablehlo.constant dense<5> : tensor<i8>
  %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<0x2xi8>, tensor<i8>) -> tensor<i8>
  return %3, %2 : tensor<i8>, tensor<0x2xi8>
}
// ->
func.func @main(%x: tensor<7xi8>, %k: tensor<i32>) -> (tensor<i8>, tensor<0x2xi8>) {
  %2 = stablehlo.constant dense<> : tensor<0x2xi8>
  %3 = stablehlo.constant dense<5> : tensor<i8>
  return %3, %2 : tensor<i8>, tensor<0x2xi8>
}
