// ops/create: tensors from numbers: scalar, constant, arange, full.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "ops/ops.h"

// There is no operand, so the result's shape is an attribute.
typedef struct create_attrs {
  cx_graph_shape shape;
  double value;  // constant
} create_attrs;

static calx_status *infer_create(cx_graph_node *node)
{
  const create_attrs *a = node->attrs;
  node->out[0].shape = a->shape;
  return NULL;
}

static create_attrs attrs_of(calx_dtype dtype, const calx_dims *dims)
{
  create_attrs a;
  memset(&a, 0, sizeof a);
  a.shape.dtype = dtype;
  a.shape.rank = (uint32_t)dims->count;
  for (size_t i = 0; i < dims->count; i++) a.shape.dims[i] = dims->values[i];
  return a;
}

static void describe_create(const void *attrs, cx_text *out)
{
  const create_attrs *a = attrs;
  cx_graph_shape_print(out, &a->shape);
}

static void describe_constant(const void *attrs, cx_text *out)
{
  const create_attrs *a = attrs;
  cx_text_format(out, "%g", a->value);
  if (a->shape.rank == 0) return;
  cx_text_append(out, " in ");
  cx_graph_shape_print(out, &a->shape);
}

// ---- scalar: a user's number; full is one with dimensions -------------------

static void emit_scalar(cx_graph_emit *e)
{
  cx_hlo_value *v =
      cx_ops_emit_cast(e, e->slots[0], cx_ops_out_type(e, 0).elem);
  e->out[0] = cx_ops_emit_expand(e, v, &e->node->out[0].shape);
}

CX_OPS_DEFINE(scalar, .attr_size = sizeof(create_attrs), .infer = infer_create,
              .emit = emit_scalar, .describe = describe_create,
              .takes_complex = true)

static calx_tensor *record_scalar(calx_dtype dtype, const calx_dims *dims,
                                  cx_graph_slot slot, calx_device *device)
{
  create_attrs a = attrs_of(dtype, dims);
  cx_lazy_call call = { .op = &cx_ops_scalar,
                        .attrs = &a,
                        .slots = &slot,
                        .n_slots = 1,
                        .device = device };
  return cx_lazy_apply(&call, NULL);
}

static const calx_dims rank0 = { .count = 0 };

// The slot that carries a number into an element type without loss.
static cx_graph_slot number_slot(calx_dtype dtype, double value)
{
  if (cx_dtype_part(dtype) == CALX_F64) {
    return (cx_graph_slot){ .dtype = CALX_F64, .value.number = value };
  }
  if (cx_dtype_is_inexact(dtype)) {
    return (cx_graph_slot){ .dtype = CALX_F32, .value.number = value };
  }
  if (dtype == CALX_BOOL) value = value != 0;  // 0.5 and NaN are true
  int64_t integer;
  cx_store_double(CALX_I64, &integer, value);
  return (cx_graph_slot){ .dtype = CALX_I64, .value.integer = integer };
}

calx_tensor *calx_scalar(double value)
{
  calx_tensor *t =
      record_scalar(CALX_F32, &rank0, number_slot(CALX_F32, value), NULL);
  cx_lazy_tensor_mark(t, CX_LAZY_T_WEAK);
  return t;
}

calx_tensor *calx_scalar_int(int64_t value)
{
  cx_graph_slot slot = { .dtype = CALX_I64, .value.integer = value };
  calx_tensor *t = record_scalar(CALX_I64, &rank0, slot, NULL);
  cx_lazy_tensor_mark(t, CX_LAZY_T_WEAK);
  return t;
}

// ---- constant: an op's own literal ------------------------------------------

static void emit_constant(cx_graph_emit *e)
{
  const create_attrs *a = e->attrs;
  e->out[0] =
      cx_ops_emit_splat(e, cx_ops_out_type(e, 0).elem, &a->shape, a->value);
}

CX_OPS_DEFINE(constant, .attr_size = sizeof(create_attrs),
              .infer = infer_create, .emit = emit_constant,
              .describe = describe_constant, .takes_complex = true)

static calx_tensor *record_constant(calx_dtype dtype, const calx_dims *dims,
                                    double value, calx_device *device)
{
  create_attrs a = attrs_of(dtype, dims);
  a.value = value;
  return cx_lazy_apply(
      &(cx_lazy_call){ .op = &cx_ops_constant, .attrs = &a, .device = device },
      NULL);
}

