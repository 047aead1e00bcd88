#loc = loc("f.py":1:2)
#s = "{replicated}"
!t = tensor<2xf32>
module @jit_f attributes {mhlo.num_replicas = 8 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: !t {mhlo.sharding = #s} loc(#loc), %arg1: tensor<i1>) -> (!t {jax.result_info = "[0]"}, tensor<i1>) attributes {a.b} {
    %0 = call @"<lambda>_1"(%arg0) : (!t) -> !t loc(#loc)
    %c = stablehlo.constant dense_resource<w-1> : tensor<2xf32>
    return %0, %arg1 : !t, tensor<i1>
  } loc(#loc)
  func.func private @"<lambda>_1"(%a: !t) -> !t {
    return %a : !t
  }
  func.func private @declared(tensor<f32>) -> tensor<f32>
} loc(unknown)
{-#
  dialect_resources: {
    builtin: { w-1: "0x040000000000803F00000040" }
  },
  external_resources: { x: { a: "{-#" } }
#-}
