"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<2xf32>, tensor<3x9xi1>, tensor<2x9x9xui64>, tensor<f32>) -> (tensor<1x11x7x1xui64>, tensor<i32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2xf32>, %arg1: tensor<3x9xi1>, %arg2: tensor<2x9x9xui64>, %arg3: tensor<f32>):
    %0 = "stablehlo.slice"(%arg1) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 3, 2>, strides = array<i64: 1, 1>}> : (tensor<3x9xi1>) -> tensor<3x2xi1>
    %1 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xf32>) -> tensor<2xf32>
    %2 = "stablehlo.subtract"(%arg2, %arg2) : (tensor<2x9x9xui64>, tensor<2x9x9xui64>) -> tensor<2x9x9xui64>
    %3 = "stablehlo.floor"(%arg3) : (tensor<f32>) -> tensor<f32>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5:2 = "stablehlo.while"(%4, %0) ({
    ^bb0(%arg4: tensor<i32>, %arg5: tensor<3x2xi1>):
      %6 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %7 = "stablehlo.compare"(%arg4, %6) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg6: tensor<i32>, %arg7: tensor<3x2xi1>):
      %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %9 = "stablehlo.add"(%arg6, %8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %10 = "stablehlo.maximum"(%arg7, %0) : (tensor<3x2xi1>, tensor<3x2xi1>) -> tensor<3x2xi1>
      "stablehlo.return"(%9, %10) : (tensor<i32>, tensor<3x2xi1>) -> ()
    }) : (tensor<i32>, tensor<3x2xi1>) -> (tensor<i32>, tensor<3x2xi1>)
    %11 = "stablehlo.broadcast_in_dim"(%arg2) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x9x9xui64>) -> tensor<2x9x9x2xui64>
    %12 = "stablehlo.add"(%5#0, %5#0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %13 = "stablehlo.constant"() <{value = dense<0> : tensor<ui64>}> : () -> tensor<ui64>
    %14 = "stablehlo.reduce"(%11, %13) <{dimensions = array<i64: 0, 1, 2, 3>}> ({
    ^bb0(%arg8: tensor<ui64>, %arg9: tensor<ui64>):
      %15 = "stablehlo.maximum"(%arg8, %arg9) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
      "stablehlo.return"(%15) : (tensor<ui64>) -> ()
    }) : (tensor<2x9x9x2xui64>, tensor<ui64>) -> tensor<ui64>
    %16 = "stablehlo.add"(%12, %5#0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %17 = "stablehlo.case"(%16) ({
      "stablehlo.return"(%14) : (tensor<ui64>) -> ()
    }) : (tensor<i32>) -> tensor<ui64>
    %18 = "stablehlo.pad"(%11, %17) <{edge_padding_low = array<i64: -1, 1, -1, -1>, edge_padding_high = array<i64: 0, 1, -1, 0>, interior_padding = array<i64: 0, 0, 0, 0>}> : (tensor<2x9x9x2xui64>, tensor<ui64>) -> tensor<1x11x7x1xui64>
    "func.return"(%18, %12) : (tensor<1x11x7x1xui64>, tensor<i32>) -> ()
  }) : () -> ()
}) : () -> ()
