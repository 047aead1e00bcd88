// hlo/infer: reductions, and windows over tensors.
#include "hlo/infer.h"

#include <string.h>

// ---- windows ----

// (size - 1) * dilation + 1; 0 for size 0. false: the number is too large.
static bool dilated(int64_t size, int64_t dilation, int64_t *out)
{
  *out = 0;
  return size == 0 || (!__builtin_mul_overflow(size - 1, dilation, out) &&
                       !__builtin_add_overflow(*out, 1, out));
}

calx_status *cx_hlo_windowed(const cx_hlo_infer *in, size_t dim, int64_t size,
                             const cx_hlo_window_dim *w, int64_t *out)
{
  int64_t base = 0;
  int64_t window = 0;
  *out = 0;
  if (w->size < 0 || w->stride < 1 || w->base_dilation < 1 || w->dilation < 1) {
    return cx_hlo_bad(in,
                      "window dimension %zu has size %lld, stride %lld, "
                      "dilations %lld and %lld; they must be positive",
                      dim, (long long)w->size, (long long)w->stride,
                      (long long)w->base_dilation, (long long)w->dilation);
  }
  if (!dilated(size, w->base_dilation, &base) ||
      !dilated(w->size, w->dilation, &window) ||
      __builtin_add_overflow(base, w->low, &base) ||
      __builtin_add_overflow(base, w->high, &base) || base < 0) {
    return cx_hlo_bad(in,
                      "window dimension %zu: padding %lld, %lld or "
                      "dilation %lld does not fit the size %lld",
                      dim, (long long)w->low, (long long)w->high,
                      (long long)w->base_dilation, (long long)size);
  }
  if (base != 0 && window <= base) *out = (base - window) / w->stride + 1;
  return NULL;
}

calx_status *cx_hlo_need_padding(const cx_hlo_infer *in, size_t n)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(in->op, CX_HLO_A_PADDING);
  if (attr == NULL) return NULL;
  const cx_hlo_type *t = &attr->as.elements.type.tensor;
  if (t->dims[0] == (int64_t)n && t->dims[1] == 2) return NULL;
  return cx_hlo_bad(in, "padding must be i64[%zu,2], got %s", n,
                    CX_HLO_SHAPE(t));
}

int64_t cx_hlo_padding_at(const cx_hlo_op *op, size_t i, size_t side)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, CX_HLO_A_PADDING);
  if (attr == NULL) return 0;
  return cx_hlo_elements_int(&attr->as.elements, 2 * i + side);
}

// The numbers of positions of the windows over x.
static calx_status *window_dims(cx_hlo_infer *in, const cx_hlo_type *x,
                                int64_t **out_dims)
{
  const cx_hlo_op *op = in->op;
  const bool base_dilated = op->kind == CX_HLO_OP_REDUCE_WINDOW;
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_WINDOW_DIMENSIONS, x->rank));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_WINDOW_STRIDES, x->rank));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_BASE_DILATIONS, x->rank));
  CALX_TRY(cx_hlo_need_count(in, CX_HLO_A_WINDOW_DILATIONS, x->rank));
  CALX_TRY(cx_hlo_need_padding(in, x->rank));
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->rank; i++) {
    cx_hlo_window_dim w = {
      .size = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, i),
      .stride = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, i),
      .base_dilation = 1,
      .dilation = 1,
      .low = cx_hlo_padding_at(op, i, 0),
      .high = cx_hlo_padding_at(op, i, 1),
    };
    if (base_dilated) {
      w.base_dilation = cx_hlo_op_int_at(op, CX_HLO_A_BASE_DILATIONS, i);
      w.dilation = cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DILATIONS, i);
    }
    if (w.size < 1) {
      return cx_hlo_bad(in, "window_dimensions has %lld", (long long)w.size);
    }
    CALX_TRY(cx_hlo_windowed(in, i, x->dims[i], &w, &dims[i]));
  }
  *out_dims = dims;
  return NULL;
}

// ---- reductions ----

// There are n inputs of the same sizes, and n inits of rank 0 and of the
// element types of the inputs. Writes the element types of the region.
static calx_status *check_inputs(cx_hlo_infer *in, cx_hlo_elem **out_elems)
{
  const size_t n = in->op->n_results;
  if (in->op->n_operands != 2 * n) {
    return cx_hlo_bad(in,
                      "%zu results need %zu inputs and as many inits, got "
                      "%u operands",
                      n, n, in->op->n_operands);
  }
  cx_hlo_elem *elems = CX_ARENA_ARRAY(in->arena, cx_hlo_elem, 2 * n);
  if (elems == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_need_same_dims(in, "inputs", n));
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(cx_hlo_need_scalar(in, "init", n + i, i));
    elems[n + i] = cx_hlo_operand(in, i)->elem;
  }
  *out_elems = elems;
  return cx_hlo_need_reducer(in, 0, elems + n, n, elems);
}

calx_status *cx_hlo_infer_reduce(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_ints over = cx_hlo_op_ints(in->op, CX_HLO_A_DIMENSIONS);
  CALX_TRY(cx_hlo_need_dims(in, "dimensions", over, x->rank));
  cx_hlo_elem *elems = NULL;
  CALX_TRY(check_inputs(in, &elems));
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  size_t n = 0;
  for (size_t i = 0; i < x->rank; i++) {
    if (!cx_hlo_ints_have(over, (int64_t)i)) dims[n++] = x->dims[i];
  }
  for (size_t i = 0; i < in->op->n_results; i++) {
    CALX_TRY(cx_hlo_result(in, i, elems[i], n, dims));
  }
  return NULL;
}

calx_status *cx_hlo_infer_reduce_window(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  int64_t *dims = NULL;
  CALX_TRY(window_dims(in, x, &dims));
  cx_hlo_elem *elems = NULL;
  CALX_TRY(check_inputs(in, &elems));
  for (size_t i = 0; i < in->op->n_results; i++) {
    CALX_TRY(cx_hlo_result(in, i, elems[i], x->rank, dims));
  }
  return NULL;
}

calx_status *cx_hlo_infer_select_and_scatter(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *source = cx_hlo_operand(in, 1);
  int64_t *dims = NULL;
  CALX_TRY(window_dims(in, x, &dims));
  const cx_hlo_type positions = { x->elem, x->rank, dims };
  if (!cx_hlo_type_equal(source, &positions)) {
    return cx_hlo_bad(in, "the windows over %s make %s, but the source is %s",
                      CX_HLO_SHAPE(x), CX_HLO_SHAPE(&positions),
                      CX_HLO_SHAPE(source));
  }
  CALX_TRY(cx_hlo_need_scalar(in, "init", 2, 0));
  const cx_hlo_any pair[2] = { { .tensor.elem = x->elem },
                               { .tensor.elem = x->elem } };
  const cx_hlo_any selected = { .tensor.elem = CX_HLO_I1 };
  CALX_TRY(cx_hlo_need_body(in, 0, pair, 2, &selected, 1));
  cx_hlo_elem elem;
  CALX_TRY(cx_hlo_need_reducer(in, 1, &x->elem, 1, &elem));
  return cx_hlo_result(in, 0, elem, x->rank, x->dims);
}
