// ==== algebra: x + 0 is not x for -0
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: x + -0 is x
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<-0.0> : tensor<2xf32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: -0 + x is x
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<-0.0> : tensor<2xf32>
  %0 = stablehlo.add %c, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: x - 0 is x
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.subtract %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: x - -0 is not x for -0
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<-0.0> : tensor<2xf32>
  %0 = stablehlo.subtract %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: x - x is not 0 for NaN
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.subtract %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: x * 1 is x
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0 = stablehlo.multiply %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: x * 0 is not 0 for NaN
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.multiply %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: x / 1 is x
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0 = stablehlo.divide %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: x / 4 is x * 0.25
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<4.0> : tensor<2xf32>
  %0 = stablehlo.divide %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0.25> : tensor<2xf32>
  %0 = stablehlo.multiply %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ==== algebra: x / 3 has no exact reciprocal
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<2xf32>
  %0 = stablehlo.divide %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: x / 2^-126 has one, its reciprocal is no number for the product
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0x00800000> : tensor<2xf32>
  %0 = stablehlo.divide %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: x to the power 2
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<2xf32>
  %0 = stablehlo.power %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ==== algebra: double negation
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.negate %x : tensor<2xf32>
  %0 = stablehlo.negate %1 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: magnitude of a negation
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.negate %x : tensor<2xf32>
  %0 = stablehlo.abs %1 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.abs %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ==== algebra: maximum with itself
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.maximum %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: integers: x + 0
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<0> : tensor<2xi32>
  %0 = stablehlo.add %c, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  return %x : tensor<2xi32>
}
// ==== algebra: integers: x * 0
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<0> : tensor<2xi32>
  %0 = stablehlo.multiply %x, %c : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<0> : tensor<2xi32>
  return %c : tensor<2xi32>
}
// ==== algebra: integers: x - x
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.subtract %x, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<0> : tensor<2xi32>
  return %c : tensor<2xi32>
}
// ==== algebra: integers: division by a power of two stays
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<4> : tensor<2xi32>
  %0 = stablehlo.divide %x, %c : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// -> same
