// ref/custom_call: calls registered functions, by XLA's FFI.
//
// A call frame and all that it points to is made for each call, in one arena.
// Tensors whose layout in the call is not row-major are copied (custom_layout).
#include <string.h>

#include "base/arena.h"
#include "lapack/lapack.h"
#include "ref/handler.h"
#include "ref/inner.h"

enum { TYPED_FFI = 4 };  // of api_version

// ---- which calls ----

static cx_hlo_str target_of(const cx_hlo_op *op)
{
  const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_CALL_TARGET_NAME);
  return a == NULL ? (cx_hlo_str){ "", 0 } : a->as.text;
}

static const cx_hlo_attr *attributes_of(const cx_hlo_op *op)
{
  const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_BACKEND_CONFIG);
  if (a == NULL || a->kind != CX_HLO_ATTR_DICT) {
    a = cx_hlo_named_attr(op->extra, op->n_extra, "mhlo.backend_config");
  }
  return a;
}

// JAX's dce_sink: its operand is computed though nothing reads it.
static bool is_sink(const cx_hlo_op *op)
{
  return op->n_results == 0 && cx_hlo_str_equal(target_of(op), "dce_sink");
}

bool cpu_ref_handler_takes(const cx_hlo_op *op)
{
  return is_sink(op) || cpu_ref_handler_find(target_of(op)) != NULL;
}

static calx_status *check_version(const cx_hlo_op *op)
{
  // JAX writes the original version and a dictionary beside it.
  const cx_hlo_attr *dictionary = attributes_of(op);
  if (cx_hlo_op_int(op, CX_HLO_A_API_VERSION) == TYPED_FFI ||
      (dictionary != NULL && dictionary->kind == CX_HLO_ATTR_DICT)) {
    return NULL;
  }
  const cx_hlo_str name = target_of(op);
  return cx_error(CALX_UNIMPLEMENTED,
                  "custom_call: the target '%.*s' is called with api_version "
                  "%lld, registered functions take 4 (API_VERSION_TYPED_FFI)",
                  (int)name.n, name.s,
                  (long long)cx_hlo_op_int(op, CX_HLO_A_API_VERSION));
}

calx_status *cpu_ref_custom_call_check(const cx_hlo_op *op)
{
  if (is_sink(op)) return NULL;
  if (cpu_ref_handler_takes(op)) return check_version(op);
  cpu_lapack_desc desc;
  return cpu_lapack_describe(op, &desc);
}

// ---- values ----

static XLA_FFI_DataType type_of(cx_hlo_elem e)
{
#define ROW(elem, type) [CX_HLO_##elem] = XLA_FFI_DataType_##type
  static const XLA_FFI_DataType types[CX_HLO_ELEM_COUNT] = {
    ROW(I1, PRED),
    ROW(I2, S2),
    ROW(I4, S4),
    ROW(I8, S8),
    ROW(I16, S16),
    ROW(I32, S32),
    ROW(I64, S64),
    ROW(UI2, U2),
    ROW(UI4, U4),
    ROW(UI8, U8),
    ROW(UI16, U16),
    ROW(UI32, U32),
    ROW(UI64, U64),
    ROW(BF16, BF16),
    ROW(F16, F16),
    ROW(F32, F32),
    ROW(F64, F64),
    ROW(F8E5M2, F8E5M2),
    ROW(F8E4M3FN, F8E4M3FN),
    ROW(F8E4M3B11FNUZ, F8E4M3B11FNUZ),
    ROW(F8E5M2FNUZ, F8E5M2FNUZ),
    ROW(F8E4M3FNUZ, F8E4M3FNUZ),
    ROW(F8E4M3, F8E4M3),
    ROW(F8E3M4, F8E3M4),
    ROW(F8E8M0FNU, F8E8M0FNU),
    ROW(F4E2M1FN, F4E2M1FN),
    ROW(C64, C64),
    ROW(C128, C128),
    ROW(INDEX, S64),
    ROW(TOKEN, TOKEN)
  };
#undef ROW
  return types[e];
}

