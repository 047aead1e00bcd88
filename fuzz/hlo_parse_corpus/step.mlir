module @step attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%w: tensor<3x4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<2x3xf32>, %n: tensor<i32>) -> (tensor<3x4xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %2 = stablehlo.maximum %0, %1 : tensor<2x4xf32>
    %3 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
    %4:2 = stablehlo.while(%i = %n, %a = %w) : tensor<i32>, tensor<3x4xf32>
    cond {
      %6 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6 = func.call @update(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
      stablehlo.return %i, %6 : tensor<i32>, tensor<3x4xf32>
    }
    %5 = "stablehlo.sort"(%c) <{dimension = 0 : i64}> ({
    ^bb0(%l: tensor<i32>, %r: tensor<i32>):
      %6 = stablehlo.compare LT, %l, %r : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    }) : (tensor<2xi32>) -> tensor<2xi32>
    return %4#1, %3 : tensor<3x4xf32>, tensor<f32>
  }
  func.func private @update(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = chlo.erf %a : tensor<3x4xf32> -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
