"builtin.module"() <{sym_name = "forms"}> ({
  "sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"} : () -> ()
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true, mhlo.sharding = "{replicated}"}, {}], function_type = (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tuple<tensor<f32>, !stablehlo.token>), res_attrs = [{jax.result_info = "[0]"}, {}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2xf32>, %arg1: tensor<i1>):
    %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("after.py":5:6)
    %1 = "stablehlo.if"(%arg1) ({
      %2 = "stablehlo.abs"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%2) : (tensor<2xf32>) -> ()
    }, {
      %3 = "stablehlo.negate"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%3) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    %4 = "stablehlo.create_token"() : () -> !stablehlo.token
    %5:3 = "stablehlo.optimization_barrier"(%1, %4, %1) : (tensor<2xf32>, !stablehlo.token, tensor<2xf32>) -> (tensor<2xf32>, !stablehlo.token, tensor<2xf32>)
    %6 = "stablehlo.negate"(%5#2) : (tensor<2xf32>) -> tensor<2xf32>
    %7 = "stablehlo.custom_call"(%5#0) <{call_target_name = "f", api_version = 1 : i32}> {mhlo.frontend_attributes = {a = "b"}} : (tensor<2xf32>) -> tensor<f32>
    %8 = "stablehlo.tuple"(%7, %5#1) : (tensor<f32>, !stablehlo.token) -> tuple<tensor<f32>, !stablehlo.token>
    "func.return"(%5#2, %8) : (tensor<2xf32>, tuple<tensor<f32>, !stablehlo.token>) -> ()
  }) {llvm.some} : () -> () loc("before.py":1:2)
  "func.func"() <{function_type = () -> (), sym_name = "a b", sym_visibility = "private"}> ({
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "blocks"}> ({
    "x.y"() ({
      "x.z"() : () -> ()
    ^bb1:
      "x.v"() : () -> ()
    ^bb2(%arg0: i32, %arg1: i32):
      "x.w"(%arg0, %arg1) ({
      }) : (i32, i32) -> ()
    }) : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) {mhlo.num_replicas = 2 : i32} : () -> ()
