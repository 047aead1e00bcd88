// Programs that are difficult cases of fusion, views, order, memory and steps.
// The compiled and the interpreted program must give the same results.
#include "lower/compile.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../opt/network.h"
#include "base/alloc.h"
#include "hlo/print.h"

#define MAX_VALUES 16

typedef struct program_case {
  const char *name;
  const char *text;
} program_case;

// A loop of n iterations over the five rows of %x, from the last: products of
// rows, of a variable, and sums of both.
#define PRODUCTS_OF_A_LOOP(n)                                                                                                                          \
  "func.func @main(%x: tensor<5x2x3xf32>, %w: tensor<3x4xf32>, %h: tensor<2x3xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x3xf32>) {\n"        \
  "%c = stablehlo.constant dense<0> : tensor<i32>\n"                                                                                                   \
  "%n = stablehlo.constant dense<" n                                                                                                                   \
  "> : tensor<i32>\n"                                                                                                                                  \
  "%last = stablehlo.constant dense<4> : tensor<i32>\n"                                                                                                \
  "%one = stablehlo.constant dense<1> : tensor<i32>\n"                                                                                                 \
  "%z = stablehlo.constant dense<0.5> : tensor<3x4xf32>\n"                                                                                             \
  "%r:4 = stablehlo.while(%i = %c, %a = %z, %b = %z, %s = %h) : tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x3xf32>\n"                      \
  "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"                                                              \
  "stablehlo.return %p : tensor<i1> }\n"                                                                                                               \
  "do { %j = stablehlo.add %i, %one : tensor<i32>\n"                                                                                                   \
  "%k = stablehlo.subtract %last, %i : tensor<i32>\n"                                                                                                  \
  "%0 = stablehlo.dynamic_slice %x, %k, %c, %c, sizes = [1, 2, 3] : (tensor<5x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>\n" \
  "%1 = stablehlo.reshape %0 : (tensor<1x2x3xf32>) -> tensor<2x3xf32>\n"                                                                               \
  "%2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>\n"                          \
  "%3 = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>\n"                          \
  "%4 = stablehlo.add %2, %3 : tensor<2x4xf32>\n"                                                                                                      \
  "%g = stablehlo.tanh %4 : tensor<2x4xf32>\n"                                                                                                         \
  "%5 = stablehlo.dot_general %1, %g, contracting_dims = [0] x [0] : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>\n"                          \
  "%6 = stablehlo.add %a, %5 : tensor<3x4xf32>\n"                                                                                                      \
  "%7 = stablehlo.dot_general %s, %g, contracting_dims = [0] x [0] : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>\n"                          \
  "%8 = stablehlo.add %7, %b : tensor<3x4xf32>\n"                                                                                                      \
  "%t = stablehlo.slice %g [0:2, 0:3] : (tensor<2x4xf32>) -> tensor<2x3xf32>\n"                                                                        \
  "stablehlo.return %j, %6, %8, %t : tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x3xf32> }\n"                                               \
  "return %r#1, %r#2, %r#3 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x3xf32> }"

