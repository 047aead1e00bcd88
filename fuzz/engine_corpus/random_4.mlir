"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<i1>, tensor<2x2x5xi64>, tensor<5x16x3xi8>, tensor<f64>) -> (tensor<5x16x3xi8>, tensor<5x32x2xi8>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<i1>, %arg1: tensor<2x2x5xi64>, %arg2: tensor<5x16x3xi8>, %arg3: tensor<f64>):
    %0 = "stablehlo.count_leading_zeros"(%arg1) : (tensor<2x2x5xi64>) -> tensor<2x2x5xi64>
    %1 = "stablehlo.exponential"(%arg3) : (tensor<f64>) -> tensor<f64>
    %2 = "stablehlo.exponential_minus_one"(%arg3) : (tensor<f64>) -> tensor<f64>
    %3 = "stablehlo.constant"() <{value = dense<"0xFE000500FBFCFDFBFD02FE02FB05010204FC05FCFE0205FBFC02FBFC03FEFC0503FE0104FF04FF0100FCFB01FD03FC00"> : tensor<1x16x3xi8>}> : () -> tensor<1x16x3xi8>
    %4 = "stablehlo.concatenate"(%arg2, %3) <{dimension = 0 : i64}> : (tensor<5x16x3xi8>, tensor<1x16x3xi8>) -> tensor<6x16x3xi8>
    %5 = "stablehlo.constant"() <{value = dense<[[1, -1, 1, 0, 1], [4, -1, 4, -4, 0]]> : tensor<2x5xi64>}> : () -> tensor<2x5xi64>
    %6 = "stablehlo.dot_general"(%0, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2, 0], rhs_contracting_dimensions = [1, 0]>}> : (tensor<2x2x5xi64>, tensor<2x5xi64>) -> tensor<2xi64>
    %7 = "stablehlo.clamp"(%arg2, %arg2, %arg2) : (tensor<5x16x3xi8>, tensor<5x16x3xi8>, tensor<5x16x3xi8>) -> tensor<5x16x3xi8>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i8>}> : () -> tensor<i8>
    %9 = "stablehlo.reduce_window"(%7, %8) <{window_dimensions = array<i64: 1, 1, 3>, window_strides = array<i64: 1, 1, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 1]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg4: tensor<i8>, %arg5: tensor<i8>):
      %10 = "stablehlo.or"(%arg4, %arg5) : (tensor<i8>, tensor<i8>) -> tensor<i8>
      "stablehlo.return"(%10) : (tensor<i8>) -> ()
    }) : (tensor<5x16x3xi8>, tensor<i8>) -> tensor<5x16x2xi8>
    %11 = "stablehlo.constant"() <{value = dense<0.5> : tensor<f64>}> : () -> tensor<f64>
    %12 = "stablehlo.abs"(%arg3) : (tensor<f64>) -> tensor<f64>
    %13 = "stablehlo.add"(%12, %11) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %14 = "stablehlo.rsqrt"(%13) : (tensor<f64>) -> tensor<f64>
    %15 = "stablehlo.concatenate"(%9, %9) <{dimension = 1 : i64}> : (tensor<5x16x2xi8>, tensor<5x16x2xi8>) -> tensor<5x32x2xi8>
    %16 = "stablehlo.multiply"(%7, %arg2) : (tensor<5x16x3xi8>, tensor<5x16x3xi8>) -> tensor<5x16x3xi8>
    "func.return"(%16, %15) : (tensor<5x16x3xi8>, tensor<5x32x2xi8>) -> ()
  }) : () -> ()
}) : () -> ()
