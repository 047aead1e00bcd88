"func.func"() <{function_type = (tensor<1x4x4x1xf32>, tensor<i1>, tensor<2xui64>) -> (), sym_name = "main"}> ({
^a(%x: tensor<1x4x4x1xf32>, %p: tensor<i1>, %s: tensor<2xui64>):
  %k = "stablehlo.constant"() <{value = dense<1.0> : tensor<2x2x1x3xf32>}> : () -> tensor<2x2x1x3xf32>
  %y = "stablehlo.convolution"(%x, %k) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 1, 2>, padding = dense<1> : tensor<2x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<1x4x4x1xf32>, tensor<2x2x1x3xf32>) -> tensor<1x5x3x3xf32>
  %z = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %w = "stablehlo.reduce_window"(%y, %z) <{window_dimensions = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>}> ({
  ^b(%a: tensor<f32>, %b: tensor<f32>):
    %m = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%m) : (tensor<f32>) -> ()
  }) : (tensor<1x5x3x3xf32>, tensor<f32>) -> tensor<1x5x3x3xf32>
  %t:2 = "stablehlo.rng_bit_generator"(%s) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %i = "stablehlo.constant"() <{value = dense<[[0], [2]]> : tensor<2x1xi64>}> : () -> tensor<2x1xi64>
  %g = "stablehlo.gather"(%t#1, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<4xui32>, tensor<2x1xi64>) -> tensor<2xui32>
  %n:2 = "stablehlo.while"(%g, %p) ({
  ^c(%u: tensor<2xui32>, %q: tensor<i1>):
    "stablehlo.return"(%q) : (tensor<i1>) -> ()
  }, {
  ^d(%u: tensor<2xui32>, %q: tensor<i1>):
    %h = "func.call"(%u) <{callee = @twice}> : (tensor<2xui32>) -> tensor<2xui32>
    "stablehlo.return"(%h, %q) : (tensor<2xui32>, tensor<i1>) -> ()
  }) : (tensor<2xui32>, tensor<i1>) -> (tensor<2xui32>, tensor<i1>)
  "func.return"() : () -> ()
}) : () -> ()
"func.func"() <{function_type = (tensor<2xui32>) -> tensor<2xui32>, sym_name = "twice", sym_visibility = "private"}> ({
^a(%x: tensor<2xui32>):
  %0 = "stablehlo.add"(%x, %x) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32> loc("f.py":1:2)
  "func.return"(%0) : (tensor<2xui32>) -> ()
}) : () -> ()
