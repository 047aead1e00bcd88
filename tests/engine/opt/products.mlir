// ==== products: both operands widened from bf16
func.func @main(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<2x4xf32> {
  %0 = stablehlo.convert %x : (tensor<2x3xbf16>) -> tensor<2x3xf32>
  %1 = stablehlo.convert %y : (tensor<3x4xbf16>) -> tensor<3x4xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// ->
func.func @main(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<2x4xf32> {
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
// ==== products: a few rows with a widened matrix
func.func @main(%x: tensor<2x8xf32>, %y: tensor<16x8xi8>) -> tensor<2x16xf32> {
  %1 = stablehlo.convert %y : (tensor<16x8xi8>) -> tensor<16x8xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [1] : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
  return %2 : tensor<2x16xf32>
}
// ->
func.func @main(%x: tensor<2x8xf32>, %y: tensor<16x8xi8>) -> tensor<2x16xf32> {
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<2x8xf32>, tensor<16x8xi8>) -> tensor<2x16xf32>
  return %2 : tensor<2x16xf32>
}
// ==== products: many rows stay
func.func @main(%x: tensor<9x8xf32>, %y: tensor<8x16xi8>) -> tensor<9x16xf32> {
  %1 = stablehlo.convert %y : (tensor<8x16xi8>) -> tensor<8x16xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<9x8xf32>, tensor<8x16xf32>) -> tensor<9x16xf32>
  return %2 : tensor<9x16xf32>
}
// -> same
// ==== products: integers of 32 bits are not exact in f32, and stay
func.func @main(%x: tensor<2x8xf32>, %y: tensor<8x16xi32>) -> tensor<2x16xf32> {
  %1 = stablehlo.convert %y : (tensor<8x16xi32>) -> tensor<8x16xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  return %2 : tensor<2x16xf32>
}
// -> same
// ==== products: floats of 8 bits
func.func @main(%x: tensor<2x3xf8E4M3FN>, %y: tensor<3x4xf8E5M2>) -> tensor<2x4xf8E4M3FN> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf8E4M3FN>, tensor<3x4xf8E5M2>) -> tensor<2x4xf8E4M3FN>
  return %0 : tensor<2x4xf8E4M3FN>
}
// ->
func.func @main(%x: tensor<2x3xf8E4M3FN>, %y: tensor<3x4xf8E5M2>) -> tensor<2x4xf8E4M3FN> {
  %0 = stablehlo.convert %x : (tensor<2x3xf8E4M3FN>) -> tensor<2x3xf32>
  %1 = stablehlo.convert %y : (tensor<3x4xf8E5M2>) -> tensor<3x4xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %3 = stablehlo.convert %2 : (tensor<2x4xf32>) -> tensor<2x4xf8E4M3FN>
  return %3 : tensor<2x4xf8E4M3FN>
}
// ==== products: integers of 4 bits
func.func @main(%x: tensor<2x3xi4>, %y: tensor<3x4xui4>) -> tensor<2x4xi32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xi4>, tensor<3x4xui4>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}
// ->
func.func @main(%x: tensor<2x3xi4>, %y: tensor<3x4xui4>) -> tensor<2x4xi32> {
  %0 = stablehlo.convert %x : (tensor<2x3xi4>) -> tensor<2x3xi8>
  %1 = stablehlo.convert %y : (tensor<3x4xui4>) -> tensor<3x4xui8>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3xi8>, tensor<3x4xui8>) -> tensor<2x4xi32>
  return %2 : tensor<2x4xi32>
}
// ==== products: a slice of a batch of products
func.func @main(%x: tensor<3x20x2xf32>, %y: tensor<3x2x30xf32>) -> tensor<2x2x30xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x20x2xf32>, tensor<3x2x30xf32>) -> tensor<3x20x30xf32>
  %1 = stablehlo.slice %0 [1:3, 4:9:3, 0:30] : (tensor<3x20x30xf32>) -> tensor<2x2x30xf32>
  return %1 : tensor<2x2x30xf32>
}
// ->
func.func @main(%x: tensor<3x20x2xf32>, %y: tensor<3x2x30xf32>) -> tensor<2x2x30xf32> {
  %1 = stablehlo.slice %x [1:3, 4:9:3, 0:2] : (tensor<3x20x2xf32>) -> tensor<2x2x2xf32>
  %2 = stablehlo.slice %y [1:3, 0:2, 0:30] : (tensor<3x2x30xf32>) -> tensor<2x2x30xf32>
  %3 = stablehlo.dot_general %1, %2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x2x2xf32>, tensor<2x2x30xf32>) -> tensor<2x2x30xf32>
  return %3 : tensor<2x2x30xf32>
}
// ==== products: a slice that saves little stays
func.func @main(%x: tensor<2x30xf32>, %y: tensor<30x40xf32>) -> tensor<2x20xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x30xf32>, tensor<30x40xf32>) -> tensor<2x40xf32>
  %1 = stablehlo.slice %0 [0:2, 0:20] : (tensor<2x40xf32>) -> tensor<2x20xf32>
  return %1 : tensor<2x20xf32>
}
// -> same
// ==== products: a product that is used twice is not cut
func.func @main(%x: tensor<20x2xf32>, %y: tensor<2x30xf32>) -> (tensor<20x30xf32>, tensor<2x30xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<20x2xf32>, tensor<2x30xf32>) -> tensor<20x30xf32>
  %1 = stablehlo.slice %0 [0:2, 0:30] : (tensor<20x30xf32>) -> tensor<2x30xf32>
  return %0, %1 : tensor<20x30xf32>, tensor<2x30xf32>
}
// -> same
// ==== products: a product that sums nothing
func.func @main(%x: tensor<2x5xf32>, %y: tensor<7x5x3xf32>) -> tensor<5x2x7x3xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [1] x [1], contracting_dims = [] x [] : (tensor<2x5xf32>, tensor<7x5x3xf32>) -> tensor<5x2x7x3xf32>
  return %0 : tensor<5x2x7x3xf32>
}
// ->
func.func @main(%x: tensor<2x5xf32>, %y: tensor<7x5x3xf32>) -> tensor<5x2x7x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<2x5xf32>) -> tensor<5x2x7x3xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [2, 0, 3] : (tensor<7x5x3xf32>) -> tensor<5x2x7x3xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<5x2x7x3xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<5x2x7x3xf32>
  %4 = stablehlo.add %2, %3 : tensor<5x2x7x3xf32>
  return %4 : tensor<5x2x7x3xf32>
}
// ==== products: a product of another type that sums nothing stays
func.func @main(%x: tensor<5xbf16>, %y: tensor<3xbf16>) -> tensor<5x3xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<5xbf16>, tensor<3xbf16>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}
// -> same
