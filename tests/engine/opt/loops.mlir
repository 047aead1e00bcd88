// ==== loops: a branch that is known
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %p = stablehlo.constant dense<false> : tensor<i1>
  %i = stablehlo.constant dense<7> : tensor<i32>
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<f32>
  }, {
    %1 = stablehlo.negate %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %2 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<f32>
  }, {
    %3 = stablehlo.abs %0 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0, %2 : tensor<f32>, tensor<f32>
}
// ->
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %1 = stablehlo.negate %x : tensor<f32>
  %3 = stablehlo.abs %1 : tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}
// ==== loops: one that never runs
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.while(%a = %x) : tensor<f32>
    cond {
      %1 = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.negate %a : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }
  return %0 : tensor<f32>
}
// ->
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
// ==== loops: what does not change is not carried, what nobody needs neither
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%i = %c, %same = %x, %acc = %x, %dead = %x) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3 = stablehlo.add %acc, %same : tensor<4xf32>
      %4 = stablehlo.multiply %dead, %acc : tensor<4xf32>
      stablehlo.return %2, %same, %3, %4 : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
  return %0#2, %0#1 : tensor<4xf32>, tensor<4xf32>
}
// ->
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %acc = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3 = stablehlo.add %acc, %x : tensor<4xf32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<4xf32>
    }
  return %0#1, %x : tensor<4xf32>, tensor<4xf32>
}
// ==== loops: values that need each other and matter through one stay
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %c, %a = %x, %b = %y) : tensor<i32>, tensor<f32>, tensor<f32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      stablehlo.return %2, %b, %a : tensor<i32>, tensor<f32>, tensor<f32>
    }
  return %0#1 : tensor<f32>
}
// -> same
// ==== loops: what depends on nothing inside is done before
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %acc = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %k = stablehlo.constant dense<2.0> : tensor<f32>
      %w = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %3 = stablehlo.exponential %y : tensor<4xf32>
      %4 = stablehlo.multiply %3, %w : tensor<4xf32>
      %5 = stablehlo.multiply %acc, %w : tensor<4xf32>
      %6 = stablehlo.add %5, %4 : tensor<4xf32>
      stablehlo.return %2, %6 : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
}
// ->
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %3 = stablehlo.exponential %y : tensor<4xf32>
  %kk = stablehlo.constant dense<2.0> : tensor<f32>
  %ww = stablehlo.broadcast_in_dim %kk, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %4 = stablehlo.multiply %3, %ww : tensor<4xf32>
  %0:2 = stablehlo.while(%i = %c, %acc = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %k = stablehlo.constant dense<2.0> : tensor<f32>
      %w = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %5 = stablehlo.multiply %acc, %w : tensor<4xf32>
      %6 = stablehlo.add %5, %4 : tensor<4xf32>
      stablehlo.return %2, %6 : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
}
// ==== loops: out of two loops at once
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<f32>
    cond {
      %1 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3:2 = stablehlo.while(%j = %z, %b = %a) : tensor<i32>, tensor<f32>
        cond {
          %4 = stablehlo.constant dense<2> : tensor<i32>
          %5 = stablehlo.compare LT, %j, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %5 : tensor<i1>
        } do {
          %4 = stablehlo.constant dense<1> : tensor<i32>
          %5 = stablehlo.add %j, %4 : tensor<i32>
          %6 = stablehlo.cosine %y : tensor<f32>
          %7 = stablehlo.add %b, %6 : tensor<f32>
          stablehlo.return %5, %7 : tensor<i32>, tensor<f32>
        }
      stablehlo.return %2, %3#1 : tensor<i32>, tensor<f32>
    }
  return %0#1 : tensor<f32>
}
// ->
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %6 = stablehlo.cosine %y : tensor<f32>
  %0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<f32>
    cond {
      %1 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3:2 = stablehlo.while(%j = %z, %b = %a) : tensor<i32>, tensor<f32>
        cond {
          %4 = stablehlo.constant dense<2> : tensor<i32>
          %5 = stablehlo.compare LT, %j, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %5 : tensor<i1>
        } do {
          %4 = stablehlo.constant dense<1> : tensor<i32>
          %5 = stablehlo.add %j, %4 : tensor<i32>
          %7 = stablehlo.add %b, %6 : tensor<f32>
          stablehlo.return %5, %7 : tensor<i32>, tensor<f32>
        }
      stablehlo.return %2, %3#1 : tensor<i32>, tensor<f32>
    }
  return %0#1 : tensor<f32>
}
// ==== loop_variables: variables that collect the same rows
func.func @main(%x: tensor<2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %z, %b = %z) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3 = stablehlo.cosine %x : tensor<2xf32>
      %4 = stablehlo.reshape %3 : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.dynamic_update_slice %b, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %6 : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  return %0#1, %0#2 : tensor<3x2xf32>, tensor<3x2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %z, %b = %z) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3 = stablehlo.cosine %x : tensor<2xf32>
      %4 = stablehlo.reshape %3 : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %b : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  return %0#1, %0#1 : tensor<3x2xf32>, tensor<3x2xf32>
}
// ==== loop_variables: other indices or another beginning
func.func @main(%x: tensor<2xf32>, %y: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:4 = stablehlo.while(%i = %c, %a = %z, %b = %z, %d = %y) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %3 = stablehlo.cosine %x : tensor<2xf32>
      %4 = stablehlo.reshape %3 : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.dynamic_update_slice %b, %4, %2, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %7 = stablehlo.dynamic_update_slice %d, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %6, %7 : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  return %0#1, %0#2, %0#3 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}
// -> same
// ==== loop_rows: a cheap function of rows that are kept
func.func @main(%x: tensor<2xf32>) -> tensor<1x2xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %z, %b = %z) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.cosine %x : tensor<2xf32>
      %o = stablehlo.constant dense<1.0> : tensor<2xf32>
      %t = stablehlo.subtract %o, %s : tensor<2xf32>
      %4 = stablehlo.reshape %s : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.reshape %t : (tensor<2xf32>) -> tensor<1x2xf32>
      %7 = stablehlo.dynamic_update_slice %b, %6, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %7 : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  %p = stablehlo.dynamic_slice %0#1, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %q = stablehlo.dynamic_slice %0#2, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %r = stablehlo.multiply %p, %q : tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}
