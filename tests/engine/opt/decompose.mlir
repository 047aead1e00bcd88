// ==== decompose: dot
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot %x, %y, precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// ==== decompose: broadcast
func.func @main(%x: tensor<3xf32>) -> tensor<2x4x3xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2, 4] : (tensor<3xf32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}
// ->
func.func @main(%x: tensor<3xf32>) -> tensor<2x4x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [2] : (tensor<3xf32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}
// ==== decompose: get_dimension_size
func.func @main(%x: tensor<2x3xf32>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}
// ->
func.func @main(%x: tensor<2x3xf32>) -> tensor<i32> {
  %0 = stablehlo.constant dense<3> : tensor<i32>
  return %0 : tensor<i32>
}
// ==== decompose: scalars of select and clamp
func.func @main(%p: tensor<i1>, %x: tensor<3xf32>, %l: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.clamp %l, %x, %x : (tensor<f32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = stablehlo.select %p, %0, %x : tensor<i1>, tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ->
func.func @main(%p: tensor<i1>, %x: tensor<3xf32>, %l: tensor<f32>) -> tensor<3xf32> {
  %b = stablehlo.broadcast_in_dim %l, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %0 = stablehlo.clamp %b, %x, %x : tensor<3xf32>
  %q = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i1>) -> tensor<3xi1>
  %1 = stablehlo.select %q, %0, %x : tensor<3xi1>, tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ==== decompose: a partitioner's marks
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = ""} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
// ->
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
// ==== decompose: tuples
func.func @main(%x: tensor<3xf32>, %y: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.tuple %x, %y : tuple<tensor<3xf32>, tensor<i32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<3xf32>, tensor<i32>>) -> tensor<i32>
  return %1 : tensor<i32>
}
// ->
func.func @main(%x: tensor<3xf32>, %y: tensor<i32>) -> tensor<i32> {
  return %y : tensor<i32>
}
// ==== decompose: map
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %k: tensor<f32>) -> tensor<2x3xi1> {
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.multiply %b, %c : tensor<f32>
    %2 = stablehlo.add %1, %k : tensor<f32>
    %3 = stablehlo.compare LT, %a, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  return %0 : tensor<2x3xi1>
}
// ->
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %k: tensor<f32>) -> tensor<2x3xi1> {
  %c = stablehlo.constant dense<2.0> : tensor<2x3xf32>
  %1 = stablehlo.multiply %y, %c : tensor<2x3xf32>
  %w = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %2 = stablehlo.add %1, %w : tensor<2x3xf32>
  %3 = stablehlo.compare LT, %x, %2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  return %3 : tensor<2x3xi1>
}
// ==== decompose: batch_norm_inference
func.func @main(%x: tensor<4x2xf32>, %s: tensor<2xf32>, %o: tensor<2xf32>, %m: tensor<2xf32>) -> tensor<4x2xf32> {
  %v = stablehlo.multiply %m, %m : tensor<2xf32>
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{epsilon = 0.5 : f32, feature_index = 1 : i64}> : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// ->
func.func @main(%x: tensor<4x2xf32>, %s: tensor<2xf32>, %o: tensor<2xf32>, %m: tensor<2xf32>) -> tensor<4x2xf32> {
  %v = stablehlo.multiply %m, %m : tensor<2xf32>
  %e = stablehlo.constant dense<0.5> : tensor<2xf32>
  %0 = stablehlo.add %v, %e : tensor<2xf32>
  %1 = stablehlo.rsqrt %0 : tensor<2xf32>
  %2 = stablehlo.multiply %s, %1 : tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<4x2xf32>
  %5 = stablehlo.broadcast_in_dim %o, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %6 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %7 = stablehlo.multiply %4, %6 : tensor<4x2xf32>
  %8 = stablehlo.add %7, %5 : tensor<4x2xf32>
  return %8 : tensor<4x2xf32>
}
// ==== decompose: padding of a window or more
func.func @main(%x: tensor<1x5x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x10x4x4xf32> {
  %0 = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[4, 3], [1, 5]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 3>}> : (tensor<1x5x6x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x10x4x4xf32>
  return %0 : tensor<1x10x4x4xf32>
}
// ->
func.func @main(%x: tensor<1x5x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x10x4x4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [0, 2, 0, 0], high = [0, 1, 3, 0], interior = [0, 0, 0, 0] : (tensor<1x5x6x2xf32>, tensor<f32>) -> tensor<1x8x9x2xf32>
  %0 = "stablehlo.convolution"(%p, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[2, 2], [1, 2]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 3>}> : (tensor<1x8x9x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x10x4x4xf32>
  return %0 : tensor<1x10x4x4xf32>
}
// ==== decompose: padding that is much larger than images and results
func.func @main(%x: tensor<1x5x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[1000000000000, 1000000000000], [0, 0]]> : tensor<2x2xi64>, window_strides = array<i64: 1000000000000, 1>}> : (tensor<1x5x6x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}
// -> same
// ==== decompose: padding of less than a window, or that no window reaches
func.func @main(%x: tensor<1x5x6x2xf32>, %w: tensor<3x3x2x4xf32>) -> tensor<1x7x2x4xf32> {
  %0 = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[2, 2], [0, 3]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 4>}> : (tensor<1x5x6x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x7x2x4xf32>
  return %0 : tensor<1x7x2x4xf32>
}
// -> same
