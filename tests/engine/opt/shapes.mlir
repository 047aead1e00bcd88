// ==== shapes: a reshape to the same sizes
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  return %x : tensor<2x3xf32>
}
// ==== shapes: a reshape of a reshape
func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.reshape %0 : (tensor<6xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %1 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}
// ==== shapes: a reshape of a literal
func.func @main() -> tensor<2x2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
// ->
func.func @main() -> tensor<2x2xf32> {
  %0 = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// ==== shapes: transposes that undo each other
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}
// ->
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  return %x : tensor<2x3x4xf32>
}
// ==== shapes: two transposes become one
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  return %1 : tensor<3x4x2xf32>
}
// ->
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %1 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  return %1 : tensor<3x4x2xf32>
}
// ==== shapes: a transpose that moves only a dimension of 1
func.func @main(%x: tensor<2x1x4xf32>) -> tensor<1x2x4xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}
// ->
func.func @main(%x: tensor<2x1x4xf32>) -> tensor<1x2x4xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}
// ==== shapes: transposes of broadcasts and of iotas
func.func @main(%x: tensor<3xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return %1, %3 : tensor<3x2xf32>, tensor<3x2xi32>
}
// ->
func.func @main(%x: tensor<3xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %1 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<3xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.iota dim = 0 : tensor<3x2xi32>
  return %1, %3 : tensor<3x2xf32>, tensor<3x2xi32>
}
// ==== shapes: a broadcast of a broadcast
func.func @main(%x: tensor<2xf32>) -> tensor<4x2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}
// ->
func.func @main(%x: tensor<2xf32>) -> tensor<4x2x3xf32> {
  %1 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}