static XLA_FFI_Buffer *buffer_of(cx_arena *arena, const cpu_ref_tensor *t)
{
  XLA_FFI_Buffer *b = CX_ARENA_NEW(arena, XLA_FFI_Buffer);
  int64_t *dims = CX_ARENA_ARRAY(arena, int64_t, t->type.rank + 1);
  if (b == NULL || dims == NULL) return NULL;
  for (size_t i = 0; i < t->type.rank; i++) dims[i] = t->type.dims[i];
  *b = (XLA_FFI_Buffer){ CX_XLA_FFI_NEW(XLA_FFI_Buffer),
                         .dtype = type_of(t->type.elem), .data = t->data,
                         .rank = (int64_t)t->type.rank, .dims = dims };
  return b;
}

// ---- attributes ----

static calx_status *dictionary_of(cx_arena *arena, const cx_hlo_attr *dict,
                                  XLA_FFI_Attrs *out);

static void *bytes_of(cx_arena *arena, const void *from, size_t n)
{
  unsigned char *p = cx_arena_alloc(arena, n + 1);
  if (p != NULL && n > 0) memcpy(p, from, n);
  return p;
}

static void *scalar_of(cx_arena *arena, const cx_hlo_attr *a)
{
  const cx_hlo_elem e = a->kind == CX_HLO_ATTR_BOOL ? CX_HLO_I1 : a->elem;
  XLA_FFI_Scalar *s = CX_ARENA_NEW(arena, XLA_FFI_Scalar);
  void *value = cx_arena_alloc(arena, 16);
  if (s == NULL || value == NULL) return NULL;
  if (a->kind == CX_HLO_ATTR_BOOL) {
    *(unsigned char *)value = a->as.flag;
  } else if (a->kind == CX_HLO_ATTR_INT) {
    cx_hlo_store_int(e, value, a->as.integer);
  } else {
    cx_hlo_store_bits(e, value, a->as.bits);
  }
  *s = (XLA_FFI_Scalar){ type_of(e), value };
  return s;
}

static void *integers_of(cx_arena *arena, const cx_hlo_attr *a)
{
  const size_t n = a->as.ints.n;
  const size_t each = cx_hlo_elem_bytes(a->elem);
  XLA_FFI_Array *array = CX_ARENA_NEW(arena, XLA_FFI_Array);
  unsigned char *data = cx_arena_alloc_array(arena, each, n + 1);
  if (array == NULL || data == NULL) return NULL;
  for (size_t i = 0; i < n; i++) {
    cx_hlo_store_int(a->elem, data + i * each, a->as.ints.v[i]);
  }
  *array = (XLA_FFI_Array){ type_of(a->elem), n, data };
  return array;
}

static void *elements_of(cx_arena *arena, const cx_hlo_elements *e)
{
  const cx_hlo_type *t = &e->type.tensor;
  const int64_t n = cx_hlo_type_elements(t);
  const size_t each = cx_hlo_elem_bytes(t->elem);
  XLA_FFI_Array *array = CX_ARENA_NEW(arena, XLA_FFI_Array);
  if (array == NULL || n < 0) return NULL;
  unsigned char *data = cx_arena_alloc_array(arena, each, (size_t)n + 1);
  if (data == NULL) return NULL;
  for (size_t i = 0; i < (size_t)n; i++) {
    memcpy(data + i * each, e->data + (e->splat ? 0 : i * each), each);
  }
  *array = (XLA_FFI_Array){ type_of(t->elem), (size_t)n, data };
  return array;
}

static void *string_of(cx_arena *arena, cx_hlo_str text)
{
  XLA_FFI_ByteSpan *s = CX_ARENA_NEW(arena, XLA_FFI_ByteSpan);
  char *copy = bytes_of(arena, text.s, text.n);
  if (s == NULL || copy == NULL) return NULL;
  *s = (XLA_FFI_ByteSpan){ copy, text.n };
  return s;
}

