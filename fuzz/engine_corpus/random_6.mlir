"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<i32>) -> (tensor<f32>, tensor<f32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<i32>):
    %0 = "stablehlo.shift_left"(%arg0, %arg0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %1 = "stablehlo.compare"(%arg0, %0) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = "stablehlo.constant"() <{value = dense<1.215977> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<4.0> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.select"(%1, %2, %3) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.constant"() <{value = dense<0.5> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.abs"(%4) : (tensor<f32>) -> tensor<f32>
    %7 = "stablehlo.add"(%6, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %8 = "stablehlo.log_plus_one"(%7) : (tensor<f32>) -> tensor<f32>
    %9 = "stablehlo.not"(%arg0) : (tensor<i32>) -> tensor<i32>
    %10 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3xf32>
    %11 = "stablehlo.multiply"(%4, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%11, %11) : (tensor<f32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
