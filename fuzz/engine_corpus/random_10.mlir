"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<4x8xui16>, tensor<i64>, tensor<2x16xf32>, tensor<33x1x4x1xi16>) -> (tensor<33x1x4x1xi1>, tensor<33x1x4x1xi1>, tensor<2xui64>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4x8xui16>, %arg1: tensor<i64>, %arg2: tensor<2x16xf32>, %arg3: tensor<33x1x4x1xi16>):
    %0 = "stablehlo.sine"(%arg2) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %1 = "stablehlo.constant"() <{value = dense<[3, 0]> : tensor<2xui64>}> : () -> tensor<2xui64>
    %2:2 = "stablehlo.rng_bit_generator"(%1) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16xui64>)
    %3 = "stablehlo.reverse"(%arg3) <{dimensions = array<i64: 2>}> : (tensor<33x1x4x1xi16>) -> tensor<33x1x4x1xi16>
    %4 = "stablehlo.convert"(%arg3) : (tensor<33x1x4x1xi16>) -> tensor<33x1x4x1xf64>
    %5 = "stablehlo.constant"() <{value = dense<[2, 5, 4, 5, 3, 0]> : tensor<6xui64>}> : () -> tensor<6xui64>
    %6 = "stablehlo.constant"() <{value = dense<0> : tensor<ui64>}> : () -> tensor<ui64>
    %7 = "stablehlo.select_and_scatter"(%2#1, %5, %6) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 3>, padding = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg4: tensor<ui64>, %arg5: tensor<ui64>):
      %8 = "stablehlo.compare"(%arg4, %arg5) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg6: tensor<ui64>, %arg7: tensor<ui64>):
      %9 = "stablehlo.add"(%arg6, %arg7) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
      "stablehlo.return"(%9) : (tensor<ui64>) -> ()
    }) : (tensor<16xui64>, tensor<6xui64>, tensor<ui64>) -> tensor<16xui64>
    %10 = "stablehlo.maximum"(%arg2, %0) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %11 = "stablehlo.compare"(%arg3, %arg3) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<33x1x4x1xi16>, tensor<33x1x4x1xi16>) -> tensor<33x1x4x1xi1>
    "func.return"(%11, %11, %2#0) : (tensor<33x1x4x1xi1>, tensor<33x1x4x1xi1>, tensor<2xui64>) -> ()
  }) : () -> ()
}) : () -> ()
