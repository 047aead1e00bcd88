"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<f16>) -> (tensor<1xui64>, tensor<5xui64>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<f16>):
    %0 = "stablehlo.constant"() <{value = dense<3> : tensor<2xui64>}> : () -> tensor<2xui64>
    %1:2 = "stablehlo.rng_bit_generator"(%0) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
    %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xi32>
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<ui64>}> : () -> tensor<ui64>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5:2 = "stablehlo.reduce"(%1#0, %2, %3, %4) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg1: tensor<ui64>, %arg2: tensor<i32>, %arg3: tensor<ui64>, %arg4: tensor<i32>):
      %6 = "stablehlo.compare"(%arg1, %arg3) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
      %7 = "stablehlo.compare"(%arg1, %arg3) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
      %8 = "stablehlo.compare"(%arg2, %arg4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %9 = "stablehlo.and"(%7, %8) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %10 = "stablehlo.or"(%6, %9) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %11 = "stablehlo.select"(%6, %arg1, %arg3) : (tensor<i1>, tensor<ui64>, tensor<ui64>) -> tensor<ui64>
      %12 = "stablehlo.select"(%10, %arg2, %arg4) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%11, %12) : (tensor<ui64>, tensor<i32>) -> ()
    }) : (tensor<2xui64>, tensor<2xi32>, tensor<ui64>, tensor<i32>) -> (tensor<ui64>, tensor<i32>)
    %13 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %14 = "stablehlo.or"(%5#0, %13) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %15 = "stablehlo.divide"(%5#0, %14) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %16 = "stablehlo.pad"(%1#0, %15) <{edge_padding_low = array<i64: 2>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<2xui64>, tensor<ui64>) -> tensor<5xui64>
    %17 = "stablehlo.dynamic_update_slice"(%16, %16, %5#1) : (tensor<5xui64>, tensor<5xui64>, tensor<i32>) -> tensor<5xui64>
    %18 = "stablehlo.pad"(%17, %15) <{edge_padding_low = array<i64: 2>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>}> : (tensor<5xui64>, tensor<ui64>) -> tensor<7xui64>
    %19 = "stablehlo.slice"(%18) <{start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<7xui64>) -> tensor<1xui64>
    "func.return"(%19, %16) : (tensor<1xui64>, tensor<5xui64>) -> ()
  }) : () -> ()
}) : () -> ()