static calx_status *attribute_of(cx_arena *arena, const cx_hlo_named *named,
                                 XLA_FFI_AttrType *type, void **out)
{
  const cx_hlo_attr *a = named->attr;
  switch (a->kind) {
    case CX_HLO_ATTR_BOOL:
    case CX_HLO_ATTR_INT:
    case CX_HLO_ATTR_FLOAT:
      *type = XLA_FFI_AttrType_SCALAR;
      *out = scalar_of(arena, a);
      break;
    case CX_HLO_ATTR_STRING:
      *type = XLA_FFI_AttrType_STRING;
      *out = string_of(arena, a->as.text);
      break;
    case CX_HLO_ATTR_ARRAY:
      *type = XLA_FFI_AttrType_ARRAY;
      *out = integers_of(arena, a);
      break;
    case CX_HLO_ATTR_ELEMENTS:
      *type = XLA_FFI_AttrType_ARRAY;
      *out = elements_of(arena, &a->as.elements);
      break;
    case CX_HLO_ATTR_DICT: {
      XLA_FFI_Attrs *inner = CX_ARENA_NEW(arena, XLA_FFI_Attrs);
      *type = XLA_FFI_AttrType_DICTIONARY;
      *out = inner;
      if (inner != NULL) CALX_TRY(dictionary_of(arena, a, inner));
      break;
    }
    default:
      return cx_error(CALX_UNIMPLEMENTED,
                      "custom_call: its attribute '%.*s' is of a kind that "
                      "XLA's FFI has no form for",
                      (int)named->name.n, named->name.s);
  }
  return *out == NULL ? cx_out_of_memory() : NULL;
}

