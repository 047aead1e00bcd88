"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<i64>, tensor<4x8xui16>, tensor<i64>, tensor<2x16xf32>) -> (tensor<f64>, tensor<2x16xf32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<4x8xui16>, %arg2: tensor<i64>, %arg3: tensor<2x16xf32>):
    %0 = "stablehlo.constant"() <{value = dense<"0x0000030000000100000003000200010003000200020005000300050005000200000001000200020000000200010005000100000005000000040002000000040004000200040003000000000005000300030002000100050000000300000005000300040003000400050005000300000005000500040000000000020002000300"> : tensor<8x2x4xui16>}> : () -> tensor<8x2x4xui16>
    %1 = "stablehlo.constant"() <{value = dense<[[-5, 0, 2, 1], [0, 2, -1, 3]]> : tensor<2x4xi32>}> : () -> tensor<2x4xi32>
    %2 = "stablehlo.scatter"(%arg1, %1, %0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg4: tensor<ui16>, %arg5: tensor<ui16>):
      %3 = "stablehlo.add"(%arg4, %arg5) : (tensor<ui16>, tensor<ui16>) -> tensor<ui16>
      "stablehlo.return"(%3) : (tensor<ui16>) -> ()
    }) : (tensor<4x8xui16>, tensor<2x4xi32>, tensor<8x2x4xui16>) -> tensor<4x8xui16>
    %4 = "stablehlo.multiply"(%arg3, %arg3) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.5> : tensor<2x16xf32>}> : () -> tensor<2x16xf32>
    %6 = "stablehlo.abs"(%arg3) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %7 = "stablehlo.add"(%6, %5) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %8 = "stablehlo.power"(%7, %arg3) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %9 = "stablehlo.convert"(%arg0) : (tensor<i64>) -> tensor<f64>
    "func.return"(%9, %arg3) : (tensor<f64>, tensor<2x16xf32>) -> ()
  }) : () -> ()
}) : () -> ()
