#map = affine_map<(d0) -> (d0)>
"func.func"() <{function_type = () -> (), sym_name = "f"}> ({
  "x.y"() {a = 1.5e-3 : f32, b = [true, 0xFF : ui8], c = {d, "e f" = @g::@h}, i = array<i1: true>, j = array<i64>, k = dense<[[1, -2]]> : tensor<1x2xi8>, l = dense<"0x0000803F"> : tensor<3xf32>, m = dense<(0x7F800000, 1.0)> : tensor<complex<f32>>, n = #map, o = #sdy.sharding<@m, [{"x"}, {}]>, p = loc("a"("b":1:2)), q = tensor<?x0xf8E4M3FN, #stablehlo.bounds<2, ?>>} : () -> ()
  "x.y"() {a = #stablehlo.dot<lhs_batching_dimensions = [0]>, b = #stablehlo.conv<[b, 0, f]x[i, 0, o]->[0, b, f]>, c = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 1, kernel_output_feature_dimension = 0, kernel_input_feature_dimension = 1, output_batch_dimension = 1, output_feature_dimension = 0>, d = #stablehlo<precision HIGH>, e = #stablehlo.result_accuracy<atol = 1.0e-30, mode = <HIGHEST>>, f = #stablehlo.dot_algorithm<lhs_precision_type = tf32>, g = #stablehlo.output_operand_alias<operand_index = 1>, h = "\41\\\"", i = (i32) -> (), j = tuple<i1, !stablehlo.token>, k = memref<2xf32>, l = !x.y<z>} : () -> ()
  "func.return"() : () -> ()
}) : () -> ()
