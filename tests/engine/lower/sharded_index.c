#include "sharded_index.h"

#define WHOLE "tensor<16x16xf32>"
#define HALF "tensor<16x8xf32>"
#define CUBE "tensor<4x4x16xf32>"

// A text in which @ is n, & is x and $ is y.
static void put(cx_text *t, const char *text, uint32_t n, uint32_t x,
                uint32_t y)
{
  for (; *text != '\0'; text++) {
    if (*text == '@' || *text == '&' || *text == '$') {
      cx_text_format(t, "%u", *text == '@' ? n : *text == '&' ? x : y);
    } else {
      cx_text_char(t, *text);
    }
  }
}

// %i@: 16 index vectors of k components from -11 to 25, of the columns of x.
static void put_indices(cx_text *t, uint32_t n, uint32_t x, uint32_t k)
{
  cx_text_format(t,
                 "%%a%u = stablehlo.slice %%v%u [0:16, 0:%u] : (" WHOLE
                 ") -> tensor<16x%uxf32>\n%%b%u = stablehlo.convert %%a%u : "
                 "(tensor<16x%uxf32>) -> tensor<16x%uxi32>\n%%c%u = "
                 "stablehlo.constant dense<3> : tensor<16x%uxi32>\n%%d%u = "
                 "stablehlo.constant dense<7> : tensor<16x%uxi32>\n%%e%u = "
                 "stablehlo.multiply %%b%u, %%c%u : tensor<16x%uxi32>\n%%i%u = "
                 "stablehlo.add %%e%u, %%d%u : tensor<16x%uxi32>\n",
                 n, x, k, k, n, n, k, k, n, k, n, k, n, n, n, k, n, n, n, k);
}

#define TWICE                                                        \
  "%r@ = stablehlo.concatenate %g@, %g@, dim = 1 : (" HALF ", " HALF \
  ") -> " WHOLE "\n"
#define ROW_TO_WHOLE                                                              \
  "%r@ = stablehlo.broadcast_in_dim %g@, dims = [0] : (tensor<16xf32>) -> " WHOLE \
  "\n"
#define BODY(op)                                                \
  "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%s = stablehlo." op \
  " %p, %q : tensor<f32>\nstablehlo.return %s : tensor<f32>\n})"

static const char *const texts[] = {
  // rows, half as long: few enough that a cut operand is masked
  "%g@ = \"stablehlo.gather\"(%v$, %i@) {dimension_numbers = "
  "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
  "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, "
  "8>} : (" WHOLE ", tensor<16x1xi32>) -> " HALF "\n" TWICE,
  // whole columns
  "%r@ = \"stablehlo.gather\"(%v$, %i@) {dimension_numbers = "
  "#stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], "
  "start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: "
  "16, 1>} : (" WHOLE ", tensor<16x1xi32>) -> " WHOLE "\n",
  // elements
  "%g@ = \"stablehlo.gather\"(%v$, %i@) {dimension_numbers = "
  "#stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1, 0], "
  "index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>} : (" WHOLE
  ", tensor<16x2xi32>) -> tensor<16xf32>\n" ROW_TO_WHOLE,
  // rows of each batch
  "%x@ = stablehlo.reshape %v$ : (" WHOLE ") -> " CUBE
  "\n%j@ = stablehlo.reshape %i@ : (tensor<16x1xi32>) -> tensor<4x4x1xi32>\n"
  "%g@ = \"stablehlo.gather\"(%x@, %j@) {dimension_numbers = "
  "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], "
  "operand_batching_dims = [0], start_indices_batching_dims = [0], "
  "start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, "
  "1, 16>} : (" CUBE ", tensor<4x4x1xi32>) -> " CUBE
  "\n%r@ = stablehlo.reshape %g@ : (" CUBE ") -> " WHOLE "\n",
  // rows added to zeros, as the gradient of an embedding
  "%r@ = \"stablehlo.scatter\"(%zero, %i@, %v$) ({\n" BODY("add")
  " {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
  "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
  "index_vector_dim = 1>} : (" WHOLE ", tensor<16x1xi32>, " WHOLE
  ") -> " WHOLE "\n",
  // and to what is there
  "%r@ = \"stablehlo.scatter\"(%v&, %i@, %v$) ({\n" BODY("add")
  " {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], "
  "inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], "
  "index_vector_dim = 1>} : (" WHOLE ", tensor<16x1xi32>, " WHOLE
  ") -> " WHOLE "\n",
  // elements
  "%x@ = stablehlo.slice %v$ [0:16, 4:5] : (" WHOLE ") -> tensor<16x1xf32>\n"
  "%y@ = stablehlo.reshape %x@ : (tensor<16x1xf32>) -> tensor<16xf32>\n"
  "%r@ = \"stablehlo.scatter\"(%v&, %i@, %y@) ({\n" BODY("maximum")
  " {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = "
  "[0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>} : "
  "(" WHOLE ", tensor<16x2xi32>, tensor<16xf32>) -> " WHOLE "\n",
  // a slice and a place that are found when the program runs
  "%x@ = stablehlo.slice %i@ [3:4, 0:1] : (tensor<16x1xi32>) -> "
  "tensor<1x1xi32>\n%s@ = stablehlo.reshape %x@ : (tensor<1x1xi32>) -> "
  "tensor<i32>\n%g@ = stablehlo.dynamic_slice %v$, %s@, %s@, sizes = [16, 8] "
  ": (" WHOLE ", tensor<i32>, tensor<i32>) -> " HALF
  "\n%r@ = stablehlo.dynamic_update_slice %v&, %g@, %s@, %s@ : (" WHOLE
  ", " HALF ", tensor<i32>, tensor<i32>) -> " WHOLE "\n",
  // windows along one dimension
  "%r@ = \"stablehlo.reduce_window\"(%v$, %none) ({\n" BODY("add")
  " {window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [1, 1]]> "
  ": tensor<2x2xi64>} : (" WHOLE ", tensor<f32>) -> " WHOLE "\n",
  "%x@ = stablehlo.slice %v& [0:8, 0:16] : (" WHOLE ") -> tensor<8x16xf32>\n"
  "%r@ = \"stablehlo.select_and_scatter\"(%v$, %x@, %none) ({\n"
  "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%s = stablehlo.compare GE, %p, "
  "%q : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %s : "
  "tensor<i1>\n}, {\n" BODY("add")
  " {window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>} "
  ": (" WHOLE ", tensor<8x16xf32>, tensor<f32>) -> " WHOLE "\n",
};

void sharded_index_put(cx_text *t, uint32_t n, uint32_t x, uint32_t y,
                       uint32_t what)
{
  what %= sizeof texts / sizeof *texts;
  put_indices(t, n, x, what == 2 || what == 6 ? 2 : 1);
  put(t, texts[what], n, x, y);
}
