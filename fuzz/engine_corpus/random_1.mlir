"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<8x33xf32>, tensor<2x3x3x4xf32>) -> (tensor<8x33xf32>, tensor<8x33xf32>, tensor<2x3x3x4xf32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x33xf32>, %arg1: tensor<2x3x3x4xf32>):
    %0 = "stablehlo.negate"(%arg0) : (tensor<8x33xf32>) -> tensor<8x33xf32>
    %1 = "stablehlo.constant"() <{value = dense<[[[2], [0], [4]], [[1], [0], [1]], [[5], [1], [0]], [[3], [3], [4]], [[1], [2], [4]]]> : tensor<5x3x1xui64>}> : () -> tensor<5x3x1xui64>
    %2 = "stablehlo.bitcast_convert"(%1) : (tensor<5x3x1xui64>) -> tensor<5x3x1xi64>
    %3 = "stablehlo.slice"(%arg1) <{start_indices = array<i64: 0, 1, 0, 0>, limit_indices = array<i64: 2, 1, 3, 4>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x3x3x4xf32>) -> tensor<2x0x3x4xf32>
    %4 = "stablehlo.popcnt"(%2) : (tensor<5x3x1xi64>) -> tensor<5x3x1xi64>
    %5 = "stablehlo.sort"(%0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %6 = "stablehlo.compare"(%arg2, %arg3) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }) : (tensor<8x33xf32>) -> tensor<8x33xf32>
    %7 = "stablehlo.convert"(%0) : (tensor<8x33xf32>) -> tensor<8x33xi16>
    %8 = "stablehlo.constant"() <{value = dense<0.5> : tensor<8x33xf32>}> : () -> tensor<8x33xf32>
    %9 = "stablehlo.abs"(%5) : (tensor<8x33xf32>) -> tensor<8x33xf32>
    %10 = "stablehlo.add"(%9, %8) : (tensor<8x33xf32>, tensor<8x33xf32>) -> tensor<8x33xf32>
    %11 = "stablehlo.sqrt"(%10) : (tensor<8x33xf32>) -> tensor<8x33xf32>
    %12 = "stablehlo.constant"() <{value = dense<> : tensor<2x0x3x4xf32>}> : () -> tensor<2x0x3x4xf32>
    %13 = "stablehlo.constant"() <{value = dense<> : tensor<2x0x3x4xf32>}> : () -> tensor<2x0x3x4xf32>
    %14 = "stablehlo.clamp"(%12, %3, %13) : (tensor<2x0x3x4xf32>, tensor<2x0x3x4xf32>, tensor<2x0x3x4xf32>) -> tensor<2x0x3x4xf32>
    %15 = "stablehlo.convert"(%0) : (tensor<8x33xf32>) -> tensor<8x33xi32>
    %16 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.reduce"(%11, %16) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %18 = "stablehlo.minimum"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%18) : (tensor<f32>) -> ()
    }) : (tensor<8x33xf32>, tensor<f32>) -> tensor<f32>
    %19 = "stablehlo.maximum"(%14, %3) : (tensor<2x0x3x4xf32>, tensor<2x0x3x4xf32>) -> tensor<2x0x3x4xf32>
    %20 = "stablehlo.convert"(%11) : (tensor<8x33xf32>) -> tensor<8x33xf32>
    "func.return"(%20, %11, %arg1) : (tensor<8x33xf32>, tensor<8x33xf32>, tensor<2x3x3x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