static const program_case cases[] = {
  { "ApproxTopK",
    "func.func @better(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, "
    "%j: tensor<i32>) -> tensor<i1> {\n"
    "%0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\n"
    "stablehlo.return %0 : tensor<i1> }\n"
    "func.func @main(%x: tensor<2x9xf32>, %i: tensor<2x9xi32>) -> "
    "(tensor<2x3xf32>, tensor<2x3xi32>) {\n"
    "%a = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%b = stablehlo.constant dense<-1> : tensor<i32>\n"
    "%0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %a, %b) "
    "{called_computations = [@better], mhlo.backend_config = "
    "{reduction_dim = 1 : i64, top_k = 3 : i64}} : (tensor<2x9xf32>, "
    "tensor<2x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x3xf32>, "
    "tensor<2x3xi32>)\n"
    "return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32> }" },
  { "sharding constraint",
    "sdy.mesh @mesh = <[\"a\"=1]>\n"
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "%0 = sdy.sharding_constraint %x <@mesh, [{\"a\"}]> : tensor<4xf32>\n"
    "%1 = stablehlo.add %0, %0 : tensor<4xf32>\n"
    "return %1 : tensor<4xf32> }" },
  { "chain",
    "func.func @main(%a: tensor<5x7xf32>, %b: tensor<7xf32>) -> "
    "tensor<5x7xf32> {\n"
    "%0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<7xf32>) "
    "-> tensor<5x7xf32>\n"
    "%1 = stablehlo.add %a, %0 : tensor<5x7xf32>\n"
    "%2 = stablehlo.multiply %1, %1 : tensor<5x7xf32>\n"
    "return %2 : tensor<5x7xf32> }" },
  { "several results of one loop",
    "func.func @main(%a: tensor<33xf32>) -> (tensor<33xf32>, tensor<33xf32>, "
    "tensor<33xf32>) {\n"
    "%0 = stablehlo.add %a, %a : tensor<33xf32>\n"
    "%1 = stablehlo.multiply %0, %a : tensor<33xf32>\n"
    "%2 = stablehlo.subtract %1, %0 : tensor<33xf32>\n"
    "return %0, %1, %2 : tensor<33xf32>, tensor<33xf32>, tensor<33xf32> }" },
  { "a result twice, an argument and a constant",
    "func.func @main(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, "
    "tensor<3xf32>, tensor<3xi32>, tensor<2xf32>) {\n"
    "%0 = stablehlo.add %a, %a : tensor<3xf32>\n"
    "%c = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>\n"
    "%s = stablehlo.constant dense<2.5> : tensor<2xf32>\n"
    "return %0, %0, %a, %c, %s : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, "
    "tensor<3xi32>, tensor<2xf32> }" },
  { "arguments that change places",
    "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: "
    "tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, "
    "tensor<4xf32>) {\n"
    "return %b, %a : tensor<4xf32>, tensor<4xf32> }" },
  { "an update in place, read by another after it",
    "func.func @main(%p: tensor<40xf32> {tf.aliasing_output = 0 : i32}, %g: "
    "tensor<40xf32>) -> (tensor<40xf32>, tensor<f32>) {\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%0 = stablehlo.subtract %p, %g : tensor<40xf32>\n"
    "%1 = stablehlo.reduce(%p init: %z) applies stablehlo.add across "
    "dimensions = [0] : (tensor<40xf32>, tensor<f32>) -> tensor<f32>\n"
    "return %0, %1 : tensor<40xf32>, tensor<f32> }" },
  { "an update whose argument is read backwards",
    "func.func @main(%p: tensor<40xf32> {tf.aliasing_output = 0 : i32}) -> "
    "tensor<40xf32> {\n"
    "%r = stablehlo.reverse %p, dims = [0] : tensor<40xf32>\n"
    "%0 = stablehlo.subtract %p, %r : tensor<40xf32>\n"
    "return %0 : tensor<40xf32> }" },
  { "two sums over the same",
    "func.func @main(%x: tensor<6x4x50xf32>) -> (tensor<4xf32>, "
    "tensor<4xf32>) {\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%q = stablehlo.multiply %x, %x : tensor<6x4x50xf32>\n"
    "%0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
    "dimensions = [0, 2] : (tensor<6x4x50xf32>, tensor<f32>) -> "
    "tensor<4xf32>\n"
    "%1 = stablehlo.reduce(%q init: %z) applies stablehlo.add across "
    "dimensions = [0, 2] : (tensor<6x4x50xf32>, tensor<f32>) -> "
    "tensor<4xf32>\n"
    "return %0, %1 : tensor<4xf32>, tensor<4xf32> }" },
  { "softmax",
    "func.func @main(%x: tensor<8x37xf32>) -> tensor<8x37xf32> {\n"
    "%lo = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%m = stablehlo.reduce(%x init: %lo) applies stablehlo.maximum across "
    "dimensions = [1] : (tensor<8x37xf32>, tensor<f32>) -> tensor<8xf32>\n"
    "%mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> "
    "tensor<8x37xf32>\n"
    "%d = stablehlo.subtract %x, %mb : tensor<8x37xf32>\n"
    "%e = stablehlo.exponential %d : tensor<8x37xf32>\n"
    "%s = stablehlo.reduce(%e init: %z) applies stablehlo.add across "
    "dimensions = [1] : (tensor<8x37xf32>, tensor<f32>) -> tensor<8xf32>\n"
    "%sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> "
    "tensor<8x37xf32>\n"
    "%r = stablehlo.divide %e, %sb : tensor<8x37xf32>\n"
    "return %r : tensor<8x37xf32> }" },
  { "a norm over groups of four channels",
    "func.func @main(%x: tensor<2x9x5x12xf32>, %g: tensor<12xf32>) -> "
    "(tensor<2x9x5x12xf32>, tensor<2x3xf32>) {\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%n = stablehlo.constant dense<180.0> : tensor<2x3xf32>\n"
    "%0 = stablehlo.reshape %x : (tensor<2x9x5x12xf32>) -> "
    "tensor<2x9x5x3x4xf32>\n"
    "%b = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 4, 5] : "
    "(tensor<2x9x5x3x4xf32>) -> tensor<2x9x5x7x3x4xf32>\n"
    "%1 = stablehlo.reduce(%b init: %z) applies stablehlo.add across "
    "dimensions = [1, 2, 3, 5] : (tensor<2x9x5x7x3x4xf32>, tensor<f32>) -> "
    "tensor<2x3xf32>\n"
    "%2 = stablehlo.divide %1, %n : tensor<2x3xf32>\n"
    "%3 = stablehlo.broadcast_in_dim %2, dims = [0, 4] : (tensor<2x3xf32>) -> "
    "tensor<2x9x5x7x3x4xf32>\n"
    "%4 = stablehlo.subtract %b, %3 : tensor<2x9x5x7x3x4xf32>\n"
    "%5 = stablehlo.multiply %4, %4 : tensor<2x9x5x7x3x4xf32>\n"
    "%6 = stablehlo.reduce(%5 init: %z) applies stablehlo.add across "
    "dimensions = [1, 2, 3, 5] : (tensor<2x9x5x7x3x4xf32>, tensor<f32>) -> "
    "tensor<2x3xf32>\n"
    "%7 = stablehlo.broadcast_in_dim %6, dims = [0, 4] : (tensor<2x3xf32>) -> "
    "tensor<2x9x5x7x3x4xf32>\n"
    "%8 = stablehlo.divide %4, %7 : tensor<2x9x5x7x3x4xf32>\n"
    "%9 = stablehlo.reduce(%8 init: %z) applies stablehlo.add across "
    "dimensions = [3] : (tensor<2x9x5x7x3x4xf32>, tensor<f32>) -> "
    "tensor<2x9x5x3x4xf32>\n"
    "%10 = stablehlo.reshape %9 : (tensor<2x9x5x3x4xf32>) -> "
    "tensor<2x9x5x12xf32>\n"
    "%11 = stablehlo.broadcast_in_dim %g, dims = [3] : (tensor<12xf32>) -> "
    "tensor<2x9x5x12xf32>\n"
    "%12 = stablehlo.multiply %10, %11 : tensor<2x9x5x12xf32>\n"
    "return %12, %6 : tensor<2x9x5x12xf32>, tensor<2x3xf32> }" },
  { "views at both ends",
    "func.func @main(%x: tensor<6x4xf32>) -> tensor<3x8xf32> {\n"
    "%0 = stablehlo.reshape %x : (tensor<6x4xf32>) -> tensor<24xf32>\n"
    "%1 = stablehlo.negate %0 : tensor<24xf32>\n"
    "%2 = stablehlo.reshape %1 : (tensor<24xf32>) -> tensor<3x8xf32>\n"
    "return %2 : tensor<3x8xf32> }" },
  { "a view that is a result, and used",
    "func.func @main(%x: tensor<6x4xf32>) -> (tensor<24xf32>, "
    "tensor<24xf32>) {\n"
    "%n = stablehlo.negate %x : tensor<6x4xf32>\n"
    "%0 = stablehlo.reshape %n : (tensor<6x4xf32>) -> tensor<24xf32>\n"
    "%1 = stablehlo.add %0, %0 : tensor<24xf32>\n"
    "return %0, %1 : tensor<24xf32>, tensor<24xf32> }" },
  { "products with a loop between",
    "func.func @main(%x: tensor<9x16xf32>, %w: tensor<16x8xf32>, %v: "
    "tensor<8x3xf32>) -> tensor<9x3xf32> {\n"
    "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<9x16xf32>, tensor<16x8xf32>) -> tensor<9x8xf32>\n"
    "%z = stablehlo.constant dense<0.0> : tensor<9x8xf32>\n"
    "%1 = stablehlo.maximum %0, %z : tensor<9x8xf32>\n"
    "%2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : "
    "(tensor<9x8xf32>, tensor<8x3xf32>) -> tensor<9x3xf32>\n"
    "return %2 : tensor<9x3xf32> }" },
  { "a loop that counts and sums",
    "func.func @main(%x: tensor<5xf32>) -> (tensor<i32>, tensor<5xf32>) {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<7> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%r:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<5xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%b = stablehlo.add %a, %x : tensor<5xf32>\n"
    "stablehlo.return %j, %b : tensor<i32>, tensor<5xf32> }\n"
    "return %r#0, %r#1 : tensor<i32>, tensor<5xf32> }" },
  { "a loop whose values change places",
    "func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>) -> "
    "(tensor<5xf32>, tensor<5xf32>) {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<3> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%r:3 = stablehlo.while(%i = %c, %a = %x, %b = %y) : tensor<i32>, "
    "tensor<5xf32>, tensor<5xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "stablehlo.return %j, %b, %a : tensor<i32>, tensor<5xf32>, tensor<5xf32> "
    "}\n"
    "return %r#1, %r#2 : tensor<5xf32>, tensor<5xf32> }" },
  { "a loop in a loop",
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<3> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%r:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<4xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%s:2 = stablehlo.while(%k = %c, %d = %a) : tensor<i32>, tensor<4xf32>\n"
    "cond { %p = stablehlo.compare LT, %k, %i : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %l = stablehlo.add %k, %one : tensor<i32>\n"
    "%e = stablehlo.add %d, %x : tensor<4xf32>\n"
    "stablehlo.return %l, %e : tensor<i32>, tensor<4xf32> }\n"
    "stablehlo.return %j, %s#1 : tensor<i32>, tensor<4xf32> }\n"
    "return %r#1 : tensor<4xf32> }" },
  { "a loop that stacks rows",
    "func.func @main(%x: tensor<4xf32>) -> tensor<6x4xf32> {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<6> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%z = stablehlo.constant dense<0.0> : tensor<6x4xf32>\n"
    "%r:3 = stablehlo.while(%i = %c, %a = %x, %o = %z) : tensor<i32>, "
    "tensor<4xf32>, tensor<6x4xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%b = stablehlo.add %a, %x : tensor<4xf32>\n"
    "%row = stablehlo.reshape %b : (tensor<4xf32>) -> tensor<1x4xf32>\n"
    "%u = stablehlo.dynamic_update_slice %o, %row, %i, %c : (tensor<6x4xf32>, "
    "tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>\n"
    "stablehlo.return %j, %b, %u : tensor<i32>, tensor<4xf32>, "
    "tensor<6x4xf32> }\n"
    "return %r#2 : tensor<6x4xf32> }" },
  // What a loop of a native function keeps in registers: slices and pieces of
  // three elements, an element that is known when it runs, both branches, rows
  // that are written, an update of a small tensor and a sum, which are calls.
  { "a loop on three elements",
    "func.func @main(%x: tensor<3xf32>, %q: tensor<9x3xf32>) -> "
    "(tensor<3xf32>, tensor<9x3xf32>, tensor<3xf32>) {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<9> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%two = stablehlo.constant dense<2> : tensor<i32>\n"
    "%f = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%r:4 = stablehlo.while(%i = %c, %a = %x, %o = %q, %s = %x) : tensor<i32>, "
    "tensor<3xf32>, tensor<9x3xf32>, tensor<3xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%l = stablehlo.slice %a [0:1] : (tensor<3xf32>) -> tensor<1xf32>\n"
    "%m = stablehlo.slice %a [1:3] : (tensor<3xf32>) -> tensor<2xf32>\n"
    "%t = stablehlo.concatenate %m, %l, dim = 0 : (tensor<2xf32>, "
    "tensor<1xf32>) -> tensor<3xf32>\n"
    "%k = stablehlo.remainder %i, %n : tensor<i32>\n"
    "%e = stablehlo.dynamic_slice %a, %k, sizes = [1] : (tensor<3xf32>, "
    "tensor<i32>) -> tensor<1xf32>\n"
    "%w = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<1xf32>) -> "
    "tensor<3xf32>\n"
    "%u = stablehlo.add %t, %w : tensor<3xf32>\n"
    "%g = stablehlo.remainder %i, %two : tensor<i32>\n"
    "%h = stablehlo.compare EQ, %g, %c : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "%v = \"stablehlo.if\"(%h) ({\n"
    "%y = stablehlo.subtract %u, %s : tensor<3xf32>\n"
    "stablehlo.return %y : tensor<3xf32> }, {\n"
    "stablehlo.return %a : tensor<3xf32> }) : (tensor<i1>) -> tensor<3xf32>\n"
    "%row = stablehlo.reshape %v : (tensor<3xf32>) -> tensor<1x3xf32>\n"
    "%z = stablehlo.dynamic_update_slice %o, %row, %i, %c : "
    "(tensor<9x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> "
    "tensor<9x3xf32>\n"
    "%d = stablehlo.reduce(%v init: %f) applies stablehlo.maximum across "
    "dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>\n"
    "%b = stablehlo.reshape %d : (tensor<f32>) -> tensor<1xf32>\n"
    "%sn = stablehlo.dynamic_update_slice %s, %b, %g : (tensor<3xf32>, "
    "tensor<1xf32>, tensor<i32>) -> tensor<3xf32>\n"
    "stablehlo.return %j, %v, %z, %sn : tensor<i32>, tensor<3xf32>, "
    "tensor<9x3xf32>, tensor<3xf32> }\n"
    "return %r#1, %r#2, %r#3 : tensor<3xf32>, tensor<9x3xf32>, "
    "tensor<3xf32> }" },
  // An element of a carried value that stands for all of it: in the function
  // the choices among equal values would be selects of nothing.
  { "a loop on bf16 that spreads an element",
    "func.func @main(%x: tensor<4xbf16>, %y: tensor<4xbf16>, %o: "
    "tensor<5x4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>, "
    "tensor<5x4xbf16>, tensor<i32>) {\n"
    "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "%c2 = stablehlo.constant dense<2> : tensor<i32>\n"
    "%n = stablehlo.constant dense<4> : tensor<i32>\n"
    "%r:4 = stablehlo.while(%i = %c0, %a = %y, %b = %x, %w = %o) : "
    "tensor<i32>, tensor<4xbf16>, tensor<4xbf16>, tensor<5x4xbf16> cond {\n"
    "%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1> stablehlo.return %p : tensor<i1> } do {\n"
    "%v1 = stablehlo.dynamic_slice %b, %c1, sizes = [1] : (tensor<4xbf16>, "
    "tensor<i32>) -> tensor<1xbf16>\n"
    "%v2 = stablehlo.reshape %v1 : (tensor<1xbf16>) -> tensor<bf16>\n"
    "%v3 = stablehlo.broadcast_in_dim %v2, dims = [] : (tensor<bf16>) -> "
    "tensor<4xbf16>\n"
    "%v9 = stablehlo.broadcast_in_dim %c2, dims = [] : (tensor<i32>) -> "
    "tensor<4xi32>\n"
    "%v10 = stablehlo.iota dim = 0 : tensor<4xi32>\n"
    "%v11 = stablehlo.xor %v10, %v9 : tensor<4xi32>\n"
    "%v12 = stablehlo.reshape %v11 : (tensor<4xi32>) -> tensor<4x1xi32>\n"
    "%v13 = \"stablehlo.gather\"(%v3, %v12) {dimension_numbers = "
    "#stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
    "array<i64: 1>, indices_are_sorted = false} : (tensor<4xbf16>, "
    "tensor<4x1xi32>) -> tensor<4xbf16>\n"
    "%v16 = stablehlo.iota dim = 0 : tensor<4xbf16>\n"
    "%v17 = stablehlo.add %v16, %v3 : tensor<4xbf16>\n"
    "%v18 = stablehlo.reshape %v17 : (tensor<4xbf16>) -> tensor<1x4xbf16>\n"
    "%v19 = stablehlo.dynamic_update_slice %w, %v18, %i, %c1 : "
    "(tensor<5x4xbf16>, tensor<1x4xbf16>, tensor<i32>, tensor<i32>) -> "
    "tensor<5x4xbf16>\n"
    "%v20 = stablehlo.add %i, %c1 : tensor<i32>\n"
    "stablehlo.return %v20, %v13, %a, %v19 : tensor<i32>, tensor<4xbf16>, "
    "tensor<4xbf16>, tensor<5x4xbf16> }\n"
    "return %r#1, %r#2, %r#3, %r#0 : tensor<4xbf16>, tensor<4xbf16>, "
    "tensor<5x4xbf16>, tensor<i32> }" },
  // A selector and a predicate that no iteration changes have no registers.
  { "a loop that branches by what is outside of it",
    "func.func @main(%k: tensor<i32>, %x: tensor<i32>, %y: tensor<2xf32>) -> "
    "(tensor<i32>, tensor<2xf32>) {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<5> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%g = stablehlo.compare LT, %k, %x : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "%r:3 = stablehlo.while(%i = %c, %a = %x, %b = %y) : tensor<i32>, "
    "tensor<i32>, tensor<2xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%v = \"stablehlo.case\"(%k) ({\n"
    "%t = stablehlo.add %a, %i : tensor<i32>\n"
    "stablehlo.return %t : tensor<i32> }, {\n"
    "%t = stablehlo.subtract %i, %a : tensor<i32>\n"
    "stablehlo.return %t : tensor<i32> }) : (tensor<i32>) -> tensor<i32>\n"
    "%w = \"stablehlo.if\"(%g) ({\n"
    "%t = stablehlo.add %b, %y : tensor<2xf32>\n"
    "stablehlo.return %t : tensor<2xf32> }, {\n"
    "%t = stablehlo.negate %b : tensor<2xf32>\n"
    "stablehlo.return %t : tensor<2xf32> }) : (tensor<i1>) -> "
    "tensor<2xf32>\n"
    "stablehlo.return %j, %v, %w : tensor<i32>, tensor<i32>, "
    "tensor<2xf32> }\n"
    "return %r#1, %r#2 : tensor<i32>, tensor<2xf32> }" },
  { "products of a loop over rows", PRODUCTS_OF_A_LOOP("5") },
  { "products of a loop over some rows", PRODUCTS_OF_A_LOOP("3") },
  { "branches",
    "func.func @main(%x: tensor<4xf32>, %k: tensor<i32>) -> (tensor<4xf32>, "
    "tensor<4xf32>) {\n"
    "%z = stablehlo.constant dense<1> : tensor<i32>\n"
    "%p = stablehlo.compare LT, %k, %z : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "%0:2 = \"stablehlo.if\"(%p) ({\n"
    "%a = stablehlo.add %x, %x : tensor<4xf32>\n"
    "stablehlo.return %a, %x : tensor<4xf32>, tensor<4xf32> }, {\n"
    "%a = stablehlo.negate %x : tensor<4xf32>\n"
    "stablehlo.return %a, %a : tensor<4xf32>, tensor<4xf32> }) : "
    "(tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)\n"
    "%1 = \"stablehlo.case\"(%k) ({\n"
    "stablehlo.return %x : tensor<4xf32> }, {\n"
    "%a = stablehlo.multiply %x, %0#0 : tensor<4xf32>\n"
    "stablehlo.return %a : tensor<4xf32> }) : (tensor<i32>) -> "
    "tensor<4xf32>\n"
    "return %0#1, %1 : tensor<4xf32>, tensor<4xf32> }" },
  { "sorting what a loop made",
    "func.func @main(%x: tensor<3x9xf32>) -> tensor<3x9xf32> {\n"
    "%n = stablehlo.negate %x : tensor<3x9xf32>\n"
    "%0 = \"stablehlo.sort\"(%n) <{dimension = 1 : i64}> ({\n"
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "%p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\n"
    "stablehlo.return %p : tensor<i1> }) : (tensor<3x9xf32>) -> "
    "tensor<3x9xf32>\n"
    "return %0 : tensor<3x9xf32> }" },
  { "what the interpreter sorts, by 8-bit floats",
    "func.func @main(%x: tensor<3x9xf32>) -> tensor<3x9xf32> {\n"
    "%n = stablehlo.negate %x : tensor<3x9xf32>\n"
    "%0 = \"stablehlo.sort\"(%n) <{dimension = 1 : i64}> ({\n"
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "%c = stablehlo.convert %a : (tensor<f32>) -> tensor<f8E5M2>\n"
    "%d = stablehlo.convert %b : (tensor<f32>) -> tensor<f8E5M2>\n"
    "%p = stablehlo.compare LT, %c, %d : (tensor<f8E5M2>, tensor<f8E5M2>) -> "
    "tensor<i1>\n"
    "stablehlo.return %p : tensor<i1> }) : (tensor<3x9xf32>) -> "
    "tensor<3x9xf32>\n"
    "%1 = stablehlo.add %0, %n : tensor<3x9xf32>\n"
    "return %1 : tensor<3x9xf32> }" },
  { "a wide value between two readers",
    "func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<f32>, "
    "tensor<16xf32>) {\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%0 = stablehlo.multiply %x, %x : tensor<16xf32>\n"
    "%1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across "
    "dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>\n"
    "%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> "
    "tensor<16xf32>\n"
    "%3 = stablehlo.add %0, %2 : tensor<16xf32>\n"
    "%4 = stablehlo.subtract %0, %3 : tensor<16xf32>\n"
    "return %3, %1, %4 : tensor<16xf32>, tensor<f32>, tensor<16xf32> }" },
  { "nothing at all",
    "func.func @main(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {\n"
    "%0 = stablehlo.add %x, %x : tensor<0x3xf32>\n"
    "return %0 : tensor<0x3xf32> }" },
  { "behind a barrier",
    "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
    "%0 = stablehlo.add %x, %x : tensor<8xf32>\n"
    "%1 = stablehlo.optimization_barrier %0 : tensor<8xf32>\n"
    "%2 = stablehlo.add %1, %0 : tensor<8xf32>\n"
    "return %2 : tensor<8xf32> }" },
  // Integers and halves only, so that the factor is exact.
  { "factors and systems",
    "func.func @main(%b: tensor<2x3x70xf32>) -> (tensor<70x70xf32>, "
    "tensor<2x3x70xf32>) {\n"
    "%i = stablehlo.iota dim = 0 : tensor<70x70xi32>\n"
    "%j = stablehlo.iota dim = 1 : tensor<70x70xi32>\n"
    "%s = stablehlo.add %i, %j : tensor<70x70xi32>\n"
    "%t = stablehlo.constant dense<3> : tensor<70x70xi32>\n"
    "%o = stablehlo.remainder %s, %t : tensor<70x70xi32>\n"
    "%of = stablehlo.convert %o : (tensor<70x70xi32>) -> tensor<70x70xf32>\n"
    "%d = stablehlo.constant dense<64.0> : tensor<70x70xf32>\n"
    "%z = stablehlo.constant dense<0.0> : tensor<70x70xf32>\n"
    "%gt = stablehlo.compare GT, %i, %j : (tensor<70x70xi32>, "
    "tensor<70x70xi32>) -> tensor<70x70xi1>\n"
    "%eq = stablehlo.compare EQ, %i, %j : (tensor<70x70xi32>, "
    "tensor<70x70xi32>) -> tensor<70x70xi1>\n"
    "%x = stablehlo.select %eq, %d, %z : tensor<70x70xi1>, "
    "tensor<70x70xf32>\n"
    "%l = stablehlo.select %gt, %of, %x : tensor<70x70xi1>, "
    "tensor<70x70xf32>\n"
    "%a = stablehlo.dot_general %l, %l, contracting_dims = [1] x [1] : "
    "(tensor<70x70xf32>, tensor<70x70xf32>) -> tensor<70x70xf32>\n"
    "%f = stablehlo.cholesky %a, lower = true : tensor<70x70xf32>\n"
    "%g = stablehlo.broadcast_in_dim %f, dims = [1, 2] : "
    "(tensor<70x70xf32>) -> tensor<2x70x70xf32>\n"
    "%r = \"stablehlo.triangular_solve\"(%g, %b) <{left_side = false, lower "
    "= true, unit_diagonal = false, transpose_a = #stablehlo<transpose "
    "ADJOINT>}> : (tensor<2x70x70xf32>, tensor<2x3x70xf32>) -> "
    "tensor<2x3x70xf32>\n"
    "return %f, %r : tensor<70x70xf32>, tensor<2x3x70xf32> }" },
  // The first is a product of 3 and 5; 7 is a convolution.
  { "transforms there and back",
    "func.func @main(%a: tensor<5x7x15xf32>) -> tensor<5x7x15xf32> {\n"
    "%0 = stablehlo.fft %a, type = RFFT, length = [7, 15] : "
    "(tensor<5x7x15xf32>) -> tensor<5x7x8xcomplex<f32>>\n"
    "%1 = stablehlo.fft %0, type = FFT, length = [8] : "
    "(tensor<5x7x8xcomplex<f32>>) -> tensor<5x7x8xcomplex<f32>>\n"
    "%2 = stablehlo.fft %1, type = IFFT, length = [8] : "
    "(tensor<5x7x8xcomplex<f32>>) -> tensor<5x7x8xcomplex<f32>>\n"
    "%3 = stablehlo.fft %2, type = IRFFT, length = [7, 15] : "
    "(tensor<5x7x8xcomplex<f32>>) -> tensor<5x7x15xf32>\n"
    "return %3 : tensor<5x7x15xf32> }" },
  // The rows that a loop collects are computed where they are kept, and the
  // matrix is packed before: all rows, from the last; six of seven; a variable;
  // one row again and again; and rows of which the loop reads those before.
  { "rows of a loop with a product",
    "func.func @main(%w: tensor<64x64xf32>, %h: tensor<24x64xf32>) -> "
    "(tensor<6x24x64xf32>, tensor<7x24x64xf32>, tensor<6x24x64xf32>, "
    "tensor<6x24x64xf32>, tensor<6x24x64xf32>, tensor<24x64xf32>) {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%five = stablehlo.constant dense<5> : tensor<i32>\n"
    "%n = stablehlo.constant dense<6> : tensor<i32>\n"
    "%l = stablehlo.constant dense<-2.5> : tensor<24x64xf32>\n"
    "%m = stablehlo.constant dense<3.5> : tensor<24x64xf32>\n"
    "%z = stablehlo.constant dense<0.5> : tensor<6x24x64xf32>\n"
    "%y = stablehlo.constant dense<0.5> : tensor<7x24x64xf32>\n"
    "%r:7 = stablehlo.while(%i = %c, %a = %z, %b = %y, %d = %z, %e = %z, "
    "%f = %z, %s = %h) : tensor<i32>, tensor<6x24x64xf32>, "
    "tensor<7x24x64xf32>, tensor<6x24x64xf32>, tensor<6x24x64xf32>, "
    "tensor<6x24x64xf32>, tensor<24x64xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%k = stablehlo.subtract %five, %i : tensor<i32>\n"
    "%0 = stablehlo.dot_general %s, %w, contracting_dims = [1] x [1] : "
    "(tensor<24x64xf32>, tensor<64x64xf32>) -> tensor<24x64xf32>\n"
    "%1 = stablehlo.clamp %l, %0, %m : (tensor<24x64xf32>, tensor<24x64xf32>, "
    "tensor<24x64xf32>) -> tensor<24x64xf32>\n"
    "%2 = stablehlo.add %0, %s : tensor<24x64xf32>\n"
    "%3 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : "
    "(tensor<24x64xf32>, tensor<64x64xf32>) -> tensor<24x64xf32>\n"
    "%4 = stablehlo.dynamic_slice %f, %i, %c, %c, sizes = [1, 24, 64] : "
    "(tensor<6x24x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
    "tensor<1x24x64xf32>\n"
    "%5 = stablehlo.reshape %4 : (tensor<1x24x64xf32>) -> tensor<24x64xf32>\n"
    "%6 = stablehlo.add %5, %1 : tensor<24x64xf32>\n"
    "%q1 = stablehlo.reshape %1 : (tensor<24x64xf32>) -> tensor<1x24x64xf32>\n"
    "%q2 = stablehlo.reshape %2 : (tensor<24x64xf32>) -> tensor<1x24x64xf32>\n"
    "%q3 = stablehlo.reshape %3 : (tensor<24x64xf32>) -> tensor<1x24x64xf32>\n"
    "%q6 = stablehlo.reshape %6 : (tensor<24x64xf32>) -> tensor<1x24x64xf32>\n"
    "%qs = stablehlo.reshape %s : (tensor<24x64xf32>) -> tensor<1x24x64xf32>\n"
    "%7 = stablehlo.dynamic_update_slice %a, %q3, %k, %c, %c : "
    "(tensor<6x24x64xf32>, tensor<1x24x64xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<6x24x64xf32>\n"
    "%8 = stablehlo.dynamic_update_slice %b, %q2, %i, %c, %c : "
    "(tensor<7x24x64xf32>, tensor<1x24x64xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<7x24x64xf32>\n"
    "%9 = stablehlo.dynamic_update_slice %d, %qs, %i, %c, %c : "
    "(tensor<6x24x64xf32>, tensor<1x24x64xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<6x24x64xf32>\n"
    "%10 = stablehlo.dynamic_update_slice %e, %q1, %five, %c, %c : "
    "(tensor<6x24x64xf32>, tensor<1x24x64xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<6x24x64xf32>\n"
    "%11 = stablehlo.dynamic_update_slice %f, %q6, %j, %c, %c : "
    "(tensor<6x24x64xf32>, tensor<1x24x64xf32>, tensor<i32>, tensor<i32>, "
    "tensor<i32>) -> tensor<6x24x64xf32>\n"
    "stablehlo.return %j, %7, %8, %9, %10, %11, %1 : tensor<i32>, "
    "tensor<6x24x64xf32>, tensor<7x24x64xf32>, tensor<6x24x64xf32>, "
    "tensor<6x24x64xf32>, tensor<6x24x64xf32>, tensor<24x64xf32> }\n"
    "%12 = stablehlo.negate %r#1 : tensor<6x24x64xf32>\n"
    "%13 = stablehlo.negate %r#2 : tensor<7x24x64xf32>\n"
    "return %12, %13, %r#3, %r#4, %r#5, %r#6 : tensor<6x24x64xf32>, "
    "tensor<7x24x64xf32>, tensor<6x24x64xf32>, tensor<6x24x64xf32>, "
    "tensor<6x24x64xf32>, tensor<24x64xf32> }" },
  // Above 2^31: of an unsigned index that is the last row.
  { "a row of a loop at a large unsigned index",
    "func.func @main(%w: tensor<64x64xf32>, %h: tensor<24x64xf32>) -> "
    "tensor<8x24x64xf32> {\n"
    "%c = stablehlo.constant dense<0> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%n = stablehlo.constant dense<3> : tensor<i32>\n"
    "%u = stablehlo.constant dense<0> : tensor<ui32>\n"
    "%v = stablehlo.constant dense<1> : tensor<ui32>\n"
    "%far = stablehlo.constant dense<4294967280> : tensor<ui32>\n"
    "%z = stablehlo.constant dense<0.5> : tensor<8x24x64xf32>\n"
    "%r:3 = stablehlo.while(%i = %c, %at = %far, %a = %z) : tensor<i32>, "
    "tensor<ui32>, tensor<8x24x64xf32>\n"
    "cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "stablehlo.return %p : tensor<i1> }\n"
    "do { %j = stablehlo.add %i, %one : tensor<i32>\n"
    "%next = stablehlo.add %at, %v : tensor<ui32>\n"
    "%f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n"
    "%g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> "
    "tensor<24x64xf32>\n"
    "%0 = stablehlo.add %h, %g : tensor<24x64xf32>\n"
    "%1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : "
    "(tensor<24x64xf32>, tensor<64x64xf32>) -> tensor<24x64xf32>\n"
    "%2 = stablehlo.reshape %1 : (tensor<24x64xf32>) -> tensor<1x24x64xf32>\n"
    "%3 = stablehlo.dynamic_update_slice %a, %2, %at, %u, %u : "
    "(tensor<8x24x64xf32>, tensor<1x24x64xf32>, tensor<ui32>, tensor<ui32>, "
    "tensor<ui32>) -> tensor<8x24x64xf32>\n"
    "stablehlo.return %j, %next, %3 : tensor<i32>, tensor<ui32>, "
    "tensor<8x24x64xf32> }\n"
    "return %r#2 : tensor<8x24x64xf32> }" },
};

