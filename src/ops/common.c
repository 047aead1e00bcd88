// ops/common: what public functions, shape rules and emissions share.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "ops/composite.h"

// ---- entries ----------------------------------------------------------------

calx_tensor *cx_ops_record(const cx_graph_op *op, calx_tensor *const *in,
                           uint32_t n_in, const void *attrs)
{
  return cx_lazy_apply(
      &(cx_lazy_call){ .op = op, .in = in, .n_in = n_in, .attrs = attrs },
      NULL);
}

// ", operand 0 made by flatten at mnist.c:14": an error may have its cause
// where an operand was made.
static void describe_operands(const cx_graph_node *node, cx_text *text)
{
  for (uint32_t i = 0; i < node->n_in && i < 3; i++) {
    const cx_graph_node *in = node->in[i].node;
    cx_text_format(text, "%s operand %u %s", i == 0 ? "; got" : ",", i,
                   cx_graph_shape_str(cx_in(node, i)));
    if (in->op == &cx_graph_op_data) continue;
    cx_text_format(text, " (made by %s", cx_graph_node_name(in));
    if (in->site.file != NULL) {
      cx_text_format(text, " at %s:%d", in->site.file, in->site.line);
    }
    cx_text_char(text, ')');
  }
}

calx_status *cx_ops_error(const cx_graph_node *node, const char *format, ...)
{
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  cx_text text = { 0 };
  describe_operands(node, &text);
  calx_status *status =
      cx_invalid("%s: %s%s%s%s", cx_graph_node_name(node),
                 node->module != NULL ? node->module : "",
                 node->module != NULL ? ": " : "", what, cx_text_str(&text));
  cx_text_free(&text);
  return status;
}

// The composition in which an op failed; "" where the message names it.
static const char *outer_name(const char *message)
{
  const char *name = cx_lazy_composite();
  bool named = name == NULL || strncmp(message, name, strlen(name)) == 0;
  return named ? "" : name;
}

static calx_tensor *poison_v(calx_code code, const char *format, va_list args)
{
  char what[512];
  vsnprintf(what, sizeof what, format, args);
  const char *outer = outer_name(what);
  return cx_lazy_tensor_poison(
      cx_error(code, "%s%s%s", outer, outer[0] != '\0' ? ": " : "", what));
}

calx_tensor *cx_ops_poison(calx_code code, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  calx_tensor *t = poison_v(code, format, args);
  va_end(args);
  return t;
}

calx_tensor *cx_ops_invalid(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  calx_tensor *t = poison_v(CALX_INVALID_ARGUMENT, format, args);
  va_end(args);
  return t;
}

bool cx_ops_unfit(const char *op, calx_tensor *const *in, uint32_t n,
                  calx_tensor **out)
{
  if (cx_lazy_composite() != NULL) op = cx_lazy_composite();
  for (uint32_t i = 0; i < n; i++) {
    calx_status *status = in[i] == NULL
                              ? cx_invalid("%s: operand %u is NULL", op, i)
                              : cx_lazy_tensor_usable(in[i], op, i);
    if (status == NULL) continue;
    *out = cx_lazy_tensor_poison(status);
    return true;
  }
  return false;
}

calx_tensor *cx_ops_no_bits(const char *op, const calx_tensor *x)
{
  return cx_ops_invalid(
      "%s: %s has no bits to combine: integers and bool are "
      "wanted; convert it with calx_to_dtype",
      op, cx_graph_shape_str(cx_lazy_tensor_shape(x)));
}

bool cx_ops_dim(int64_t dim, uint32_t rank, uint32_t *out)
{
  int64_t n = rank == 0 ? 1 : (int64_t)rank;
  if (dim < -n || dim >= n) return false;
  *out = (uint32_t)(dim < 0 ? dim + n : dim);
  return true;
}

