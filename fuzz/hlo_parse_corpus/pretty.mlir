module @jit attributes {mhlo.num_replicas = 8 : i32} {
  func.func public @main(%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32} loc("x":1:2), %arg1: tensor<i1>) -> (tensor<2xf32> {jax.result_info = ""}, tensor<f32>) attributes {a.b = "}"} {
    %0 = stablehlo.constant dense<"0x}}"> : tensor<f32>
    return %arg0, %0 : tensor<2xf32>, tensor<f32>
  }
}
