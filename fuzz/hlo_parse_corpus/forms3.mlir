module @m attributes {a.b = 1 : i32} {
func.func public @main(%x: tensor<2xf32>) {
  %0 = stablehlo.ceil %x : tensor<2xf32>
  return
}
func.func private @f1(%x: tensor<2xf32>) {
  %0 = stablehlo.exponential_minus_one %x {mhlo.a = "}"} : tensor<2xf32>
  return
}
func.func public @f2(%x: tensor<2xf32>) {
  %0 = stablehlo.logistic %x : tensor<2xf32>
  return
}
func.func private @f3(%x: tensor<2xf32>) {
  %0 = stablehlo.round_nearest_afz %x : tensor<2xf32>
  return
}
func.func public @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.sqrt %x : tensor<2xf32>
  return
}
func.func private @f5(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return
}
func.func public @f6(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.minimum %x, %y : tensor<f32>
  return
}
func.func private @f7(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.shift_left %x, %y : tensor<i8>
  return
}
func.func public @f8(%a: tensor<f32>, %x: tensor<2xf32>) {
  %0 = stablehlo.clamp %a, %x, %a : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}
func.func private @f9(%x: tensor<2xf32>, %s: tensor<2xi32>) {
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<2xf32>, tensor<2xi32>) -> tensor<?x1xf32>
  return
}
func.func public @f10(%x: tensor<2xf64>, %y: tensor<2xf64>) {
  %0 = stablehlo.complex %x, %y : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xcomplex<f64>>
  return
}
func.func private @f11() {
  %0 = stablehlo.create_token : !stablehlo.token
  return
}
func.func public @f12(%t: tuple<tensor<f32>, tensor<i8>>) {
  %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<i8>>) -> tensor<i8>
  return
}
func.func private @f13(%s: tensor<1xi32>) {
  %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return
}
func.func public @f14(%x: tensor<2x3xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
func.func private @f15(%x: tensor<4x8xf32>) {
  %0 = stablehlo.slice %x [0:2, 1:8:3] : (tensor<4x8xf32>) -> tensor<2x3xf32>
  return
}
func.func public @f16(%x: tensor<2x2xf32>) {
  %0 = stablehlo.cholesky %x, lower = true : tensor<2x2xf32>
  return
}
func.func private @f17(%a: tensor<f32>, %s: tensor<1xi64>) {
  %0 = stablehlo.rng %a, %a, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<7xf32>
  return
}
func.func public @f18() {
  %0 = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  return
}
func.func private @f19(%x: tensor<2xf32>) {
  %0 = stablehlo.compare LT, %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func public @f20(%x: tensor<f32>) {
  func.call @main(%x) {mhlo.a} : (tensor<f32>) -> ()
  return
}
func.func private @f21(%x: tensor<2x3xf32>, %z: tensor<f32>) {
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] {mhlo.a} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> loc("b":3:4)
  return
}
func.func public @f22(%x: tensor<2xf32>) {
  %0 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
  return
}
func.func private @f23() {
  %0 = chlo.constant dense<1> : tensor<2xi8>
  return
}
func.func public @f24(%x: tensor<2xf32>) {
  check.expect_close %x, %x, max_ulp_difference = 3, min_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
  return
}
}
