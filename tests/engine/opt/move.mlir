// ==== move: transposes of both operands into the dimension numbers
func.func @main(%x: tensor<3x2xf32>, %y: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// ->
func.func @main(%x: tensor<3x2xf32>, %y: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [1] : (tensor<3x2xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// ==== move: a batch that stands behind
func.func @main(%x: tensor<5x7x2x3xf32>, %y: tensor<5x2x7x3xf32>) -> tensor<5x2x7x7xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<5x7x2x3xf32>) -> tensor<5x2x7x3xf32>
  %1 = stablehlo.dot_general %0, %y, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<5x2x7x3xf32>, tensor<5x2x7x3xf32>) -> tensor<5x2x7x7xf32>
  return %1 : tensor<5x2x7x7xf32>
}
// ->
func.func @main(%x: tensor<5x7x2x3xf32>, %y: tensor<5x2x7x3xf32>) -> tensor<5x2x7x7xf32> {
  %1 = stablehlo.dot_general %x, %y, batching_dims = [0, 2] x [0, 1], contracting_dims = [3] x [3] : (tensor<5x7x2x3xf32>, tensor<5x2x7x3xf32>) -> tensor<5x2x7x7xf32>
  return %1 : tensor<5x2x7x7xf32>
}
// ==== move: free dimensions that change places stay
func.func @main(%x: tensor<2x4x3xf32>, %y: tensor<3xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  %1 = stablehlo.dot_general %0, %y, contracting_dims = [2] x [0] : (tensor<4x2x3xf32>, tensor<3xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
// -> same
// ==== move: a transpose of the product exchanges the operands
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
// ->
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<4x2xf32> {
  %1 = stablehlo.dot_general %y, %x, contracting_dims = [0] x [1] : (tensor<3x4xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
// ==== move: a transpose behind a conversion of the product exchanges them too
func.func @main(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16>
  %1 = stablehlo.convert %0 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}
// ->
func.func @main(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %y, %x, contracting_dims = [0] x [1] : (tensor<3x4xbf16>, tensor<2x3xbf16>) -> tensor<4x2xbf16>
  %1 = stablehlo.convert %0 : (tensor<4x2xbf16>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
// ==== move: a product that is needed as it is, too, is not done twice
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %1, %0 : tensor<4x2xf32>, tensor<2x4xf32>
}
// -> same
// ==== move: transposes around a convolution, and a reversed kernel
func.func @main(%x: tensor<1x2x5x5xf32>, %k: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x5x5xf32>) -> tensor<1x5x5x2xf32>
  %1 = stablehlo.reverse %k, dims = [2, 3] : tensor<3x2x3x3xf32>
  %2 = stablehlo.transpose %1, dims = [2, 3, 1, 0] : (tensor<3x2x3x3xf32>) -> tensor<3x3x2x3xf32>
  %3 = stablehlo.convolution(%0, %2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x2xf32>, tensor<3x3x2x3xf32>) -> tensor<1x3x3x3xf32>
  %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %4 : tensor<1x3x3x3xf32>
}
// ->
func.func @main(%x: tensor<1x2x5x5xf32>, %k: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %1 = stablehlo.reverse %k, dims = [2, 3] : tensor<3x2x3x3xf32>
  %3 = stablehlo.convolution(%x, %1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32>
  %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %4 : tensor<1x3x3x3xf32>
}
// ==== move: a reversed kernel reverses the window
func.func @main(%x: tensor<1x2x5x5xf32>, %k: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %1 = stablehlo.reverse %k, dims = [2, 3] : tensor<3x2x3x3xf32>
  %3 = stablehlo.convolution(%x, %1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32>
  %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %4 : tensor<1x3x3x3xf32>
}
// ->
func.func @main(%x: tensor<1x2x5x5xf32>, %k: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %3 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, 0, 1, f], window = {reverse = [true, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32>
  %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %4 : tensor<1x3x3x3xf32>
}
// ==== move: work on broadcasts is done before
func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<2x3xf32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2x3xf32>
  %3 = stablehlo.add %2, %c : tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
// ->
func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<3xf32>
  %c = stablehlo.constant dense<2.0> : tensor<3xf32>
  %1 = stablehlo.add %0, %c : tensor<3xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
// ==== move: broadcasts along different dimensions stay
func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3x3xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<3x3xf32>
  return %2 : tensor<3x3xf32>
}
// -> same
// ==== move: reshapes go behind
func.func @main(%a: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<2x3xi1> {
  %0 = stablehlo.reshape %a : (tensor<6xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.reshape %b : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.compare LT, %0, %1, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  return %2 : tensor<2x3xi1>
}
// ->
func.func @main(%a: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<2x3xi1> {
  %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %1 = stablehlo.reshape %0 : (tensor<6xi1>) -> tensor<2x3xi1>
  return %1 : tensor<2x3xi1>
}
// ==== move: transposes go behind, when nobody else needs them
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.exponential %0 : tensor<3x2xf32>
  %2 = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.add %2, %2 : tensor<3x2xf32>
  return %1, %3 : tensor<3x2xf32>, tensor<3x2xf32>
}
// ->
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %0 = stablehlo.exponential %a : tensor<2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.add %2, %2 : tensor<3x2xf32>
  return %1, %3 : tensor<3x2xf32>, tensor<3x2xf32>
}