typedef struct values {
  void *items[MAX_VALUES];
  size_t bytes[MAX_VALUES];
  size_t n;
} values;

static size_t bytes_of(const cx_hlo_type *t)
{
  return (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
}

static void make_values(values *v, const cx_hlo_type *types, size_t n)
{
  v->n = n;
  for (size_t i = 0; i < n; i++) {
    v->bytes[i] = bytes_of(&types[i]);
    v->items[i] = aligned_alloc(64, (v->bytes[i] + 64) / 64 * 64);
    for (size_t k = 0; k < v->bytes[i] / 4; k++) {
      if (types[i].elem == CX_HLO_F32) {
        ((float *)v->items[i])[k] = (float)((k * 7 + i * 3) % 11) - 4.5f;
      } else {
        ((int32_t *)v->items[i])[k] = (int32_t)(k + i) % 5;
      }
    }
  }
}

static void free_values(values *v)
{
  for (size_t i = 0; i < v->n; i++) free(v->items[i]);
}

static cpu_threads *pool;

// Runs the program, with donated arguments, and again after saving and loading.
static void run_text(const char *text, bool interpret, values *out)
{
  setenv("CALX_CPU_REF", interpret ? "1" : "0", 1);
  cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, strlen(text), &options, &p));
  cx_text bytes = { 0 };
  CHECK_STATUS_OK(cpu_run_program_save(p, &bytes));
  cpu_run_program_free(p);
  CHECK_STATUS_OK(cpu_run_program_load(bytes.data, bytes.size, pool, &p));
  cx_text_free(&bytes);
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  values args;
  make_values(&args, info->params, info->n_params);
  make_values(out, info->results, info->n_results);
  for (size_t i = 0; i < info->n_results; i++) {
    if (info->alias[i] < 0) continue;
    free(out->items[i]);
    out->items[i] = args.items[info->alias[i]];
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  cpu_coll_launch launch = { .n_replicas = 1, .n_partitions = 1 };
  CHECK_STATUS_OK(
      cpu_run_program_run(p, context, &launch, args.items, out->items));
  cpu_run_context_free(context);
  for (size_t i = 0; i < info->n_results; i++) {
    if (info->alias[i] >= 0) args.items[info->alias[i]] = NULL;
  }
  free_values(&args);
  cpu_run_program_free(p);
}