calx_tensor *cx_ops_no_dim(const char *op, const char *which, int64_t dim,
                           uint32_t rank, const cx_graph_shape *x)
{
  int n = rank == 0 ? 1 : (int)rank;
  return cx_ops_invalid("%s: %s %lld is out of range: %s %s dims %d to %d", op,
                        which, (long long)dim, cx_graph_shape_str(x),
                        rank == x->rank ? "has" : "with one more has", -n,
                        n - 1);
}

bool cx_ops_options_fit(const char *op, size_t size, size_t known,
                        calx_tensor **out)
{
  calx_status *status = cx_options_check(op, size, known);
  if (status != NULL) *out = cx_lazy_tensor_poison(status);
  return status == NULL;
}

bool cx_ops_options_take(const char *op, const void *given, void *taken,
                         size_t bytes, calx_tensor **out)
{
  calx_status *status = cx_options_take(op, given, taken, bytes);
  if (status != NULL) *out = cx_lazy_tensor_poison(status);
  return status == NULL;
}

bool cx_ops_in_range(cx_text *why, const char *name, int64_t n, int64_t least,
                     int64_t most)
{
  if (n >= least && n <= most) return true;
  cx_text_format(why, "%s is %lld, %lld to %lld is possible", name,
                 (long long)n, (long long)least, (long long)most);
  return false;
}

calx_dims cx_ops_dims_of(const cx_graph_shape *s)
{
  return calx_dims_of(s->dims, s->rank);
}

calx_tensor *cx_ops_zeros_like(const calx_tensor *t)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  calx_create_options o = { .size = sizeof o,
                            .dtype = s->dtype,
                            .device = calx_tensor_device(t) };
  return calx_zeros_with(cx_ops_dims_of(s), &o);
}

calx_tensor *cx_ops_reshape_to(calx_tensor *x, const cx_graph_shape *shape)
{
  return calx_reshape(x, cx_ops_dims_of(shape));
}

calx_tensor *cx_ops_sum_to(calx_tensor *g, const cx_graph_shape *to)
{
  const cx_graph_shape *from = cx_lazy_tensor_shape(g);
  if (cx_lazy_tensor_poisoned(g)) return g;
  int64_t dims[CALX_MAX_RANK];
  size_t n = 0;
  uint32_t lead = from->rank - to->rank;
  for (uint32_t i = 0; i < from->rank; i++) {
    if (i < lead || (to->dims[i - lead] == 1 && from->dims[i] != 1)) {
      dims[n++] = i;
    }
  }
  if (n != 0) {
    calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(dims, n) };
    g = calx_sum_with(g, &o);
  }
  return cx_ops_reshape_to(g, to);
}

calx_tensor *cx_ops_points_at(calx_tensor *index, uint32_t dim, int64_t n,
                              uint32_t rank)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(index) };
  calx_tensor *all = calx_arange_with(0, (double)n, 1, &o);
  int64_t dims[CALX_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) dims[i] = i == dim ? n : 1;
  return calx_eq(calx_reshape(all, calx_dims_of(dims, rank)), index);
}

// ---- promotion --------------------------------------------------------------

static int category(calx_dtype d)
{
  return d == CALX_BOOL           ? 0
         : cx_dtype_is_complex(d) ? 3
         : cx_dtype_is_float(d)   ? 2
                                  : 1;
}

static calx_dtype combine(calx_dtype strong, calx_dtype weak)
{
  if (strong == CALX_DTYPE_DEFAULT) return weak;
  if (weak == CALX_DTYPE_DEFAULT) return strong;
  // A complex number of rank 0 makes c64 of f32, whatever its own width is.
  if (category(weak) == 3 && category(strong) == 2) {
    return cx_dtype_complex_of(strong);
  }
  return category(weak) > category(strong) ? weak : strong;
}

static void join(calx_dtype *all, calx_dtype d)
{
  *all = *all == CALX_DTYPE_DEFAULT ? d : cx_dtype_promote(*all, d);
}

