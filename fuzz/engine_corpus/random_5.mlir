"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<2x16xf32>, tensor<33x1x4x1xi16>) -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<33x1x4x1xi16>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x16xf32>, %arg1: tensor<33x1x4x1xi16>):
    %0 = "stablehlo.constant"() <{value = dense<0.5> : tensor<2x16xf32>}> : () -> tensor<2x16xf32>
    %1 = "stablehlo.abs"(%arg0) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %2 = "stablehlo.add"(%1, %0) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %3 = "stablehlo.divide"(%arg0, %2) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %4 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<2x16xf32>) -> tensor<2x5x16xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.5> : tensor<2x16xf32>}> : () -> tensor<2x16xf32>
    %6 = "stablehlo.abs"(%arg0) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %7 = "stablehlo.add"(%6, %5) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %8 = "stablehlo.atan2"(%3, %7) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %9 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %10 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %11 = "stablehlo.case"(%10) ({
      "stablehlo.return"(%9) : (tensor<2x16xf32>) -> ()
    }, {
      %12 = "stablehlo.reverse"(%9) <{dimensions = array<i64: 1>}> : (tensor<2x16xf32>) -> tensor<2x16xf32>
      "stablehlo.return"(%12) : (tensor<2x16xf32>) -> ()
    }, {
      %13 = "stablehlo.maximum"(%9, %9) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
      "stablehlo.return"(%13) : (tensor<2x16xf32>) -> ()
    }) : (tensor<i32>) -> tensor<2x16xf32>
    %14 = "stablehlo.constant"() <{value = dense<-32768> : tensor<i16>}> : () -> tensor<i16>
    %15 = "stablehlo.reduce"(%arg1, %14) <{dimensions = array<i64: 0, 1, 2, 3>}> ({
    ^bb0(%arg2: tensor<i16>, %arg3: tensor<i16>):
      %16 = "stablehlo.maximum"(%arg2, %arg3) : (tensor<i16>, tensor<i16>) -> tensor<i16>
      "stablehlo.return"(%16) : (tensor<i16>) -> ()
    }) : (tensor<33x1x4x1xi16>, tensor<i16>) -> tensor<i16>
    %17 = "stablehlo.round_nearest_afz"(%9) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    "func.return"(%17, %9, %arg1) : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<33x1x4x1xi16>) -> ()
  }) : () -> ()
}) : () -> ()
