func.func @main(%x: tensor<3x20xf32>, %s: tensor<2xui64>) -> (tensor<3x20xi32>, tensor<2xui64>, tensor<13xui16>) {
  %y = stablehlo.iota dim = 1 : tensor<3x20xi32>
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<3x20xf32>, tensor<3x20xi32>) -> (tensor<3x20xf32>, tensor<3x20xi32>)
  %1:2 = "stablehlo.rng_bit_generator"(%s) <{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<13xui16>)
  return %0#1, %1#0, %1#1 : tensor<3x20xi32>, tensor<2xui64>, tensor<13xui16>
}
