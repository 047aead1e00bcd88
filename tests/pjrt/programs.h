// programs: StableHLO texts that the tests compile, in generic form.
#ifndef CX_TESTS_PJRT_PROGRAMS_H
#define CX_TESTS_PJRT_PROGRAMS_H

// One function of the given type; `attributes` go to it, `body` is its block.
#define PROGRAM(type, attributes, body)               \
  "\"builtin.module\"() <{sym_name = \"test\"}> ({\n" \
  "  \"func.func\"() <{function_type = " type         \
  ", sym_name = \"main\"" attributes "}> ({\n" body   \
  "  }) : () -> ()\n}) : () -> ()\n"

// (x, y) -> x op y, elementwise
#define BINARY(op, tensor)                                               \
  PROGRAM("(" tensor ", " tensor ") -> " tensor, "",                     \
          "  ^bb0(%a: " tensor ", %b: " tensor                           \
          "):\n"                                                         \
          "    %0 = \"stablehlo." op "\"(%a, %b) : (" tensor ", " tensor \
          ") -> " tensor                                                 \
          "\n"                                                           \
          "    \"func.return\"(%0) : (" tensor ") -> ()\n")

// (x, y) -> x + y, where x's memory becomes the result's
#define DONATING_ADD(tensor)                                          \
  PROGRAM("(" tensor ", " tensor ") -> " tensor,                      \
          ", arg_attrs = [{tf.aliasing_output = 0 : i32}, {}]",       \
          "  ^bb0(%a: " tensor ", %b: " tensor                        \
          "):\n"                                                      \
          "    %0 = \"stablehlo.add\"(%a, %b) : (" tensor ", " tensor \
          ") -> " tensor                                              \
          "\n"                                                        \
          "    \"func.return\"(%0) : (" tensor ") -> ()\n")

// x -> x summed over four replicas
#define ALL_REDUCE_4(tensor)                                          \
  PROGRAM("(" tensor ") -> " tensor, "",                              \
          "  ^bb0(%a: " tensor                                        \
          "):\n"                                                      \
          "    %0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = " \
          "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({\n"            \
          "    ^bb1(%x: tensor<f32>, %y: tensor<f32>):\n"             \
          "      %1 = \"stablehlo.add\"(%x, %y) : (tensor<f32>, "     \
          "tensor<f32>) -> tensor<f32>\n"                             \
          "      \"stablehlo.return\"(%1) : (tensor<f32>) -> ()\n"    \
          "    }) : (" tensor ") -> " tensor                          \
          "\n"                                                        \
          "    \"func.return\"(%0) : (" tensor ") -> ()\n")

#endif
