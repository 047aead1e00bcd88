func.func @main(%arg0: tensor<7xi8>) -> tensor<i8> {
  %5 = stablehlo.constant dense<[[[3003003520461307658, -4661543424980191743]], [[3461955272792558839, 6628029452453710181]], [[-9213756531668739706, -8312695117059503200]]]> : tensor<3x1x2xi64>
  %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<7xi8>, tensor<3x1x2xi64>) -> tensor<1x3x2xi8>
  %13 = "stablehlo.slice"(%6) <{start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 0, 0, 0>, strides = array<i64: 2, 1, 1>}> : (tensor<1x3x2xi8>) -> tensor<0x0x0xi8>
  %16 = stablehlo.add %13, %13 : tensor<0x0x0xi8>
  %21 = stablehlo.constant dense<> : tensor<0x0x0xi8>
  %22 = stablehlo.or %13, %21 : tensor<0x0x0xi8>
  %23 = stablehlo.remainder %16, %22 : tensor<0x0x0xi8>
  %29 = stablehlo.reshape %23 : (tensor<0x0x0xi8>) -> tensor<0x0x2x0xi8>
  %i = stablehlo.constant dense<0> : tensor<i8>
  %31 = "stablehlo.reduce"(%29, %i) <{dimensions = array<i64: 0,1,2,3>}> ({
    ^bb0(%a: tensor<i8>, %b: tensor<i8>):
      %c = stablehlo.add %a, %b : tensor<i8>
      stablehlo.return %c : tensor<i8>
  }) : (tensor<0x0x2x0xi8>, tensor<i8>) -> tensor<i8>
  return %31 : tensor<i8>
}
