module @m attributes {mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4x8xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<8x3xf32>, %arg2: tensor<i32>) -> (tensor<4x8xf32>, tensor<3xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.add %arg0, %arg0 : tensor<4x8xf32>
    %3 = call @f(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %3, %1 : tensor<4x8xf32>, tensor<3xf32>
  }
  func.func private @f(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