static int by_name(cx_hlo_str a, cx_hlo_str b)
{
  const int order = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
  return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

// The place of item k among all, in the order of their names.
static size_t rank_of(const cx_hlo_attr *dict, size_t k)
{
  const cx_hlo_named *items = dict->as.dict.items;
  size_t rank = 0;
  for (size_t i = 0; i < dict->as.dict.n; i++) {
    const int order = by_name(items[i].name, items[k].name);
    rank += order < 0 || (order == 0 && i < k);
  }
  return rank;
}

static calx_status *dictionary_of(cx_arena *arena, const cx_hlo_attr *dict,
                                  XLA_FFI_Attrs *out)
{
  const size_t n = dict == NULL ? 0 : dict->as.dict.n;
  *out = (XLA_FFI_Attrs){ CX_XLA_FFI_NEW(XLA_FFI_Attrs), .size = (int64_t)n };
  out->types = CX_ARENA_ARRAY(arena, XLA_FFI_AttrType, n + 1);
  out->names = CX_ARENA_ARRAY(arena, XLA_FFI_ByteSpan *, n + 1);
  out->attrs = CX_ARENA_ARRAY(arena, void *, n + 1);
  if (out->types == NULL || out->names == NULL || out->attrs == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_named *named = &dict->as.dict.items[i];
    const size_t at = rank_of(dict, i);
    out->names[at] = string_of(arena, named->name);
    if (out->names[at] == NULL) return cx_out_of_memory();
    CALX_TRY(attribute_of(arena, named, &out->types[at], &out->attrs[at]));
  }
  return NULL;
}

// ---- the call ----

static calx_status *buffers_of(cx_arena *arena, const cpu_ref_tensor *tensors,
                               size_t n, void **out)
{
  for (size_t i = 0; i < n; i++) {
    out[i] = buffer_of(arena, &tensors[i]);
    if (out[i] == NULL) return cx_out_of_memory();
  }
  return NULL;
}

static calx_status *make_frame(cx_arena *arena, const cpu_ref_call *c,
                               XLA_FFI_CallFrame *frame)
{
  const cx_hlo_op *op = c->op;
  const size_t n_in = op->n_operands;
  const size_t n_out = op->n_results;
  XLA_FFI_Args *args = &frame->args;
  XLA_FFI_Rets *rets = &frame->rets;
  *args = (XLA_FFI_Args){ CX_XLA_FFI_NEW(XLA_FFI_Args), .size = (int64_t)n_in };
  *rets =
      (XLA_FFI_Rets){ CX_XLA_FFI_NEW(XLA_FFI_Rets), .size = (int64_t)n_out };
  args->types = CX_ARENA_ARRAY(arena, XLA_FFI_ArgType, n_in + 1);
  args->args = CX_ARENA_ARRAY(arena, void *, n_in + 1);
  rets->types = CX_ARENA_ARRAY(arena, XLA_FFI_RetType, n_out + 1);
  rets->rets = CX_ARENA_ARRAY(arena, void *, n_out + 1);
  if (args->types == NULL || args->args == NULL || rets->types == NULL ||
      rets->rets == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n_in; i++) args->types[i] = XLA_FFI_ArgType_BUFFER;
  for (size_t i = 0; i < n_out; i++) rets->types[i] = XLA_FFI_RetType_BUFFER;
  CALX_TRY(buffers_of(arena, c->in, n_in, args->args));
  CALX_TRY(buffers_of(arena, c->out, n_out, rets->rets));
  const cx_hlo_attr *attributes = attributes_of(op);
  if (attributes != NULL && attributes->kind != CX_HLO_ATTR_DICT) {
    return cx_invalid("custom_call: its attributes are no dictionary");
  }
  return dictionary_of(arena, attributes, &frame->attrs);
}

// Where a result is to be in an operand's memory, it begins as its copy, and
// the handler sees one memory for both.
static void share_memory(const cpu_ref_call *c, XLA_FFI_CallFrame *frame)
{
  const cx_hlo_attr *list =
      cx_hlo_op_attr(c->op, CX_HLO_A_OUTPUT_OPERAND_ALIASES);
  for (size_t i = 0; list != NULL && i < list->as.list.n; i++) {
    const cx_hlo_output_alias *alias = list->as.list.items[i]->as.fields;
    const int64_t from = alias->operand;
    const int64_t to = alias->output.n == 0 ? 0 : alias->output.v[0];
    if (from < 0 || from >= c->op->n_operands || to < 0 ||
        to >= c->op->n_results ||
        !cx_hlo_type_equal(&c->in[from].type, &c->out[to].type)) {
      continue;
    }
    XLA_FFI_Buffer *operand = frame->args.args[from];
    const XLA_FFI_Buffer *result = frame->rets.rets[to];
    const int64_t bytes = cx_hlo_type_bytes(&c->out[to].type);
    if (bytes > 0) memcpy(result->data, operand->data, (size_t)bytes);
    operand->data = result->data;
  }
}

calx_status *cpu_ref_handler_run(const cpu_ref_call *c)
{
  const cx_hlo_str name = target_of(c->op);
  if (is_sink(c->op)) return NULL;
  CALX_TRY(check_version(c->op));
  XLA_FFI_Handler *handler = cpu_ref_handler_find(name);
  const cpu_ref_context *context = c->machine->context;
  XLA_FFI_ExecutionContext ctx = { context->user_data, context->n_user_data };
  XLA_FFI_CallFrame frame = { CX_XLA_FFI_NEW(XLA_FFI_CallFrame),
                              .api = cpu_ref_handler_api(), .ctx = &ctx,
                              .stage = XLA_FFI_ExecutionStage_EXECUTE };
  cx_arena arena = { 0 };
  calx_status *status = make_frame(&arena, c, &frame);
  if (status == NULL) status = cpu_ref_layouts_begin(&arena, c, &frame);
  if (status == NULL) {
    share_memory(c, &frame);
    status = cpu_ref_handler_status(handler(&frame));
    status = cx_annotate(status, "custom call '%.*s'", (int)name.n, name.s);
  }
  if (status == NULL) status = cpu_ref_layouts_end(c, &frame);
  cx_arena_free(&arena);
  return status;
}
