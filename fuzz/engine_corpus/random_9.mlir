"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<16x5x1x1xf16>, tensor<33xf32>, tensor<3x5x17x2xf16>) -> (tensor<1x1x1x6xf32>, tensor<2x33xf32>, tensor<3x5x17x2xf16>, tensor<3x5x17x2xf16>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<16x5x1x1xf16>, %arg1: tensor<33xf32>, %arg2: tensor<3x5x17x2xf16>):
    %0 = "stablehlo.multiply"(%arg1, %arg1) : (tensor<33xf32>, tensor<33xf32>) -> tensor<33xf32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<33xf32>) -> tensor<2x33xf32>
    %2 = "stablehlo.exponential"(%arg2) : (tensor<3x5x17x2xf16>) -> tensor<3x5x17x2xf16>
    %3 = "stablehlo.constant"() <{value = dense<"0x0000803F0000803F000080BF000000000000803F000000C0000040C000008040000000C0000080C000008040000080C00000000000000040000000C0000080BF000040C000000040000080C00000803F000080BF000000C000000000000080BF000040C00000000000000040000080BF0000404000000000000080C00000803F0000804000004040000080C0000000C00000803F000080BF0000000000000040"> : tensor<4x1x2x5xf32>}> : () -> tensor<4x1x2x5xf32>
    %4 = "stablehlo.constant"() <{value = dense<[[[[1.731298], [1.618508], [-0.051586]], [[-1.231567], [-0.905025], [-1.236321]], [[-0.267397], [0.228644], [1.574157]], [[-0.641912], [1.236991], [0.747677]]]]> : tensor<1x4x3x1xf32>}> : () -> tensor<1x4x3x1xf32>
    %5 = "stablehlo.convolution"(%3, %4) <{window_strides = array<i64: 1, 2>, padding = dense<[[1, 1], [2, 0]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 2, 1>, window_reversal = array<i1: false, false>, dimension_numbers = #stablehlo.conv<[f, b, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<4x1x2x5xf32>, tensor<1x4x3x1xf32>) -> tensor<1x1x1x6xf32>
    "func.return"(%5, %1, %arg2, %arg2) : (tensor<1x1x1x6xf32>, tensor<2x33xf32>, tensor<3x5x17x2xf16>, tensor<3x5x17x2xf16>) -> ()
  }) : () -> ()
}) : () -> ()