// Tensors with dimensions decide; those of rank 0, then numbers, only when
// their category is higher (torch.result_type).
static calx_dtype common_type(calx_tensor *const *in, uint32_t n)
{
  calx_dtype dims = CALX_DTYPE_DEFAULT, zero = dims, number = dims;
  for (uint32_t i = 0; i < n; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(in[i]);
    if (cx_lazy_tensor_is(in[i], CX_LAZY_T_WEAK))
      join(&number, s->dtype);
    else if (s->rank == 0)
      join(&zero, s->dtype);
    else
      join(&dims, s->dtype);
  }
  return combine(dims, combine(zero, number));
}

calx_dtype cx_ops_promote(calx_tensor **in, uint32_t n)
{
  calx_dtype common = common_type(in, n);
  calx_device *device = NULL;  // numbers follow the tensors
  for (uint32_t i = 0; i < n && device == NULL; i++) {
    if (!cx_lazy_tensor_is(in[i], CX_LAZY_T_WEAK))
      device = calx_tensor_device(in[i]);
  }
  for (uint32_t i = 0; i < n; i++) {
    bool weak = cx_lazy_tensor_is(in[i], CX_LAZY_T_WEAK);
    bool moves = weak && device != NULL && calx_tensor_device(in[i]) != device;
    if (cx_lazy_tensor_shape(in[i])->dtype == common && !moves) continue;
    in[i] = weak ? cx_ops_weak_as(in[i], common, device)
                 : calx_to_dtype(in[i], common);
  }
  return common;
}

bool cx_ops_floating(const char *op, calx_tensor **in, uint32_t n,
                     calx_tensor **out)
{
  if (cx_ops_unfit(op, in, n, out)) return false;
  calx_dtype to = CALX_DTYPE_DEFAULT;
  for (uint32_t i = 0; i < n && to == CALX_DTYPE_DEFAULT; i++) {
    calx_dtype dtype = cx_lazy_tensor_shape(in[i])->dtype;
    bool number = cx_lazy_tensor_is(in[i], CX_LAZY_T_WEAK);
    // A complex one is refused by what takes floating operands.
    if (cx_dtype_is_complex(dtype)) return true;
    if (cx_dtype_is_float(dtype) && !number) to = dtype;
  }
  if (to == CALX_DTYPE_DEFAULT) to = CALX_F32;
  for (uint32_t i = 0; i < n; i++) {
    if (!cx_dtype_is_float(cx_lazy_tensor_shape(in[i])->dtype)) {
      in[i] = calx_to_dtype(in[i], to);
    }
  }
  return true;
}

bool cx_ops_check_indices(const char *op, bool classes, calx_tensor *index,
                          int64_t n, int64_t ignore)
{
  if (!cx_lazy_debug_on(CX_LAZY_DEBUG_INDICES)) return true;
  const cx_graph_shape *s = cx_lazy_tensor_shape(index);
  int64_t count = cx_graph_shape_numel(s);
  size_t size = calx_dtype_size(s->dtype);
  unsigned char *data = cx_alloc((size_t)count * size);
  calx_status *status =
      data == NULL ? cx_out_of_memory()
                   : calx_tensor_read(index, data, (size_t)count * size);
  for (int64_t i = 0; status == NULL && i < count; i++) {
    int64_t k = cx_load_int(s->dtype, data + (size_t)i * size);
    if (k == ignore || (k >= 0 && k < n)) continue;
    status = cx_error(CALX_OUT_OF_RANGE,
                      "%s: element %lld of %s is %s %lld, the %lld %s are 0 to "
                      "%lld",
                      op, (long long)i, cx_graph_shape_str(s),
                      classes ? "class" : "index", (long long)k, (long long)n,
                      classes ? "classes" : "indices", (long long)n - 1);
  }
  cx_free(data);
  bool good = status == NULL;
  cx_lazy_scope_pin(status);
  return good;
}

// ---- shape rules ------------------------------------------------------------

calx_status *cx_ops_infer_same(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  return NULL;
}