static void agree(const char *name, const values *a, const values *b)
{
  assert_int_equal(a->n, b->n);
  for (size_t i = 0; i < a->n; i++) {
    assert_int_equal(a->bytes[i], b->bytes[i]);
    const float *x = a->items[i], *y = b->items[i];
    for (size_t k = 0; k < a->bytes[i] / 4; k++) {
      if (x[k] == y[k] || memcmp(&x[k], &y[k], 4) == 0) continue;
      if (fabsf(x[k] - y[k]) <= 1e-5f * fabsf(y[k])) continue;
      fail_msg("%s: result %zu, element %zu: compiled %g, interpreted %g", name,
               i, k, (double)x[k], (double)y[k]);
    }
  }
}

static void compiled_as_interpreted(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    values compiled, interpreted;
    run_text(cases[i].text, true, &interpreted);
    run_text(cases[i].text, false, &compiled);
    agree(cases[i].name, &compiled, &interpreted);
    free_values(&compiled);
    free_values(&interpreted);
  }
}

// Networks of few channels, whose images get the order of lanes.
static void networks(void **unused)
{
  (void)unused;
  for (unsigned seed = 1000; seed < 1040; seed++) {
    cx_hlo_module *m = network_new(seed);
    cx_text text = { 0 };
    cx_hlo_print(m, &text);
    values compiled, interpreted;
    run_text(cx_text_str(&text), true, &interpreted);
    run_text(cx_text_str(&text), false, &compiled);
    char name[32];
    snprintf(name, sizeof name, "network %u", seed);
    agree(name, &compiled, &interpreted);
    free_values(&compiled);
    free_values(&interpreted);
    cx_text_free(&text);
    cx_hlo_module_free(m);
  }
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(compiled_as_interpreted),
    cmocka_unit_test(networks),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
