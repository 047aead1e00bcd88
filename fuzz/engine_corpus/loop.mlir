func.func @main(%x: tensor<4xf32>, %o: tensor<6x4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<6x4xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<6> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %f = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %s = stablehlo.add %a, %a : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  %g = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
  %r:3 = stablehlo.while(%i = %c, %a = %g, %q = %o) : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.add %a, %x : tensor<4xf32>
    %row = stablehlo.reshape %b : (tensor<4xf32>) -> tensor<1x4xf32>
    %u = stablehlo.dynamic_update_slice %q, %row, %i, %c : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
    stablehlo.return %j, %b, %u : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
  }
  return %r#1, %r#2 : tensor<4xf32>, tensor<6x4xf32>
}
