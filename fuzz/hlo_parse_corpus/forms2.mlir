module @m attributes {a.b = 1 : i32} {
func.func public @main(%x: tensor<2xf32>) {
  %0 = stablehlo.cbrt %x : tensor<2xf32>
  return
}
func.func private @f1(%x: tensor<2xf32>) {
  %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2xf32>
  return
}
func.func public @f2(%x: tensor<2xf32>) {
  %0 = stablehlo.log_plus_one %x : tensor<2xf32>
  return
}
func.func private @f3(%x: tensor<2xcomplex<f32>>) {
  %0 = stablehlo.real %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  return
}
func.func public @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.sine %x : tensor<2xf32>
  return
}
func.func private @f5(%x: tensor<2x!quant.uniform<i8<-8:7>:f32:0, {0.5, 0.25:3}>>) {
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<i8<-8:7>:f32:0, {0.5, 0.25:3}>>) -> tensor<2xf32>
  return
}
func.func public @f6(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.maximum %x, %y : tensor<f32>
  return
}
func.func private @f7(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.remainder %x, %y : tensor<f32>
  return
}
func.func public @f8(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.xor %x, %y : tensor<i8>
  return
}
func.func private @f9(%x: tensor<2xf32>) {
  %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2xi32>
  return
}
func.func public @f10(%x: tensor<2xf32>, %y: tensor<2xf32>) {
  %0 = stablehlo.complex %x, %y : tensor<2xcomplex<f32>>
  return
}
func.func private @f11() {
  %0 = stablehlo.after_all : !stablehlo.token
  return
}
func.func public @f12() {
  %0 = stablehlo.tuple : tuple<>
  return
}
func.func private @f13() {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  return
}
func.func public @f14(%x: tensor<2xf32>) {
  %0 = stablehlo.broadcast %x, sizes = [3, 4] : (tensor<2xf32>) -> tensor<3x4x2xf32>
  return
}
func.func private @f15(%x: tensor<4xf32>, %p: tensor<f32>) {
  %0 = stablehlo.pad %x, %p, low = [-1], high = [2], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  return
}
func.func public @f16(%x: tensor<2xf32>) {
  %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<2xf32>
  return
}
func.func private @f17(%x: tensor<2x3xf32>) {
  %0 = stablehlo.unary_einsum %x, config = "ab->a" : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}
func.func public @f18(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}
func.func private @f19() {
  %0 = stablehlo.constant() {value = dense<1> : tensor<i8>} : () -> tensor<i8>
  return
}
func.func public @f20(%x: tensor<f32>) {
  %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>
  return
}
func.func private @f21(%x: tensor<2x3xf32>, %k: tensor<3x4xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f]x[i, o]->[b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
func.func public @f22(%x: tensor<f32>) {
  func.return %x : tensor<f32>
}
func.func private @f23(%x: tensor<2xf32>) {
  %0 = chlo.broadcast_compare %x, %x {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func public @f24(%x: tensor<2xf32>) {
  check.expect_almost_eq_const %x, dense<1.0> : tensor<2xf32> {tolerance = 0.1 : f64}
  return
}
}
