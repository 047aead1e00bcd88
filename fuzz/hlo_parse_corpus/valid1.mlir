func.func @main(%x: tensor<2xcomplex<f32>>) {
  %0 = stablehlo.abs %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  return
}
func.func @f1(%x: tensor<2xf32>) {
  %0 = stablehlo.ceil %x : tensor<2xf32>
  return
}
func.func @f2(%x: tensor<2xi8>) {
  %0 = stablehlo.count_leading_zeros %x : tensor<2xi8>
  return
}
func.func @f3(%x: tensor<2xf32>) {
  %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2xf32>
  return
}
func.func @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.floor %x : tensor<2xf32>
  return
}
func.func @f5(%x: tensor<2xf32>) {
  %0 = stablehlo.log %x : tensor<2xf32>
  return
}
func.func @f6(%x: tensor<2xf32>) {
  %0 = stablehlo.logistic %x : tensor<2xf32>
  return
}
func.func @f7(%x: tensor<0x3xf32>) {
  %0 = stablehlo.negate %x : tensor<0x3xf32> loc("a":1:2)
  return
}
func.func @f8(%x: tensor<2xcomplex<f32>>) {
  %0 = stablehlo.real %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  return
}
func.func @f9(%x: tensor<2xf32>) {
  %0 = stablehlo.round_nearest_even %x : tensor<2xf32>
  return
}
func.func @f10(%x: tensor<2xf32>) {
  %0 = stablehlo.sign %x : tensor<2xf32>
  return
}
func.func @f11(%x: tensor<2xf32>) {
  %0 = stablehlo.sqrt %x : tensor<2xf32>
  return
}
func.func @f12(%x: tensor<2xf32>) {
  %0 = stablehlo.tanh %x : tensor<2xf32>
  return
}
func.func @f13(%x: tensor<i1>, %y: tensor<i1>) {
  %0 = stablehlo.and %x, %y : tensor<i1>
  return
}
func.func @f14(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.divide %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}
func.func @f15(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.minimum %x, %y : tensor<f32>
  return
}
func.func @f16(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.or %x, %y : tensor<i8>
  return
}
func.func @f17(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.remainder %x, %y : tensor<f32>
  return
}
func.func @f18(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.shift_right_arithmetic %x, %y : tensor<i8>
  return
}
func.func @f19(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.subtract %x, %y : tensor<i8>
  return
}
func.func @f20(%a: tensor<f32>, %x: tensor<2xf32>) {
  %0 = stablehlo.clamp %a, %x, %a : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}
func.func @f21(%x: tensor<2xf32>) {
  %0 = stablehlo.is_finite %x : (tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func @f22(%x: tensor<2xf32>) {
  %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2xi32>
  return
}
func.func @f23(%x: tensor<2xf32>, %y: tensor<2xf32>) {
  %0 = stablehlo.complex %x, %y : tensor<2xcomplex<f32>>
  return
}
func.func @f24(%p: tensor<i1>, %x: tensor<2xf32>) {
  %0 = stablehlo.select %p, %x, %x : tensor<i1>, tensor<2xf32>
  return
}
func.func @f25(%t: !stablehlo.token, %u: !stablehlo.token) {
  %0 = stablehlo.after_all %t, %u : !stablehlo.token
  return
}
func.func @f26() {
  %0 = stablehlo.create_token : !stablehlo.token
  return
}
func.func @f27() {
  %0 = stablehlo.partition_id : tensor<ui32>
  return
}
func.func @f28() {
  %0 = stablehlo.tuple : tuple<>
  return
}
func.func @f29(%x: tensor<f32>, %y: tensor<i8>) {
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<f32>, tensor<i8>
  return
}
func.func @f30(%x: tensor<f32>, %y: tensor<i8>) {
  %a, %b = stablehlo.optimization_barrier %x, %y : tensor<f32>, tensor<i8> %c = stablehlo.abs %a : tensor<f32> %d = stablehlo.abs %b#0 : tensor<i8>
  return
}
func.func @f31(%x: tensor<2xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
  return
}
func.func @f32(%x: tensor<2xf32>) {
  %0 = stablehlo.broadcast %x, sizes = [3, 4] : (tensor<2xf32>) -> tensor<3x4x2xf32>
  return
}
func.func @f33(%x: tensor<2x3xf32>) {
  %0 = stablehlo.reverse %x, dims = [1, 0] : tensor<2x3xf32>
  return
}
func.func @f34(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  return
}
func.func @f35(%x: tensor<4x8xf32>) {
  %0 = stablehlo.slice %x [0:2, 1:8:3] : (tensor<4x8xf32>) -> tensor<2x3xf32>
  return
}
func.func @f36(%x: tensor<4xf32>) {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  return
}
func.func @f37(%x: tensor<2x2xf32>) {
  %0 = stablehlo.cholesky %x, lower = true : tensor<2x2xf32>
  return
}
func.func @f38(%x: tensor<8xf32>) {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  return
}
func.func @f39(%x: tensor<2x3xf32>) {
  %0 = stablehlo.unary_einsum %x, config = "ab->a" : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}
func.func @f40(%s: tensor<2xui64>) {
  %a, %b = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<9xui32>)
  return
}
func.func @f41(%x: tensor<5x2x3xf32>, %y: tensor<5x3x4xf32>) {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  return
}
func.func @f42() {
  %0 = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  return
}
func.func @f43() {
  %0 = stablehlo.constant dense<[1, 0]> : tensor<2xi1>
  return
}
func.func @f44(%x: tensor<2xf32>) {
  %0 = stablehlo.compare LT, %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func @f45(%x: tensor<f32>) {
  %0:2 = stablehlo.custom_call @"a b"(%x, %x) {backend_config = "\22\0A", has_side_effect = true} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return
}
func.func @f46(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32>
  return
}
func.func @f47(%x: tensor<2x3xf32>, %z: tensor<f32>) {
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] {mhlo.a} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> loc("b":3:4)
  return
}
func.func @f48(%i: tensor<i32>, %x: tensor<f32>) {
  %0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<f32> attributes {mhlo.a} cond { %1 = stablehlo.compare LT, %a, %i : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %1 : tensor<i1> } do { %1 = stablehlo.add %a, %i : tensor<i32> stablehlo.return %1, %x : tensor<i32>, tensor<f32> }
  return
}
func.func @f49(%x: tensor<2xf32>) {
  %0 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
  return
}
func.func @f50(%x: tensor<5x3xi16>) {
  %values, %indices = chlo.top_k(%x, k = 2) : tensor<5x3xi16> -> (tensor<5x2xi16>, tensor<5x2xi32>)
  return
}
func.func @f51(%x: tensor<2xf32>) {
  %0 = chlo.broadcast_compare %x, %x {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