// ->
func.func @main(%x: tensor<2xf32>) -> tensor<1x2xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %z, %b = %z) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.cosine %x : tensor<2xf32>
      %o = stablehlo.constant dense<1.0> : tensor<2xf32>
      %t = stablehlo.subtract %o, %s : tensor<2xf32>
      %4 = stablehlo.reshape %s : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.reshape %t : (tensor<2xf32>) -> tensor<1x2xf32>
      %7 = stablehlo.dynamic_update_slice %b, %6, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %7 : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  %p = stablehlo.dynamic_slice %0#1, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %u = stablehlo.constant dense<1.0> : tensor<1x2xf32>
  %v = stablehlo.dynamic_slice %0#1, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %q = stablehlo.subtract %u, %v : tensor<1x2xf32>
  %r = stablehlo.multiply %p, %q : tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}
// ==== loop_rows: rows at another index
func.func @main(%x: tensor<2xf32>) -> tensor<1x2xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %z, %b = %z) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.cosine %x : tensor<2xf32>
      %o = stablehlo.constant dense<1.0> : tensor<2xf32>
      %t = stablehlo.subtract %o, %s : tensor<2xf32>
      %4 = stablehlo.reshape %s : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.reshape %t : (tensor<2xf32>) -> tensor<1x2xf32>
      %7 = stablehlo.dynamic_update_slice %b, %6, %2, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %7 : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  %p = stablehlo.dynamic_slice %0#1, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %q = stablehlo.dynamic_slice %0#2, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %r = stablehlo.multiply %p, %q : tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}
// -> same
// ==== loop_rows: one value kept in two shapes
func.func @main(%x: tensor<2x3xf32>, %k: tensor<i32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.constant dense<0.0> : tensor<5x6xf32>
  %z = stablehlo.constant dense<0.0> : tensor<5x2x3xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %y, %b = %z) : tensor<i32>, tensor<5x6xf32>, tensor<5x2x3xf32>
    cond {
      %1 = stablehlo.constant dense<5> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.cosine %x : tensor<2x3xf32>
      %4 = stablehlo.reshape %s : (tensor<2x3xf32>) -> tensor<1x6xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<5x6xf32>, tensor<1x6xf32>, tensor<i32>, tensor<i32>) -> tensor<5x6xf32>
      %6 = stablehlo.reshape %s : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
      %7 = stablehlo.dynamic_update_slice %b, %6, %i, %c, %c : (tensor<5x2x3xf32>, tensor<1x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x2x3xf32>
      stablehlo.return %2, %5, %7 : tensor<i32>, tensor<5x6xf32>, tensor<5x2x3xf32>
    }
  %p = stablehlo.dynamic_slice %0#1, %k, %c, sizes = [1, 6] : (tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
  %q = stablehlo.dynamic_slice %0#2, %k, %c, %c, sizes = [1, 2, 3] : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
  %u = stablehlo.reshape %p : (tensor<1x6xf32>) -> tensor<2x3xf32>
  %v = stablehlo.reshape %q : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  %r = stablehlo.multiply %u, %v : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
// -> same
// ==== loop_rows: rows that are read as a whole
func.func @main(%x: tensor<2xf32>) -> (tensor<1x2xf32>, tensor<3x2xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<3x2xf32>
  %0:3 = stablehlo.while(%i = %c, %a = %z, %b = %z) : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    cond {
      %1 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.cosine %x : tensor<2xf32>
      %o = stablehlo.constant dense<1.0> : tensor<2xf32>
      %t = stablehlo.subtract %o, %s : tensor<2xf32>
      %4 = stablehlo.reshape %s : (tensor<2xf32>) -> tensor<1x2xf32>
      %5 = stablehlo.dynamic_update_slice %a, %4, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      %6 = stablehlo.reshape %t : (tensor<2xf32>) -> tensor<1x2xf32>
      %7 = stablehlo.dynamic_update_slice %b, %6, %i, %c : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
      stablehlo.return %2, %5, %7 : tensor<i32>, tensor<3x2xf32>, tensor<3x2xf32>
    }
  %p = stablehlo.dynamic_slice %0#1, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %q = stablehlo.dynamic_slice %0#2, %c, %c, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %r = stablehlo.multiply %p, %q : tensor<1x2xf32>
  return %r, %0#2 : tensor<1x2xf32>, tensor<3x2xf32>
}
// -> same
