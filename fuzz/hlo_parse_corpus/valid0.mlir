func.func @main(%x: tensor<2xf32>) {
  %0 = stablehlo.abs %x : tensor<2xf32>
  return
}
func.func @f1(%x: tensor<2xf32>) {
  %0 = stablehlo.cbrt %x : tensor<2xf32>
  return
}
func.func @f2(%x: tensor<2xf32>) {
  %0 = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi8>
  return
}
func.func @f3(%x: tensor<2xf32>) {
  %0 = stablehlo.cosine %x : tensor<2xf32>
  return
}
func.func @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.exponential_minus_one %x {mhlo.a = "}"} : tensor<2xf32>
  return
}
func.func @f5(%x: tensor<2xcomplex<f64>>) {
  %0 = stablehlo.imag %x : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  return
}
func.func @f6(%x: tensor<2xf32>) {
  %0 = stablehlo.log_plus_one %x : tensor<2xf32>
  return
}
func.func @f7(%x: tensor<2xi1>) {
  %0 = stablehlo.not %x : tensor<2xi1>
  return
}
func.func @f8(%x: tensor<2xi8>) {
  %0 = stablehlo.popcnt %x : tensor<2xi8>
  return
}
func.func @f9(%x: tensor<2xf32>) {
  %0 = stablehlo.round_nearest_afz %x : tensor<2xf32>
  return
}
func.func @f10(%x: tensor<2xf32>) {
  %0 = stablehlo.rsqrt %x : tensor<2xf32>
  return
}
func.func @f11(%x: tensor<2xf32>) {
  %0 = stablehlo.sine %x : tensor<2xf32>
  return
}
func.func @f12(%x: tensor<2xf32>) {
  %0 = stablehlo.tan %x : tensor<2xf32>
  return
}
func.func @f13(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return
}
func.func @f14(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.atan2 %x, %y : tensor<f32>
  return
}
func.func @f15(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.maximum %x, %y : tensor<f32>
  return
}
func.func @f16(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.multiply %x, %y : tensor<f32>
  return
}
func.func @f17(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.power %x, %y : tensor<f32>
  return
}
func.func @f18(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.shift_left %x, %y : tensor<i8>
  return
}
func.func @f19(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.shift_right_logical %x, %y : tensor<i8>
  return
}
func.func @f20(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.xor %x, %y : tensor<i8>
  return
}
func.func @f21(%x: tensor<2xf32>) {
  %0 = stablehlo.clamp %x, %x, %x : tensor<2xf32>
  return
}
func.func @f22(%x: tensor<2xf32>) {
  %0 = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<2x1xf32>
  return
}
func.func @f23(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return
}
func.func @f24(%x: tensor<2xf64>, %y: tensor<2xf64>) {
  %0 = stablehlo.complex %x, %y : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xcomplex<f64>>
  return
}
func.func @f25(%p: tensor<i1>, %x: tensor<2xf32>) {
  %0 = stablehlo.select %p, %x, %x : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}
func.func @f26() {
  %0 = stablehlo.after_all : !stablehlo.token
  return
}
func.func @f27() {
  %0 = stablehlo.replica_id : tensor<ui32>
  return
}
func.func @f28(%x: tensor<f32>, %y: tensor<i8>) {
  %0 = stablehlo.tuple %x, %y : tuple<tensor<f32>, tensor<i8>>
  return
}
func.func @f29(%t: tuple<tensor<f32>, tensor<i8>>) {
  %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<i8>>) -> tensor<i8>
  return
}
func.func @f30() {
  stablehlo.optimization_barrier()
  return
}
func.func @f31() {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  return
}
func.func @f32(%x: tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
  return
}
func.func @f33(%x: tensor<2x3xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
func.func @f34(%x: tensor<2xf32>, %y: tensor<1xf32>) {
  %0 = stablehlo.concatenate %x, %y, %x, dim = 0 : (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<5xf32>
  return
}
func.func @f35(%x: tensor<4xf32>, %p: tensor<f32>) {
  %0 = stablehlo.pad %x, %p, low = [-1], high = [2], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  return
}
func.func @f36(%x: tensor<f32>) {
  %0 = stablehlo.slice %x [] : (tensor<f32>) -> tensor<f32>
  return
}
func.func @f37(%x: tensor<2xf32>) {
  %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<2xf32>
  return
}
func.func @f38(%x: tensor<2x2xf32>) {
  %0 = stablehlo.cholesky %x : tensor<2x2xf32>
  return
}
func.func @f39(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  %0 = stablehlo.einsum %x, %y, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
func.func @f40(%a: tensor<f32>, %s: tensor<1xi64>) {
  %0 = stablehlo.rng %a, %a, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<7xf32>
  return
}
func.func @f41(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  %0 = stablehlo.dot %x, %y, precision = [DEFAULT, HIGHEST] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
func.func @f42(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}
func.func @f43() {
  %0 = stablehlo.constant {mhlo.frontend = 1 : i32} dense<"0x0000803F"> : tensor<2xf32>
  return
}
func.func @f44() {
  %0 = stablehlo.constant() {value = dense<1> : tensor<i8>} : () -> tensor<i8>
  return
}
func.func @f45(%x: tensor<2xf32>) {
  %0 = stablehlo.compare  GE, %x, %x,  TOTALORDER : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func @f46() {
  stablehlo.custom_call @f() : () -> ()
  return
}
func.func @f47(%x: tensor<2x3xf32>, %k: tensor<3x4xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f]x[i, o]->[b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
func.func @f48(%x: tensor<2xf32>, %y: tensor<2xi32>, %z: tensor<f32>, %w: tensor<i32>) {
  %0:2 = stablehlo.reduce(%x init: %z), (%y init: %w) across dimensions = [0] : (tensor<2xf32>, tensor<2xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>) reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32> loc(unknown), %d: tensor<i32>) { %1 = stablehlo.add %a, %c : tensor<f32> %2 = stablehlo.subtract %d, %b : tensor<i32> stablehlo.return %1, %2 : tensor<f32>, tensor<i32> }
  return
}
func.func @f49(%p: tensor<i1>) {
  stablehlo.while() cond { stablehlo.return %p : tensor<i1> } do { stablehlo.return }
  return
}
func.func @f50(%x: tensor<2xf32>) {
  %0 = chlo.next_after %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return
}
func.func @f51(%x: tensor<2xf32>, %y: tensor<f32>) {
  %0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64>} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}
func.func @f52() {
  %0 = chlo.constant dense<1> : tensor<2xi8>
  return
}