// ==== algebra: integers: and with all ones
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<-1> : tensor<2xi32>
  %0 = stablehlo.and %x, %c : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  return %x : tensor<2xi32>
}
// ==== algebra: integers: or with 0
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<0> : tensor<2xi32>
  %0 = stablehlo.or %c, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  return %x : tensor<2xi32>
}
// ==== algebra: integers: or with all ones
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<-1> : tensor<2xi32>
  %0 = stablehlo.or %x, %c : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<-1> : tensor<2xi32>
  return %c : tensor<2xi32>
}
// ==== algebra: integers: xor with itself
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.xor %x, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<0> : tensor<2xi32>
  return %c : tensor<2xi32>
}
// ==== algebra: integers: and with itself
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.and %x, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  return %x : tensor<2xi32>
}
// ==== algebra: integers: compared with themselves
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi1> {
  %0 = stablehlo.compare GE, %x, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
// ->
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi1> {
  %c = stablehlo.constant dense<true> : tensor<2xi1>
  return %c : tensor<2xi1>
}
// ==== algebra: floats compared with themselves are not: NaN
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xi1> {
  %0 = stablehlo.compare EQ, %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
// -> same
// ==== algebra: select by a constant
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<false> : tensor<2xi1>
  %0 = stablehlo.select %c, %x, %y : tensor<2xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %y : tensor<2xf32>
}
// ==== algebra: select among equals
func.func @main(%p: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.select %p, %x, %x : tensor<2xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%p: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: select by a negation
func.func @main(%p: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.not %p : tensor<2xi1>
  %0 = stablehlo.select %1, %x, %y : tensor<2xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%p: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.select %p, %y, %x : tensor<2xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ==== algebra: to a wider type and back
func.func @main(%h: tensor<2xf16>) -> tensor<2xf16> {
  %1 = stablehlo.convert %h : (tensor<2xf16>) -> tensor<2xf32>
  %0 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xf16>
  return %0 : tensor<2xf16>
}
// ->
func.func @main(%h: tensor<2xf16>) -> tensor<2xf16> {
  return %h : tensor<2xf16>
}
// ==== algebra: through a wider type
func.func @main(%h: tensor<2xf16>) -> tensor<2xf64> {
  %1 = stablehlo.convert %h : (tensor<2xf16>) -> tensor<2xf32>
  %0 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
// ->
func.func @main(%h: tensor<2xf16>) -> tensor<2xf64> {
  %0 = stablehlo.convert %h : (tensor<2xf16>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
// ==== algebra: through a narrower type stays
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xf16>
  %0 = stablehlo.convert %1 : (tensor<2xf16>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -> same
// ==== algebra: through 4 bits
func.func @main(%x: tensor<2xi8>) -> tensor<2xf32> {
  %1 = stablehlo.convert %x : (tensor<2xi8>) -> tensor<2xi4>
  %0 = stablehlo.convert %1 : (tensor<2xi4>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xi8>) -> tensor<2xf32> {
  %3 = stablehlo.constant dense<4> : tensor<2xi8>
  %2 = stablehlo.shift_left %x, %3 : tensor<2xi8>
  %1 = stablehlo.shift_right_arithmetic %2, %3 : tensor<2xi8>
  %0 = stablehlo.convert %1 : (tensor<2xi8>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ==== algebra: an i32 does not fit f32
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %1 = stablehlo.convert %x : (tensor<2xi32>) -> tensor<2xf32>
  %0 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
// -> same
// ==== algebra: the real part of a complex number made of two
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.complex %x, %y : tensor<2xcomplex<f32>>
  %0 = stablehlo.imag %1 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %y : tensor<2xf32>
}
// ==== algebra: bits and back
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2xi32>
  %0 = stablehlo.bitcast_convert %1 : (tensor<2xi32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// ==== algebra: comparisons that bounds decide
func.func @main() -> (tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>) {
  %i = stablehlo.iota dim = 0 : tensor<5xi32>
  %c = stablehlo.constant dense<[10, 20, 30, 5, 6]> : tensor<5xi32>
  %m = stablehlo.subtract %c, %i : tensor<5xi32>
  %z = stablehlo.constant dense<0> : tensor<5xi32>
  %f = stablehlo.constant dense<4> : tensor<5xi32>
  %0 = stablehlo.compare LT, %i, %z : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %1 = stablehlo.compare LE, %i, %f : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %2 = stablehlo.compare GT, %m, %z : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %3 = stablehlo.compare EQ, %m, %z : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %4 = stablehlo.compare NE, %c, %i : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %5 = stablehlo.compare GE, %c, %f : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>
}
// ->
func.func @main() -> (tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>) {
  %0 = stablehlo.constant dense<false> : tensor<5xi1>
  %1 = stablehlo.constant dense<true> : tensor<5xi1>
  %2 = stablehlo.constant dense<true> : tensor<5xi1>
  %3 = stablehlo.constant dense<false> : tensor<5xi1>
  %4 = stablehlo.constant dense<true> : tensor<5xi1>
  %5 = stablehlo.constant dense<true> : tensor<5xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>, tensor<5xi1>
}
// ==== algebra: comparisons that bounds do not decide
func.func @main() -> (tensor<5xi1>, tensor<5xi1>, tensor<200xi1>, tensor<5xi1>) {
  %i = stablehlo.iota dim = 0 : tensor<5xi32>
  %f = stablehlo.constant dense<4> : tensor<5xi32>
  %0 = stablehlo.compare LT, %i, %f : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %z = stablehlo.constant dense<0> : tensor<5xi32>
  %1 = stablehlo.compare GT, %i, %z : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %w = stablehlo.iota dim = 0 : tensor<200xi8>
  %y = stablehlo.constant dense<0> : tensor<200xi8>
  %2 = stablehlo.compare LT, %w, %y : (tensor<200xi8>, tensor<200xi8>) -> tensor<200xi1>
  %u = stablehlo.iota dim = 0 : tensor<5xui32>
  %v = stablehlo.constant dense<1> : tensor<5xui32>
  %m = stablehlo.subtract %u, %v : tensor<5xui32>
  %3 = stablehlo.compare GT, %m, %u : (tensor<5xui32>, tensor<5xui32>) -> tensor<5xi1>
  return %0, %1, %2, %3 : tensor<5xi1>, tensor<5xi1>, tensor<200xi1>, tensor<5xi1>
}
// -> same
// ==== relu: the sign of what came in is that of what goes out
func.func @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %z : tensor<4xf32>
  %1 = stablehlo.compare GT, %x, %z, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = stablehlo.compare LT, %z, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = stablehlo.select %1, %g, %z : tensor<4xi1>, tensor<4xf32>
  return %0, %3, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}
// ->
func.func @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %z : tensor<4xf32>
  %1 = stablehlo.compare GT, %0, %z, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = stablehlo.compare LT, %z, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = stablehlo.select %1, %g, %z : tensor<4xi1>, tensor<4xf32>
  return %0, %3, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}
// ==== relu: not in the total order, which knows the sign of 0 and of NaN
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %z : tensor<4xf32>
  %1 = stablehlo.compare GT, %x, %z, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0, %1 : tensor<4xf32>, tensor<4xi1>
}
// -> same
// ==== relu: x >= 0 is another question
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %z : tensor<4xf32>
  %1 = stablehlo.compare GE, %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0, %1 : tensor<4xf32>, tensor<4xi1>
}
// -> same
