module @m attributes {a.b = 1 : i32} {
func.func public @main(%x: tensor<2xcomplex<f32>>) {
  %0 = stablehlo.abs %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  return
}
func.func private @f1(%x: tensor<2xf32>) {
  %0 = stablehlo.cosine %x : tensor<2xf32>
  return
}
func.func public @f2(%x: tensor<2xf32>) {
  %0 = stablehlo.log %x : tensor<2xf32>
  return
}
func.func private @f3(%x: tensor<2xi8>) {
  %0 = stablehlo.popcnt %x : tensor<2xi8>
  return
}
func.func public @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.sign %x : tensor<2xf32>
  return
}
func.func private @f5(%x: tensor<2xf32>) {
  %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.5:-1>>
  return
}
func.func public @f6(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.divide %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}
func.func private @f7(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.power %x, %y : tensor<f32>
  return
}
func.func public @f8(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.subtract %x, %y : tensor<i8>
  return
}
func.func private @f9(%x: tensor<2xf32>) {
  %0 = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<2x1xf32>
  return
}
func.func public @f10(%x: tensor<4xf32>, %i: tensor<1xi32>) {
  %0 = stablehlo.real_dynamic_slice %x, %i, %i, %i : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return
}
func.func private @f11(%t: !stablehlo.token, %u: !stablehlo.token) {
  %0 = stablehlo.after_all %t, %u : !stablehlo.token
  return
}
func.func public @f12(%x: tensor<f32>, %y: tensor<i8>) {
  %0 = stablehlo.tuple %x, %y : tuple<tensor<f32>, tensor<i8>>
  return
}
func.func private @f13(%x: tensor<f32>, %y: tensor<i8>) {
  %a, %b = stablehlo.optimization_barrier %x, %y : tensor<f32>, tensor<i8> %c = stablehlo.abs %a : tensor<f32> %d = stablehlo.abs %b#0 : tensor<i8>
  return
}
func.func public @f14(%x: tensor<2xf32>, %s: tensor<2xi64>) {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] {known_expanding_dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  return
}
func.func private @f15(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  return
}
func.func public @f16(%x: tensor<4xf32>, %n: tensor<i32>) {
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  return
}
func.func private @f17(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  %0 = stablehlo.einsum %x, %y, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
func.func public @f18(%x: tensor<5x2x3xf32>, %y: tensor<5x3x4xf32>) {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  return
}
func.func private @f19() {
  %0 = stablehlo.constant() <{value = dense<1> : tensor<i8>}> : () -> tensor<!quant.uniform<i8:f32, 0.5>>
  return
}
func.func public @f20() {
  stablehlo.custom_call @f() : () -> ()
  return
}
func.func private @f21(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32>
  return
}
func.func public @f22(%p: tensor<i1>) {
  stablehlo.while() cond { stablehlo.return %p : tensor<i1> } do { stablehlo.return }
  return
}
func.func private @f23(%x: tensor<2xf32>, %y: tensor<f32>) {
  %0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64>} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}
func.func public @f24(%x: tensor<2xf32>) {
  check.expect_almost_eq %x, %x, tolerance = 1.0e-3 : tensor<2xf32>
  return
}
func.func private @f25() {
  %0 = constant @main : () -> ()
  return
}
}
