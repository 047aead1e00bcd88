// hlo/build: operations that index or order elements.
#include "base/arena.h"
#include "hlo/build.h"
#include "hlo/build_op.h"

// 0, 1, …, n-1 from `first` on, written behind the `count` numbers of `out`.
static size_t append_range(int64_t *out, size_t count, int64_t first, size_t n)
{
  for (size_t i = 0; i < n; i++) out[count + i] = first + (int64_t)i;
  return count + n;
}

cx_hlo_value *cx_hlo_gather_along(cx_hlo_builder *b, cx_hlo_value *x,
                                  cx_hlo_value *indices, int64_t dim)
{
  enum { MOST = 32 };
  if (b->failed != NULL) return NULL;
  const cx_hlo_type *type = cx_hlo_value_type(x);
  const size_t k = cx_hlo_value_type(indices)->rank, at = (size_t)dim;
  if (type->rank + k > MOST) {
    cx_hlo_builder_fail(
        b, cx_error(CALX_INVALID_ARGUMENT, "gather: rank %zu", type->rank + k));
    return NULL;
  }
  int64_t offset[MOST], sizes[MOST];
  size_t n = append_range(offset, 0, 0, at);
  n = append_range(offset, n, (int64_t)(at + k), type->rank - at - 1);
  for (size_t i = 0; i < type->rank; i++)
    sizes[i] = i == at ? 1 : type->dims[i];
  const cx_hlo_gather_numbers numbers = { .offset = { offset, n },
                                          .collapsed = { &dim, 1 },
                                          .index_map = { &dim, 1 },
                                          .index_vector_dim = (int64_t)k };
  cx_hlo_value *const operands[] = { x, indices };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_GATHER, operands, 2, 1, 0);
  if (op == NULL) return NULL;
  cx_hlo_build_attr(
      b, op, CX_HLO_A_GATHER_DIMENSION_NUMBERS,
      cx_hlo_attr_struct(b->module, CX_HLO_STRUCT_GATHER, &numbers));
  cx_hlo_build_ints(b, op, CX_HLO_A_SLICE_SIZES, sizes, type->rank);
  return cx_hlo_build_end(b, op);
}

// The body of a scatter that replaces: the update, not the element before.
static void second(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                   cx_hlo_value **out)
{
  (void)b, (void)user;
  out[0] = args[1];
}

cx_hlo_value *cx_hlo_scatter_rows(cx_hlo_builder *b, cx_hlo_value *x,
                                  cx_hlo_value *indices, cx_hlo_value *updates,
                                  cx_hlo_op_kind kind)
{
  enum { MOST = 32 };
  static const int64_t zero = 0;
  if (b->failed != NULL) return NULL;
  const cx_hlo_type *type = cx_hlo_value_type(x);
  int64_t window[MOST];
  const size_t n = append_range(window, 0, 1, type->rank - 1);
  const cx_hlo_scatter_numbers numbers = { .window = { window, n },
                                           .inserted = { &zero, 1 },
                                           .index_map = { &zero, 1 },
                                           .index_vector_dim = 1 };
  const cx_hlo_elem elems[2] = { type->elem, type->elem };
  cx_hlo_value *const operands[] = { x, indices, updates };
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_SCATTER, operands, 3, 1, 1);
  if (op == NULL) return NULL;
  cx_hlo_build_attr(
      b, op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS,
      cx_hlo_attr_struct(b->module, CX_HLO_STRUCT_SCATTER, &numbers));
  cx_hlo_build_body(b, op, 0, elems, 2, 1,
                    kind == CX_HLO_OP_SCATTER ? second : cx_hlo_build_one,
                    &kind);
  return cx_hlo_build_end(b, op);
}

void cx_hlo_sort(cx_hlo_builder *b, size_t n, cx_hlo_value *const *inputs,
                 int64_t dim, cx_hlo_body_fn *body, void *user,
                 cx_hlo_value **out)
{
  enum { MOST = 8 };
  cx_hlo_elem elems[2 * MOST];
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  if (b->failed != NULL || n > MOST) return;
  for (size_t i = 0; i < n; i++) {
    elems[2 * i] = elems[2 * i + 1] = cx_hlo_value_type(inputs[i])->elem;
  }
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_SORT, inputs, n, n, 1);
  if (op == NULL) return;
  cx_hlo_build_int(b, op, CX_HLO_A_DIMENSION, dim);
  cx_hlo_build_attr(b, op, CX_HLO_A_IS_STABLE,
                    cx_hlo_attr_bool(b->module, true));
  cx_hlo_build_body(b, op, 0, elems, 2 * n, 1, body, user);
  if (cx_hlo_build_end(b, op) == NULL) return;
  for (size_t i = 0; i < n; i++) out[i] = &op->results[i];
}