calx_tensor *cx_ops_number(double value)
{
  calx_tensor *t = record_constant(CALX_F32, &rank0, value, NULL);
  cx_lazy_tensor_mark(t, CX_LAZY_T_WEAK);
  return t;
}

bool cx_ops_weak_number(const calx_tensor *t, bool constant_only, double *out)
{
  const cx_graph_node *node = cx_lazy_tensor_value(t).node;
  if (!cx_lazy_tensor_is(t, CX_LAZY_T_WEAK) || node == NULL) return false;
  if (node->op == &cx_ops_constant) {
    *out = ((const create_attrs *)node->attrs)->value;
    return true;
  }
  if (constant_only || node->op != &cx_ops_scalar) return false;
  const cx_graph_slot *s = &node->slots[0];
  *out = s->dtype == CALX_I64 ? (double)s->value.integer : s->value.number;
  return true;
}

calx_status *cx_ops_check_number(const char *op, double number,
                                 calx_dtype dtype)
{
  if (cx_dtype_is_inexact(dtype) || dtype == CALX_BOOL) return NULL;
  int bits = 8 * (int)calx_dtype_size(dtype);
  bool positive = cx_dtype_is_unsigned(dtype);
  double end = ldexp(1, positive ? bits : bits - 1);
  double whole = trunc(number);
  if (whole < end && (positive ? whole > -end : whole >= -end)) return NULL;
  return cx_invalid("%s: %.17g has no value in %s, which holds %.17g to %.17g",
                    op, number, calx_dtype_name(dtype), positive ? 0.0 : -end,
                    end - 1);
}

calx_status *cx_ops_check_weak(const char *op, const calx_tensor *t,
                               calx_dtype dtype)
{
  const cx_graph_node *node = cx_lazy_tensor_is(t, CX_LAZY_T_WEAK)
                                  ? cx_lazy_tensor_value(t).node
                                  : NULL;
  // A double cannot hold every 64-bit integer, so these are compared as
  // integers.
  if (node != NULL && node->op == &cx_ops_scalar &&
      node->slots[0].dtype == CALX_I64 && calx_dtype_size(dtype) == 8) {
    return NULL;
  }
  double number;
  return node != NULL && cx_ops_weak_number(t, false, &number)
             ? cx_ops_check_number(op, number, dtype)
             : NULL;
}

calx_tensor *cx_ops_weak_as(const calx_tensor *t, calx_dtype dtype,
                            calx_device *device)
{
  const cx_graph_node *node = cx_lazy_tensor_value(t).node;
  if (node == NULL) return (calx_tensor *)t;  // poison: there was no memory
  if (device == NULL) device = calx_tensor_device(t);
  if (node->op == &cx_ops_constant) {
    const create_attrs *a = node->attrs;
    return record_constant(dtype, &rank0, a->value, device);
  }
  if (node->op != &cx_ops_scalar) {
    return calx_to_dtype((calx_tensor *)t, dtype);
  }
  cx_graph_slot s = node->slots[0];
  if (s.dtype != CALX_I64 || cx_dtype_is_inexact(dtype)) {
    double v = s.dtype == CALX_I64 ? (double)s.value.integer : s.value.number;
    s = number_slot(dtype, v);
  }
  return record_scalar(dtype, &rank0, s, device);
}

// ---- the public creators ----------------------------------------------------

bool cx_ops_good_shape(const char *op, calx_dims dims, calx_dtype dtype,
                       const calx_create_options *o, calx_tensor **out)
{
  int64_t elements;
  size_t bytes;
  if (o != NULL && !cx_ops_options_fit(op, o->size, sizeof *o, out)) {
    return false;
  }
  if (!cx_dtype_valid(dtype)) {
    *out = cx_ops_invalid("%s: %d is no element type", op, (int)dtype);
  } else if (dims.count > CALX_MAX_RANK) {
    *out = cx_ops_invalid("%s: rank %zu, at most %d are possible", op,
                          dims.count, CALX_MAX_RANK);
  } else if (!cx_dims_bytes(dtype, dims.values, dims.count, &elements,
                            &bytes)) {
    cx_graph_shape s = { .dtype = dtype, .rank = (uint32_t)dims.count };
    memcpy(s.dims, dims.values, dims.count * sizeof *s.dims);
    *out = cx_ops_invalid("%s: %s has a negative size or is too large", op,
                          cx_graph_shape_str(&s));
  } else {
    return true;
  }
  return false;
}

