// ==== inline: a call becomes what it calls, and the function goes
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = func.call @f(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @g(%a) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.add %0, %a : tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @g(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @unused(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
// ->
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<2xf32>
  %1 = stablehlo.add %0, %a : tensor<2xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<2xf32>
  %3 = stablehlo.add %2, %1 : tensor<2xf32>
  return %3 : tensor<2xf32>
}
// ==== inline: arguments that are returned, and results in another order
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = func.call @swap(%a, %b) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}
func.func private @swap(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %b, %a : tensor<f32>, tensor<f32>
}
// ->
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %b, %a : tensor<f32>, tensor<f32>
}
// ==== inline: composites by their decomposition, calls within regions
func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.composite "my.op" %a {decomposition = @f} : (tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  %q = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %0 = "stablehlo.if"(%q) ({
    stablehlo.return %a : tensor<f32>
  }, {
    %1 = stablehlo.negate %a : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
// ->
func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    %q = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = "stablehlo.if"(%q) ({
      stablehlo.return %a : tensor<f32>
    }, {
      %2 = stablehlo.negate %a : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
// ==== async: what is started runs where it is started
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "stablehlo.async_start"(%a, %b) ({
  ^bb0(%x: tensor<2xf32>, %y: tensor<2xf32>):
    %1 = stablehlo.add %x, %y : tensor<2xf32>
    %2 = stablehlo.multiply %1, %x : tensor<2xf32>
    stablehlo.return %2, %y : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<2xf32>, tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>, tensor<2xf32>>
  %3 = stablehlo.negate %a : tensor<2xf32>
  %4:2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>, tensor<2xf32>>) -> (tensor<2xf32>, tensor<2xf32>)
  %5 = stablehlo.add %4#0, %3 : tensor<2xf32>
  return %5, %4#1 : tensor<2xf32>, tensor<2xf32>
}
// ->
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %1 = stablehlo.add %a, %b : tensor<2xf32>
  %2 = stablehlo.multiply %1, %a : tensor<2xf32>
  %3 = stablehlo.negate %a : tensor<2xf32>
  %5 = stablehlo.add %2, %3 : tensor<2xf32>
  return %5, %b : tensor<2xf32>, tensor<2xf32>
}
// ==== inline: a composite that is a function of the jit becomes the function
func.func @main(%a: tensor<2xf32>, %b: tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) {
  %0 = stablehlo.composite "chlo.atan" %a {decomposition = @f} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.composite "chlo.lgamma" %a {decomposition = @g} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = stablehlo.composite "chlo.atan" %b {decomposition = @h} : (tensor<2xi32>) -> tensor<2xi32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>
}
func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.constant dense<1.0> : tensor<2xf32>
  %2 = stablehlo.atan2 %a, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
func.func private @g(%a: tensor<2xf32>) -> tensor<2xf32> {
  %1 = stablehlo.negate %a : tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @h(%a: tensor<2xi32>) -> tensor<2xi32> {
  %1 = stablehlo.negate %a : tensor<2xi32>
  return %1 : tensor<2xi32>
}
// ->
func.func @main(%a: tensor<2xf32>, %b: tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) {
  %0 = chlo.atan %a : tensor<2xf32> -> tensor<2xf32>
  %1 = stablehlo.negate %a : tensor<2xf32>
  %2 = stablehlo.negate %b : tensor<2xi32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>
}