calx_status *cx_ops_infer_broadcast(cx_graph_node *node)
{
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  for (uint32_t i = 1; i < node->n_in; i++) {
    const cx_graph_shape *s = cx_in(node, i);
    if (s->rank > out->rank) {
      uint32_t more = s->rank - out->rank;
      memmove(out->dims + more, out->dims, out->rank * sizeof *out->dims);
      for (uint32_t k = 0; k < more; k++) out->dims[k] = 1;
      out->rank = s->rank;
    }
    uint32_t lead = out->rank - s->rank;
    for (uint32_t k = 0; k < s->rank; k++) {
      int64_t *d = &out->dims[lead + k];
      if (*d == s->dims[k] || s->dims[k] == 1) continue;
      if (*d != 1) {
        return cx_ops_error(node, "cannot broadcast %s with %s",
                            cx_graph_shape_str(cx_in(node, i - 1)),
                            cx_graph_shape_str(s));
      }
      *d = s->dims[k];
    }
  }
  return NULL;
}

// ---- emission ---------------------------------------------------------------

cx_hlo_type cx_ops_out_type(const cx_graph_emit *e, uint32_t k)
{
  return cx_hlo_type_of(&e->node->out[k].shape);
}

cx_hlo_value *cx_ops_emit_expand(const cx_graph_emit *e, cx_hlo_value *v,
                                 const cx_graph_shape *to)
{
  const cx_hlo_type *from = cx_hlo_value_type(v);
  bool same = from->rank == to->rank;
  for (size_t i = 0; same && i < from->rank; i++) {
    same = from->dims[i] == to->dims[i];
  }
  if (v == NULL || same) return v;
  int64_t at[CALX_MAX_RANK];
  for (size_t i = 0; i < from->rank; i++) {
    at[i] = (int64_t)(to->rank - from->rank + i);
  }
  return cx_hlo_broadcast_in_dim(e->b, v, to->dims, to->rank, at);
}

cx_hlo_value *cx_ops_emit_along(const cx_graph_emit *e, cx_hlo_value *v,
                                const cx_graph_shape *to, int64_t dim)
{
  return cx_hlo_broadcast_in_dim(e->b, v, to->dims, to->rank, &dim);
}

cx_hlo_value *cx_ops_emit_splat(const cx_graph_emit *e, cx_hlo_elem elem,
                                const cx_graph_shape *like, double value)
{
  cx_hlo_type rank0 = { .elem = elem };
  return cx_ops_emit_expand(e, cx_hlo_splat(e->b, rank0, value), like);
}

cx_hlo_elem cx_ops_emit_wide(calx_dtype d)
{
  return d == CALX_BF16 || d == CALX_F16 ? CX_HLO_F32 : cx_hlo_elem_of(d);
}

cx_hlo_value *cx_ops_emit_cast(const cx_graph_emit *e, cx_hlo_value *v,
                               cx_hlo_elem to)
{
  if (cx_hlo_value_type(v)->elem == to) return v;
  return cx_hlo_convert(e->b, v, to);
}

cx_hlo_value *cx_ops_emit_trunc(const cx_graph_emit *e, cx_hlo_value *x,
                                cx_hlo_value *zero)
{
  return cx_hlo_select(e->b, cx_hlo_compare(e->b, CX_HLO_LT, x, zero),
                       cx_hlo_unary(e->b, CX_HLO_OP_CEIL, x),
                       cx_hlo_unary(e->b, CX_HLO_OP_FLOOR, x));
}

cx_hlo_value *cx_ops_emit_opposed(const cx_graph_emit *e, cx_hlo_value *rest,
                                  cx_hlo_value *y, cx_hlo_value *zero)
{
  cx_hlo_builder *b = e->b;
  cx_hlo_value *any = cx_hlo_compare(b, CX_HLO_NE, rest, zero);
  cx_hlo_value *other =
      cx_hlo_compare(b, CX_HLO_NE, cx_hlo_compare(b, CX_HLO_LT, rest, zero),
                     cx_hlo_compare(b, CX_HLO_LT, y, zero));
  return cx_hlo_binary(b, CX_HLO_OP_AND, any, other);
}