static calx_tensor *finish(calx_tensor *t, const calx_create_options *o)
{
  if (o == NULL || !o->requires_grad || cx_lazy_tensor_poisoned(t)) return t;
  if (!cx_dtype_is_inexact(cx_lazy_tensor_shape(t)->dtype)) {
    return cx_ops_invalid(
        "requires_grad: only floating and complex types have gradients, not "
        "%s; give a floating .dtype",
        cx_graph_shape_str(cx_lazy_tensor_shape(t)));
  }
  cx_lazy_tensor_set_requires_grad(t, true);
  return t;
}

static calx_dtype dtype_or(const calx_create_options *o, calx_dtype d)
{
  return o != NULL && o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : d;
}

static calx_device *device_of(const calx_create_options *o)
{
  return o != NULL ? o->device : NULL;
}

static calx_tensor *filled(const char *op, calx_dims dims, double value,
                           const calx_create_options *o)
{
  calx_dtype dtype = dtype_or(o, CALX_F32);
  calx_tensor *bad;
  if (!cx_ops_good_shape(op, dims, dtype, o, &bad)) return bad;
  return finish(record_constant(dtype, &dims, value, device_of(o)), o);
}

calx_tensor *calx_zeros_with(calx_dims shape, const calx_create_options *o)
{
  return filled("zeros", shape, 0, o);
}

calx_tensor *calx_ones_with(calx_dims shape, const calx_create_options *o)
{
  return filled("ones", shape, 1, o);
}

calx_tensor *calx_full_with(calx_dims dims, double value,
                            const calx_create_options *o)
{
  calx_dtype dtype = dtype_or(o, CALX_F32);
  calx_tensor *bad;
  if (!cx_ops_good_shape("full", dims, dtype, o, &bad)) return bad;
  calx_status *status = cx_ops_check_number("full", value, dtype);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  cx_graph_slot slot = number_slot(dtype, value);
  return finish(record_scalar(dtype, &dims, slot, device_of(o)), o);
}

// ---- arange -----------------------------------------------------------------

static void emit_arange(cx_graph_emit *e)
{
  const create_attrs *a = e->attrs;
  cx_hlo_elem elem = cx_hlo_elem_of(e->node->slots[0].dtype);
  cx_hlo_type type = { elem, 1, a->shape.dims };
  cx_hlo_value *i = cx_hlo_iota(e->b, type, 0);
  cx_hlo_value *start = cx_ops_emit_expand(e, e->slots[0], &a->shape);
  cx_hlo_value *step = cx_ops_emit_expand(e, e->slots[1], &a->shape);
  cx_hlo_value *v = cx_hlo_binary(e->b, CX_HLO_OP_MULTIPLY, i, step);
  v = cx_hlo_binary(e->b, CX_HLO_OP_ADD, start, v);
  e->out[0] = cx_ops_emit_cast(e, v, cx_ops_out_type(e, 0).elem);
}

CX_OPS_DEFINE(arange, .attr_size = sizeof(create_attrs), .infer = infer_create,
              .emit = emit_arange, .describe = describe_create)

calx_tensor *calx_arange_with(double start, double end, double step,
                              const calx_create_options *o)
{
  bool whole = start == floor(start) && step == floor(step) &&
               (end == floor(end) || isnan(end));
  calx_dtype dtype = dtype_or(o, whole ? CALX_I64 : CALX_F32);
  double count = ceil((end - start) / step);
  if (!(fabs(step) > 0) || !(count >= 0) || count > 9e15) {
    return cx_ops_invalid(
        "arange: from %g to %g in steps of %g: the step must "
        "lead from the start to the end, in 9e15 steps at most",
        start, end, step);
  }
  int64_t n = (int64_t)count;
  calx_dims dims = calx_dims_of(&n, 1);
  calx_tensor *bad;
  if (!cx_ops_good_shape("arange", dims, dtype, o, &bad)) return bad;
  create_attrs a = attrs_of(dtype, &dims);
  calx_dtype in = cx_dtype_is_float(dtype) ? CALX_F32 : dtype;
  if (dtype == CALX_F64) in = CALX_F64;
  cx_graph_slot slots[2] = { number_slot(in, start), number_slot(in, step) };
  cx_lazy_call call = { .op = &cx_ops_arange,
                        .attrs = &a,
                        .slots = slots,
                        .n_slots = 2,
                        .device = device_of(o) };
  return finish(cx_lazy_apply(&call, NULL), o);
}