// ==== shapes: a broadcast over a dimension of 1 that was added before
func.func @main(%x: tensor<2xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ->
func.func @main(%x: tensor<2xf32>) -> tensor<2x3xf32> {
  %1 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ==== shapes: a broadcast of a literal number is a literal
func.func @main() -> tensor<2x3xf32> {
  %0 = stablehlo.constant dense<1.5> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ->
func.func @main() -> tensor<2x3xf32> {
  %1 = stablehlo.constant dense<1.5> : tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ==== shapes: slices of slices, with strides
func.func @main(%x: tensor<20xf32>) -> tensor<3xf32> {
  %0 = stablehlo.slice %x [2:20:3] : (tensor<20xf32>) -> tensor<6xf32>
  %1 = stablehlo.slice %0 [1:6:2] : (tensor<6xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ->
func.func @main(%x: tensor<20xf32>) -> tensor<3xf32> {
  %1 = stablehlo.slice %x [5:18:6] : (tensor<20xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ==== shapes: a slice of one operand of a concatenation
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %1 = stablehlo.slice %0 [0:2, 4:6] : (tensor<2x7xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x2xf32> {
  %1 = stablehlo.slice %y [0:2, 1:3] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
// ==== shapes: a slice over two operands of a concatenation stays
func.func @main(%x: tensor<3xf32>, %y: tensor<4xf32>) -> tensor<2xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<3xf32>, tensor<4xf32>) -> tensor<7xf32>
  %1 = stablehlo.slice %0 [2:4] : (tensor<7xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
// -> same
// ==== shapes: a slice of a broadcast is a broadcast of a slice
func.func @main(%x: tensor<4xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<5x4xf32>
  %1 = stablehlo.slice %0 [1:3, 1:4] : (tensor<5x4xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ->
func.func @main(%x: tensor<4xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.slice %x [1:4] : (tensor<4xf32>) -> tensor<3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ==== shapes: neighbouring slices put together again
func.func @main(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %0 = stablehlo.slice %x [0:2, 0:2] : (tensor<2x6xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.slice %x [0:2, 2:6] : (tensor<2x6xf32>) -> tensor<2x4xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x6xf32>
  return %2 : tensor<2x6xf32>
}
// ->
func.func @main(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  return %x : tensor<2x6xf32>
}
// ==== shapes: concatenations of concatenations and of nothing
func.func @main(%x: tensor<2xf32>, %y: tensor<0xf32>) -> tensor<6xf32> {
  %0 = stablehlo.concatenate %x, %y, %x, dim = 0 : (tensor<2xf32>, tensor<0xf32>, tensor<2xf32>) -> tensor<4xf32>
  %1 = stablehlo.concatenate %0, %x, dim = 0 : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<0xf32>) -> tensor<6xf32> {
  %1 = stablehlo.concatenate %x, %x, %x, dim = 0 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
// ==== shapes: padding of nothing, a reversal of 1
func.func @main(%x: tensor<1x3xf32>, %v: tensor<f32>) -> tensor<1x3xf32> {
  %0 = stablehlo.pad %x, %v, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<1x3xf32>
  return %1 : tensor<1x3xf32>
}
// ->
func.func @main(%x: tensor<1x3xf32>, %v: tensor<f32>) -> tensor<1x3xf32> {
  return %x : tensor<1x3xf32>
}
// ==== shapes: a dynamic slice from a known place, which is clamped
func.func @main(%x: tensor<5x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.constant dense<9> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  %2 = stablehlo.dynamic_slice %x, %0, %1, sizes = [2, 4] : (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// ->
func.func @main(%x: tensor<5x4xf32>) -> tensor<2x4xf32> {
  %2 = stablehlo.slice %x [3:5, 0:4] : (tensor<5x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// ==== shapes: an update of everything
func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>, %i: tensor<i32>) -> tensor<5xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
// ->
func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>, %i: tensor<i32>) -> tensor<5xf32> {
  return %y : tensor<5xf32>
}
// ==== shapes: a reduction over a transpose
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4x2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ->
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
// ==== shapes: a reduction of what would come out transposed stays
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<3x2xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4x3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}
// -> same
// ==== shapes: a reduction over a dimension of 1
func.func @main(%x: tensor<2x1xf32>, %c: tensor<f32>) -> tensor<2xf32> {
  %1 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2x1xf32>, %c: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.reshape %x : (tensor<2x1xf32>) -> tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
// ==== shapes: a scatter of one window at a known place
func.func @main(%x: tensor<5x6xf32>, %y: tensor<3x4xf32>) -> tensor<5x6xf32> {
  %i = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<2xi32>, tensor<3x4xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}
// ->
func.func @main(%x: tensor<5x6xf32>, %y: tensor<3x4xf32>) -> tensor<5x6xf32> {
  %0 = stablehlo.slice %x [1:4, 2:6] : (tensor<5x6xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.add %0, %y : tensor<3x4xf32>
  %2 = stablehlo.constant dense<1> : tensor<i64>
  %3 = stablehlo.constant dense<2> : tensor<i64>
  %4 = stablehlo.dynamic_update_slice %x, %1, %2, %3 : (tensor<5x6xf32>, tensor<3x4xf32>, tensor<i64>, tensor<i64>) -> tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}
// ==== shapes: a scatter of one row over what was there
func.func @main(%x: tensor<5x6xf32>, %y: tensor<6xf32>) -> tensor<5x6xf32> {
  %i = stablehlo.constant dense<4> : tensor<1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}
// ->
func.func @main(%x: tensor<5x6xf32>, %y: tensor<6xf32>) -> tensor<5x6xf32> {
  %0 = stablehlo.reshape %y : (tensor<6xf32>) -> tensor<1x6xf32>
  %1 = stablehlo.constant dense<4> : tensor<i64>
  %2 = stablehlo.constant dense<0> : tensor<i64>
  %3 = stablehlo.dynamic_update_slice %x, %0, %1, %2 : (tensor<5x6xf32>, tensor<1x6xf32>, tensor<i64>, tensor<i64>) -> tensor<5x6xf32>
  return %3 : tensor<5x6xf32>
}
// ==== shapes: a scatter of five windows without indices stays
func.func @main(%x: tensor<6xf32>, %y: tensor<5x6xf32>) -> tensor<6xf32> {
  %i = stablehlo.constant dense<> : tensor<5x0xi64>
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6xf32>, tensor<5x0xi64>, tensor<5x6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
// -> same
// ==== shapes: a scatter that is partly outside stays
func.func @main(%x: tensor<5x6xf32>, %y: tensor<3x4xf32>) -> tensor<5x6xf32> {
  %i = stablehlo.constant dense<[3, 2]> : tensor<2xi32>
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<2xi32>, tensor<3x4xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}
// -> same
// ==== shapes: indices that rise by 1 are windows
func.func @main(%x: tensor<3x20xf32>) -> tensor<3x5x4xf32> {
  %i = stablehlo.iota dim = 0 : tensor<5x4xi32>
  %c = stablehlo.constant dense<3> : tensor<5x4xi32>
  %s = stablehlo.multiply %i, %c : tensor<5x4xi32>
  %k = stablehlo.iota dim = 1 : tensor<5x4xi32>
  %at = stablehlo.add %s, %k : tensor<5x4xi32>
  %v = stablehlo.reshape %at : (tensor<5x4xi32>) -> tensor<5x4x1xi32>
  %r = "stablehlo.gather"(%x, %v) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 3, 1>}> : (tensor<3x20xf32>, tensor<5x4x1xi32>) -> tensor<3x5x4xf32>
  return %r : tensor<3x5x4xf32>
}
// ->
func.func @main(%x: tensor<3x20xf32>) -> tensor<3x5x4xf32> {
  %i = stablehlo.iota dim = 0 : tensor<5x4xi32>
  %c = stablehlo.constant dense<3> : tensor<5x4xi32>
  %s = stablehlo.multiply %i, %c : tensor<5x4xi32>
  %k = stablehlo.iota dim = 1 : tensor<5x4xi32>
  %at = stablehlo.add %s, %k : tensor<5x4xi32>
  %v = stablehlo.reshape %at : (tensor<5x4xi32>) -> tensor<5x4x1xi32>
  %f = stablehlo.slice %v [0:5, 0:1, 0:1] : (tensor<5x4x1xi32>) -> tensor<5x1x1xi32>
  %w = stablehlo.reshape %f : (tensor<5x1x1xi32>) -> tensor<5x1xi32>
  %r = "stablehlo.gather"(%x, %w) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 3, 4>}> : (tensor<3x20xf32>, tensor<5x1xi32>) -> tensor<3x5x4xf32>
  return %r : tensor<3x5x4xf32>
}
// ==== shapes: rising indices of a constant, without a dimension of vectors
func.func @main(%x: tensor<9x2xf32>) -> tensor<2x4x2xf32> {
  %at = stablehlo.constant dense<[[5, 6, 7, 8], [0, 1, 2, 3]]> : tensor<2x4xui8>
  %r = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2>}> : (tensor<9x2xf32>, tensor<2x4xui8>) -> tensor<2x4x2xf32>
  return %r : tensor<2x4x2xf32>
}
// ->
func.func @main(%x: tensor<9x2xf32>) -> tensor<2x4x2xf32> {
  %at = stablehlo.constant dense<[[5, 6, 7, 8], [0, 1, 2, 3]]> : tensor<2x4xui8>
  %f = stablehlo.slice %at [0:2, 0:1] : (tensor<2x4xui8>) -> tensor<2x1xui8>
  %w = stablehlo.reshape %f : (tensor<2x1xui8>) -> tensor<2xui8>
  %r = "stablehlo.gather"(%x, %w) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 4, 2>}> : (tensor<9x2xf32>, tensor<2xui8>) -> tensor<2x4x2xf32>
  return %r : tensor<2x4x2xf32>
}
// ==== shapes: one index of two rises, the other one is not known
func.func @main(%x: tensor<6x9xf32>, %row: tensor<3xi32>) -> tensor<3x4xf32> {
  %b = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<3xi32>) -> tensor<3x4x1xi32>
  %k = stablehlo.iota dim = 1 : tensor<3x4x1xi32>
  %v = stablehlo.concatenate %b, %k, dim = 2 : (tensor<3x4x1xi32>, tensor<3x4x1xi32>) -> tensor<3x4x2xi32>
  %r = "stablehlo.gather"(%x, %v) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x9xf32>, tensor<3x4x2xi32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// ->
func.func @main(%x: tensor<6x9xf32>, %row: tensor<3xi32>) -> tensor<3x4xf32> {
  %b = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<3xi32>) -> tensor<3x4x1xi32>
  %k = stablehlo.iota dim = 1 : tensor<3x4x1xi32>
  %v = stablehlo.concatenate %b, %k, dim = 2 : (tensor<3x4x1xi32>, tensor<3x4x1xi32>) -> tensor<3x4x2xi32>
  %f = stablehlo.slice %v [0:3, 0:1, 0:2] : (tensor<3x4x2xi32>) -> tensor<3x1x2xi32>
  %w = stablehlo.reshape %f : (tensor<3x1x2xi32>) -> tensor<3x2xi32>
  %r = "stablehlo.gather"(%x, %w) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x9xf32>, tensor<3x2xi32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// ==== shapes: rising indices beyond the operand, each of which is clamped
func.func @main(%x: tensor<7xf32>) -> tensor<2x4xf32> {
  %at = stablehlo.constant dense<[[4, 5, 6, 7], [0, 1, 2, 3]]> : tensor<2x4xi32>
  %r = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<7xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
// -> same
// ==== shapes: indices below 0, each of which is clamped
func.func @main(%x: tensor<7xf32>) -> tensor<4xf32> {
  %at = stablehlo.constant dense<[-1, 0, 1, 2]> : tensor<4xi32>
  %r = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<7xf32>, tensor<4xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// -> same
// ==== shapes: indices that do not rise by 1 everywhere
func.func @main(%x: tensor<9xf32>) -> tensor<2x4xf32> {
  %at = stablehlo.constant dense<[[1, 2, 3, 4], [0, 1, 2, 4]]> : tensor<2x4xi32>
  %r = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
// -> same
// ==== shapes: indices that wrap around
func.func @main(%x: tensor<9xf32>) -> tensor<4xf32> {
  %i = stablehlo.iota dim = 0 : tensor<4xi8>
  %c = stablehlo.constant dense<100> : tensor<4xi8>
  %a = stablehlo.add %i, %c : tensor<4xi8>
  %b = stablehlo.add %a, %c : tensor<4xi8>
  %d = stablehlo.constant dense<58> : tensor<4xi8>
  %at = stablehlo.add %b, %d : tensor<4xi8>
  %r = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<4xi8>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// -> same
// ==== shapes: windows whose dimension would not be in the operand's order
func.func @main(%x: tensor<2x9xf32>) -> tensor<4x2xf32> {
  %at = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %r = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>}> : (tensor<2x9xf32>, tensor<4xi32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
// -> same
// ==== shapes: a sum of neighbours with zeros around them
func.func @main(%x: tensor<2x3xf32>, %y: tensor<1x3xf32>, %z: tensor<4x3xf32>) -> tensor<9x3xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.pad %x, %0, low = [1, 0], high = [6, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<9x3xf32>
  %b = stablehlo.pad %y, %0, low = [0, 0], high = [8, 0], interior = [0, 0] : (tensor<1x3xf32>, tensor<f32>) -> tensor<9x3xf32>
  %c = stablehlo.pad %z, %0, low = [3, 0], high = [2, 0], interior = [0, 0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<9x3xf32>
  %1 = stablehlo.add %a, %b : tensor<9x3xf32>
  %2 = stablehlo.add %1, %c : tensor<9x3xf32>
  return %2 : tensor<9x3xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>, %y: tensor<1x3xf32>, %z: tensor<4x3xf32>) -> tensor<9x3xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %y0 = stablehlo.constant dense<0.0> : tensor<1x3xf32>
  %y1 = stablehlo.add %y, %y0 : tensor<1x3xf32>
  %x0 = stablehlo.constant dense<0.0> : tensor<2x3xf32>
  %x1 = stablehlo.add %x, %x0 : tensor<2x3xf32>
  %z0 = stablehlo.constant dense<0.0> : tensor<4x3xf32>
  %z1 = stablehlo.add %z, %z0 : tensor<4x3xf32>
  %1 = stablehlo.concatenate %y1, %x1, %z1, dim = 0 : (tensor<1x3xf32>, tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<7x3xf32>
  %2 = stablehlo.pad %1, %0, low = [0, 0], high = [2, 0], interior = [0, 0] : (tensor<7x3xf32>, tensor<f32>) -> tensor<9x3xf32>
  return %2 : tensor<9x3xf32>
}
// ==== shapes: neighbours that are all of the sum
func.func @main(%x: tensor<3x2xi32>, %y: tensor<3x4xi32>) -> tensor<3x6xi32> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.pad %x, %0, low = [0, 0], high = [0, 4], interior = [0, 0] : (tensor<3x2xi32>, tensor<i32>) -> tensor<3x6xi32>
  %b = stablehlo.pad %y, %0, low = [0, 2], high = [0, 0], interior = [0, 0] : (tensor<3x4xi32>, tensor<i32>) -> tensor<3x6xi32>
  %1 = stablehlo.add %a, %b : tensor<3x6xi32>
  return %1 : tensor<3x6xi32>
}
// ->
func.func @main(%x: tensor<3x2xi32>, %y: tensor<3x4xi32>) -> tensor<3x6xi32> {
  %1 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<3x2xi32>, tensor<3x4xi32>) -> tensor<3x6xi32>
  return %1 : tensor<3x6xi32>
}
// ==== shapes: neighbours that overlap, or with a gap, stay
func.func @main(%x: tensor<3xf32>, %y: tensor<4xf32>, %z: tensor<2xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.pad %x, %0, low = [0], high = [3], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %b = stablehlo.pad %y, %0, low = [2], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  %c = stablehlo.pad %z, %0, low = [4], high = [0], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.add %a, %b : tensor<6xf32>
  %2 = stablehlo.add %a, %c : tensor<6xf32>
  return %1, %2 : tensor<6xf32>, tensor<6xf32>
}
// -> same
// ==== shapes: neighbours with -0 around them stay
func.func @main(%x: tensor<3xf32>) -> tensor<6xf32> {
  %0 = stablehlo.constant dense<-0.0> : tensor<f32>
  %a = stablehlo.pad %x, %0, low = [0], high = [3], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %b = stablehlo.pad %x, %0, low = [3], high = [0], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.add %a, %b : tensor<6xf32>
  return %1 : tensor<6xf32>
}
// -> same
// ==== shapes: neighbours with ones around them, cut off or spread stay
func.func @main(%x: tensor<3xf32>, %y: tensor<5xf32>, %z: tensor<2xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<1.0> : tensor<f32>
  %a = stablehlo.pad %x, %0, low = [0], high = [3], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %b = stablehlo.pad %x, %1, low = [3], high = [0], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %c = stablehlo.pad %y, %0, low = [3], high = [-2], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  %d = stablehlo.pad %z, %0, low = [3], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.add %a, %b : tensor<6xf32>
  %3 = stablehlo.add %a, %c : tensor<6xf32>
  %4 = stablehlo.add %a, %d : tensor<6xf32>
  return %2, %3, %4 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}
// -> same
// ==== shapes: a scatter of rows of several dimensions
func.func @main(%x: tensor<5x2x3xf32>, %i: tensor<2x2x1xi32>, %y: tensor<2x2x2x3xf32>) -> tensor<5x2x3xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<5x2x3xf32>, tensor<2x2x1xi32>, tensor<2x2x2x3xf32>) -> tensor<5x2x3xf32>
  return %0 : tensor<5x2x3xf32>
}
// ->
func.func @main(%x: tensor<5x2x3xf32>, %i: tensor<2x2x1xi32>, %y: tensor<2x2x2x3xf32>) -> tensor<5x2x3xf32> {
  %0 = stablehlo.reshape %x : (tensor<5x2x3xf32>) -> tensor<5x6xf32>
  %1 = stablehlo.reshape %i : (tensor<2x2x1xi32>) -> tensor<4xi32>
  %2 = stablehlo.reshape %y : (tensor<2x2x2x3xf32>) -> tensor<4x6xf32>
  %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<4xi32>, tensor<4x6xf32>) -> tensor<5x6xf32>
  %4 = stablehlo.reshape %3 : (tensor<5x6xf32>) -> tensor<5x2x3xf32>
  return %4 : tensor<5x2x3xf32>
}
// ==== shapes: a scatter of parts of rows, or along the last dimension, stays
func.func @main(%x: tensor<5x2x3xf32>, %i: tensor<4x1xi32>, %y: tensor<4x2x2xf32>, %z: tensor<2x3x4xf32>) -> (tensor<5x2x3xf32>, tensor<5x2x3xf32>) {
  %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<5x2x3xf32>, tensor<4x1xi32>, tensor<4x2x2xf32>) -> tensor<5x2x3xf32>
  %1 = "stablehlo.scatter"(%x, %i, %z) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<5x2x3xf32>, tensor<4x1xi32>, tensor<2x3x4xf32>) -> tensor<5x2x3xf32>
  return %0, %1 : tensor<5x2x3xf32>, tensor<5x2x3xf32>
}
// -> same
// ==== shapes: a sum of what windows side by side scatter
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x2x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 3, 1>} : (tensor<2x6x3xf32>, tensor<2x2x3xf32>, tensor<f32>) -> tensor<2x6x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ->
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x2x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%source init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ==== shapes: a sum of what windows that overlap scatter
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x6x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {padding = dense<[[0, 0], [1, 1], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 1, 1>} : (tensor<2x6x3xf32>, tensor<2x6x3xf32>, tensor<f32>) -> tensor<2x6x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ->
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x6x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%source init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// ==== shapes: a sum that divides windows
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x2x3xf32>) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 3, 1>} : (tensor<2x6x3xf32>, tensor<2x2x3xf32>, tensor<f32>) -> tensor<2x6x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
// -> same
// ==== shapes: a sum of what is scattered to ones
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x2x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 3, 1>} : (tensor<2x6x3xf32>, tensor<2x2x3xf32>, tensor<f32>) -> tensor<2x6x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// -> same
// ==== shapes: a sum of products that are scattered
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x2x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 3, 1>} : (tensor<2x6x3xf32>, tensor<2x2x3xf32>, tensor<f32>) -> tensor<2x6x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// -> same
// ==== shapes: a sum of windows of which some have no element
func.func @main(%x: tensor<2x6x3xf32>, %source: tensor<2x4x3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) ({
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
   ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {padding = dense<[[0, 0], [3, 3], [0, 0]]> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 3, 1>} : (tensor<2x6x3xf32>, tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x6x3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// -> same
