module @m attributes {a.b = 1 : i32} {
func.func public @main(%x: tensor<2xf32>) {
  %0 = stablehlo.abs %x : tensor<2xf32>
  return
}
func.func private @f1(%x: tensor<2xi8>) {
  %0 = stablehlo.count_leading_zeros %x : tensor<2xi8>
  return
}
func.func public @f2(%x: tensor<2xcomplex<f64>>) {
  %0 = stablehlo.imag %x : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  return
}
func.func private @f3(%x: tensor<0x3xf32>) {
  %0 = stablehlo.negate %x : tensor<0x3xf32> loc("a":1:2)
  return
}
func.func public @f4(%x: tensor<2xf32>) {
  %0 = stablehlo.rsqrt %x : tensor<2xf32>
  return
}
func.func private @f5(%x: tensor<2xf32>) {
  %0 = stablehlo.tanh %x : tensor<2xf32>
  return
}
func.func public @f6(%x: tensor<f32>, %y: tensor<f32>) {
  %0 = stablehlo.atan2 %x, %y : tensor<f32>
  return
}
func.func private @f7(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.or %x, %y : tensor<i8>
  return
}
func.func public @f8(%x: tensor<i8>, %y: tensor<i8>) {
  %0 = stablehlo.shift_right_logical %x, %y : tensor<i8>
  return
}
func.func private @f9(%x: tensor<2xf32>) {
  %0 = stablehlo.is_finite %x : (tensor<2xf32>) -> tensor<2xi1>
  return
}
func.func public @f10(%x: tensor<4xf32>, %p: tensor<f32>, %i: tensor<1xi32>) {
  %0 = stablehlo.dynamic_pad %x, %p, %i, %i, %i : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return
}
func.func private @f11(%p: tensor<i1>, %x: tensor<2xf32>) {
  %0 = stablehlo.select %p, %x, %x : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}
func.func public @f12() {
  %0 = stablehlo.partition_id : tensor<ui32>
  return
}
func.func private @f13() {
  stablehlo.optimization_barrier()
  return
}
func.func public @f14(%x: tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
  return
}
func.func private @f15(%x: tensor<2xf32>, %y: tensor<1xf32>) {
  %0 = stablehlo.concatenate %x, %y, %x, dim = 0 : (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<5xf32>
  return
}
func.func public @f16(%x: tensor<4xf32>) {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  return
}
func.func private @f17(%x: tensor<8xf32>) {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  return
}
func.func public @f18(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  %0 = stablehlo.dot %x, %y, precision = [DEFAULT, HIGHEST] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
func.func private @f19() {
  %0 = stablehlo.constant dense<[1, 0]> : tensor<2xi1>
  return
}
func.func public @f20(%x: tensor<f32>) {
  %0:2 = stablehlo.custom_call @"a b"(%x, %x) {backend_config = "\22\0A", has_side_effect = true} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return
}
func.func private @f21() {
  stablehlo.composite "a" ({ stablehlo.return }) {decomposition = @main} : () -> ()
  return
}
func.func public @f22(%i: tensor<i32>, %x: tensor<f32>) {
  %0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<f32> attributes {mhlo.a} cond { %1 = stablehlo.compare LT, %a, %i : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %1 : tensor<i1> } do { %1 = stablehlo.add %a, %i : tensor<i32> stablehlo.return %1, %x : tensor<i32>, tensor<f32> }
  return
}
func.func private @f23(%x: tensor<5x3xi16>) {
  %values, %indices = chlo.top_k(%x, k = 2) : tensor<5x3xi16> -> (tensor<5x2xi16>, tensor<5x2xi32>)
  return
}
func.func public @f24(%x: tensor<2xf32>) {
  check.expect_eq_const %x, dense<1.0> : tensor<2xf32>
  return
}
func.func private @f25(%x: tensor<8xf32>) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) { %1 = stablehlo.abs %a : tensor<4xf32> sdy.return %1 : tensor<4xf32> } : (tensor<8xf32>) -> tensor<8xf32>
  return
}
}
