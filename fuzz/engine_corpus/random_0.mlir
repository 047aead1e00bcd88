"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<8x2xf16>, tensor<8xf32>) -> (tensor<2x2x7xi1>, tensor<8xf32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x2xf16>, %arg1: tensor<8xf32>):
    %0 = "stablehlo.constant"() <{value = dense<5> : tensor<ui64>}> : () -> tensor<ui64>
    %1 = "stablehlo.count_leading_zeros"(%0) : (tensor<ui64>) -> tensor<ui64>
    %2 = "stablehlo.optimization_barrier"(%1) : (tensor<ui64>) -> tensor<ui64>
    %3 = "stablehlo.subtract"(%arg1, %arg1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = "stablehlo.logistic"(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
    %5 = "stablehlo.constant"() <{value = dense<"0x00004040000040C0000000C0000080C0000040C000000040000000C00000803F000080C000000000000040C0000000C00000803F00008040000080BF000080C000008040000040400000004000000000000040C0000000C000000040000080BF000000000000004000000040000080BF"> : tensor<2x7x2xf32>}> : () -> tensor<2x7x2xf32>
    %6 = "stablehlo.transpose"(%5) <{permutation = array<i64: 0, 2, 1>}> : (tensor<2x7x2xf32>) -> tensor<2x2x7xf32>
    %7 = "stablehlo.constant"() <{value = dense<3> : tensor<i64>}> : () -> tensor<i64>
    %8 = "stablehlo.gather"(%4, %7) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 0>, slice_sizes = array<i64: 1>}> : (tensor<8xf32>, tensor<i64>) -> tensor<f32>
    %9 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.reduce"(%4, %9) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %11 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %12 = "stablehlo.subtract"(%10, %10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %13 = "stablehlo.reshape"(%3) : (tensor<8xf32>) -> tensor<4x2xf32>
    %14 = "stablehlo.subtract"(%10, %12) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %15 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x2x2x4xf32>
    %16 = "stablehlo.dot_general"(%13, %15) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [3, 2]>}> : (tensor<4x2xf32>, tensor<5x2x2x4xf32>) -> tensor<5x2xf32>
    %17 = "stablehlo.cosine"(%12) : (tensor<f32>) -> tensor<f32>
    %18 = "stablehlo.compare"(%6, %6) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<2x2x7xf32>, tensor<2x2x7xf32>) -> tensor<2x2x7xi1>
    "func.return"(%18, %arg1) : (tensor<2x2x7xi1>, tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
