"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<3xbf16>, tensor<ui64>) -> (tensor<2xbf16>, tensor<2xbf16>, tensor<3xbf16>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<3xbf16>, %arg1: tensor<ui64>):
    %0 = "stablehlo.constant"() <{value = dense<0xFF80> : tensor<bf16>}> : () -> tensor<bf16>
    %1 = "stablehlo.reduce"(%arg0, %0) <{dimensions = array<i64>}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %2 = "stablehlo.maximum"(%arg2, %arg3) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "stablehlo.return"(%2) : (tensor<bf16>) -> ()
    }) : (tensor<3xbf16>, tensor<bf16>) -> tensor<3xbf16>
    %3 = "stablehlo.add"(%1, %1) : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xbf16>
    %4 = "stablehlo.ceil"(%1) : (tensor<3xbf16>) -> tensor<3xbf16>
    %5 = "stablehlo.is_finite"(%3) : (tensor<3xbf16>) -> tensor<3xi1>
    %6 = "stablehlo.shift_left"(%arg1, %arg1) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %7 = "stablehlo.constant"() <{value = dense<4> : tensor<ui8>}> : () -> tensor<ui8>
    %8 = "stablehlo.dynamic_slice"(%3, %7) <{slice_sizes = array<i64: 3>}> : (tensor<3xbf16>, tensor<ui8>) -> tensor<3xbf16>
    %9 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8x5xi32>
    %10 = "stablehlo.constant"() <{value = dense<[false, true, true]> : tensor<3xi1>}> : () -> tensor<3xi1>
    %11 = "stablehlo.xor"(%5, %10) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
    %12 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xbf16>) -> tensor<5x3xbf16>
    %13 = "stablehlo.dot_general"(%4, %12) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>}> : (tensor<3xbf16>, tensor<5x3xbf16>) -> tensor<5xf32>
    %14 = "stablehlo.constant"() <{value = dense<0.0> : tensor<bf16>}> : () -> tensor<bf16>
    %15 = "stablehlo.reduce_window"(%8, %14) <{window_dimensions = array<i64: 4>, window_strides = array<i64: 3>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[3, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg4: tensor<bf16>, %arg5: tensor<bf16>):
      %16 = "stablehlo.add"(%arg4, %arg5) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "stablehlo.return"(%16) : (tensor<bf16>) -> ()
    }) : (tensor<3xbf16>, tensor<bf16>) -> tensor<2xbf16>
    %17 = "stablehlo.maximum"(%15, %15) : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
    "func.return"(%17, %17, %3) : (tensor<2xbf16>, tensor<2xbf16>, tensor<3xbf16>) -> ()
  }) : () -> ()
}) : () -> ()
