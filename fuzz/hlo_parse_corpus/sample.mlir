"builtin.module"() <{sym_name = "step"}> ({
  "func.func"() <{arg_attrs = [{}, {tf.aliasing_output = 1 : i32}], function_type = (tensor<2x3xf32>, tensor<2xui64>) -> (tensor<2xf32>, tensor<2xui64>, tensor<2xui32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x3xf32>, %arg1: tensor<2xui64>):
    %0 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32> loc("a \22b\22\5C.c":7:0)
    %1 = "stablehlo.reduce"(%arg0, %0) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %3:2 = "stablehlo.rng_bit_generator"(%arg1) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>)
    "func.return"(%1, %3#0, %3#1) : (tensor<2xf32>, tensor<2xui64>, tensor<2xui32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} : () -> ()
