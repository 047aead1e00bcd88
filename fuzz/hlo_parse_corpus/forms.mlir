// What the parser takes besides what the printer writes.
#loc = loc("before.py":1:2)
!pair = tuple<tensor<f32>, !stablehlo.token>
"builtin.module"() <{sym_name = "forms", sym_visibility = "public"}> ({
^bb0:
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true, mhlo.sharding = "{replicated}"}, {}], function_type = (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, !pair), res_attrs = [{jax.result_info = "[0]"}, {}], sym_name = "main", sym_visibility = "public"}> ({
  // Names of every kind.
  ^entry(%x: tensor<2xf32> loc("args.py":3:4), %cond-1: tensor<i1> loc(#loc)):
    %a$b.c = "stablehlo.add"(%x, %x#0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc(#loc9)
    // Regions see what is outside; the same names in two of them.
    %7 = "stablehlo.if"(%cond-1) ({
      %t = "stablehlo.abs"(%a$b.c) : (tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%t) : (tensor<2xf32>) -> ()
    }, {
    ^bb0:
      %t = "stablehlo.negate"(%a$b.c) : (tensor<2xf32>) -> (tensor<2xf32>)
      "stablehlo.return"(%t) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    %token = "stablehlo.create_token"() : () -> !stablehlo.token
    // Results under several names.
    %p:2, %q = "stablehlo.optimization_barrier"(%7, %token, %7) : (tensor<2xf32>, !stablehlo.token, tensor<2xf32>) -> (tensor<2xf32>, !stablehlo.token, tensor<2xf32>)
    // Results without a name.
    "stablehlo.negate"(%q) : (tensor<2xf32>) -> tensor<2xf32>
    %c = "stablehlo.custom_call"(%p#0) <{call_target_name = "f"}> {api_version = 1 : i32, mhlo.frontend_attributes = {a = "b"}} : (tensor<2xf32>) -> tensor<f32>
    %u = "stablehlo.tuple"(%c, %p#1) : (tensor<f32>, !stablehlo.token) -> !pair
    "func.return"(%q, %u) : (tensor<2xf32>, !pair) -> ()
  }) {llvm.some = unit} : () -> () loc(#loc)
  "func.func"() <{function_type = () -> (), sym_name = "a b", sym_visibility = "private"}> ({
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "blocks"}> ({
    "x.y"() ({
      "x.z"() : () -> ()
    ^bb1:
      "x.v"() : () -> ()
    ^bb2(%0: i32, %1: i32):
      "x.w"(%0, %1) ({}) : (i32, i32) -> ()
    }) : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) {mhlo.num_replicas = 2 : i32} : () -> () loc(unknown)
#loc9 = loc("after.py":5:6)
{-#
  external_resources: { other: { note: "#-}" } }
#-}
