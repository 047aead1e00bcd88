module @m attributes {a.b = 1 : i32} {
func.func public @main(%x: tensor<2xf32>) {
  %0 = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi8>
  return
}
func.func private @f1(%x: tensor<2xf32>) {
  %0 = stablehlo.floor %x : tensor<2xf32>
  return
}
func.func public @f2(%x: tensor<2xi1>) {
  %0 = stablehlo.not %x : tensor<2xi1>
  return
}
func.func private @f3(%x: tensor<2xf32>) {
  %0 = stablehlo.round_nearest_even %x : tensor<2xf32>
  return
}
func.func public @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.tan %x : tensor<2xf32>
  return
}
func.func private @f5(%x: tensor<i1>, %y: tensor<i1>) {
  %0 = stablehlo.and %x, %y : tensor<i1>
  return
}
func.func public @f6(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.multiply %x, %y : tensor<f32>
  return
}
func.func private @f7(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.shift_right_arithmetic %x, %y : tensor<i8>
  return
}
func.func public @f8(%x: tensor<2xf32>) {
  %0 = stablehlo.clamp %x, %x, %x : tensor<2xf32>
  return
}
func.func private @f9(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return
}
func.func public @f10(%p: tensor<i1>, %x: tensor<2xf32>) {
  %0 = stablehlo.select %p, %x, %x : tensor<i1>, tensor<2xf32>
  return
}
func.func private @f11() {
  %0 = stablehlo.replica_id : tensor<ui32>
  return
}
func.func public @f12(%x: tensor<f32>, %y: tensor<i8>) {
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<f32>, tensor<i8>
  return
}
func.func private @f13(%x: tensor<2xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
  return
}
func.func public @f14(%x: tensor<2x3xf32>) {
  %0 = stablehlo.reverse %x, dims = [1, 0] : tensor<2x3xf32>
  return
}
func.func private @f15(%x: tensor<f32>) {
  %0 = stablehlo.slice %x [] : (tensor<f32>) -> tensor<f32>
  return
}
func.func public @f16(%x: tensor<2x2xf32>) {
  %0 = stablehlo.cholesky %x : tensor<2x2xf32>
  return
}
func.func private @f17(%s: tensor<2xui64>) {
  %a, %b = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<9xui32>)
  return
}
func.func public @f18() {
  %0 = stablehlo.constant {mhlo.frontend = 1 : i32} dense<"0x0000803F"> : tensor<2xf32>
  return
}
func.func private @f19(%x: tensor<2xf32>) {
  %0 = stablehlo.compare  GE, %x, %x,  TOTALORDER : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func public @f20(%x: tensor<f32>) {
  %0 = stablehlo.composite "a.b" %x, %x {composite_attributes = {n = 2 : i64}, decomposition = @main, version = 1 : i32} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}
func.func private @f21(%x: tensor<2xf32>, %y: tensor<2xi32>, %z: tensor<f32>, %w: tensor<i32>) {
  %0:2 = stablehlo.reduce(%x init: %z), (%y init: %w) across dimensions = [0] : (tensor<2xf32>, tensor<2xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>) reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32> loc(unknown), %d: tensor<i32>) { %1 = stablehlo.add %a, %c : tensor<f32> %2 = stablehlo.subtract %d, %b : tensor<i32> stablehlo.return %1, %2 : tensor<f32>, tensor<i32> }
  return
}
func.func public @f22(%x: tensor<2xf32>) {
  %0 = chlo.next_after %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return
}
func.func private @f23(%x: tensor<2xf32>) {
  check.expect_eq %x, %x : tensor<2xf32>
  return
}
func.func public @f24(%x: tensor<8xf32>) {
  %0 = sdy.sharding_constraint %x <@mesh, [{"x", ?}]> : tensor<8xf32>
  return
}
}
