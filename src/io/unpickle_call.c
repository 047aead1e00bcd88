// io/unpickle_call: the few names of Python's that a pickle may use, and what
// calling them makes.
#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "io/pickle.h"

static const struct {
  const char *name;  // "module name"
  cx_io_call call;
  calx_dtype dtype;  // DEFAULT: an untyped storage, or none
} names[] = {
  { "torch._utils _rebuild_tensor_v2", CX_IO_REBUILD_2, 0 },
  { "torch._utils _rebuild_tensor_v3", CX_IO_REBUILD_3, 0 },
  { "torch._utils _rebuild_device_tensor_from_cpu_tensor", CX_IO_REBUILD_DEVICE,
    0 },
  { "torch._utils _rebuild_parameter", CX_IO_PARAMETER, 0 },
  { "torch._utils _rebuild_parameter_with_state", CX_IO_PARAMETER, 0 },
  { "torch._tensor _rebuild_from_type_v2", CX_IO_FROM_TYPE, 0 },
  { "torch Tensor", CX_IO_TENSOR_TYPE, 0 },
  { "torch.nn.parameter Parameter", CX_IO_TENSOR_TYPE, 0 },
  { "torch.nn.parameter Buffer", CX_IO_TENSOR_TYPE, 0 },
  { "torch BoolStorage", CX_IO_STORAGE, CALX_BOOL },
  { "torch CharStorage", CX_IO_STORAGE, CALX_I8 },
  { "torch ShortStorage", CX_IO_STORAGE, CALX_I16 },
  { "torch IntStorage", CX_IO_STORAGE, CALX_I32 },
  { "torch LongStorage", CX_IO_STORAGE, CALX_I64 },
  { "torch ByteStorage", CX_IO_STORAGE, CALX_U8 },
  { "torch BFloat16Storage", CX_IO_STORAGE, CALX_BF16 },
  { "torch HalfStorage", CX_IO_STORAGE, CALX_F16 },
  { "torch FloatStorage", CX_IO_STORAGE, CALX_F32 },
  { "torch DoubleStorage", CX_IO_STORAGE, CALX_F64 },
  { "torch ComplexFloatStorage", CX_IO_STORAGE, CALX_C64 },
  { "torch ComplexDoubleStorage", CX_IO_STORAGE, CALX_C128 },
  { "torch.storage UntypedStorage", CX_IO_STORAGE, CALX_DTYPE_DEFAULT },
  { "torch UntypedStorage", CX_IO_STORAGE, CALX_DTYPE_DEFAULT },
  { "torch bool", CX_IO_DTYPE, CALX_BOOL },
  { "torch int8", CX_IO_DTYPE, CALX_I8 },
  { "torch int16", CX_IO_DTYPE, CALX_I16 },
  { "torch int32", CX_IO_DTYPE, CALX_I32 },
  { "torch int64", CX_IO_DTYPE, CALX_I64 },
  { "torch uint8", CX_IO_DTYPE, CALX_U8 },
  { "torch uint16", CX_IO_DTYPE, CALX_U16 },
  { "torch uint32", CX_IO_DTYPE, CALX_U32 },
  { "torch uint64", CX_IO_DTYPE, CALX_U64 },
  { "torch bfloat16", CX_IO_DTYPE, CALX_BF16 },
  { "torch float16", CX_IO_DTYPE, CALX_F16 },
  { "torch float32", CX_IO_DTYPE, CALX_F32 },
  { "torch float64", CX_IO_DTYPE, CALX_F64 },
  { "torch complex64", CX_IO_DTYPE, CALX_C64 },
  { "torch complex128", CX_IO_DTYPE, CALX_C128 },
  { "torch Size", CX_IO_SIZE, 0 },
  { "collections OrderedDict", CX_IO_DICT, 0 },
  { "collections defaultdict", CX_IO_DICT, 0 },
  { "collections Counter", CX_IO_DICT, 0 },
  { "pytorch_lightning.utilities.parsing AttributeDict", CX_IO_DICT, 0 },
  { "lightning.pytorch.utilities.parsing AttributeDict", CX_IO_DICT, 0 },
  { "lightning_fabric.utilities.data AttributeDict", CX_IO_DICT, 0 },
  { "lightning.fabric.utilities.data AttributeDict", CX_IO_DICT, 0 },
  { "argparse Namespace", CX_IO_NAMESPACE, 0 },
  { "types SimpleNamespace", CX_IO_NAMESPACE, 0 },
  { "builtins set", CX_IO_SET, 0 },
  { "__builtin__ set", CX_IO_SET, 0 },
  { "builtins frozenset", CX_IO_SET, 0 },
  { "__builtin__ frozenset", CX_IO_SET, 0 },
  { "_codecs encode", CX_IO_ENCODE, 0 },
  { "pathlib PosixPath", CX_IO_PATH, 0 },
  { "pathlib PurePosixPath", CX_IO_PATH, 0 },
  { "pathlib._local PosixPath", CX_IO_PATH, 0 },
  { "pathlib._local PurePosixPath", CX_IO_PATH, 0 },
  { "numpy dtype", CX_IO_NUMPY_DTYPE, 0 },
  { "numpy.core.multiarray scalar", CX_IO_NUMPY_SCALAR, 0 },
  { "numpy._core.multiarray scalar", CX_IO_NUMPY_SCALAR, 0 },
};

calx_status *cx_io_unpickle_name(cx_io_unpickling *u, const char *module,
                                 size_t module_size, const char *name,
                                 size_t name_size, cx_io_node **out)
{
  char from[101], called[101], text[256];
  cx_text_plain(module, module_size, from, sizeof from);
  cx_text_plain(name, name_size, called, sizeof called);
  snprintf(text, sizeof text, "%s.%s", from, called);
  cx_io_node *node = cx_io_node_foreign(u, CALX_KIND_NONE, text, u->op);
  *out = node;
  if (node == NULL) return cx_out_of_memory();
  node->what = CX_IO_NODE_CALL;
  node->call = CX_IO_UNKNOWN;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *known = names[i].name;
    if (strlen(known) != module_size + 1 + name_size ||
        memcmp(known, module, module_size) != 0 || known[module_size] != ' ' ||
        memcmp(known + module_size + 1, name, name_size) != 0) {
      continue;
    }
    node->call = names[i].call;
    node->dtype = names[i].dtype;
    break;
  }
  return NULL;
}

// ---- arguments --------------------------------------------------------------

static bool is_value(const cx_io_node *node, calx_kind type)
{
  return node->what == CX_IO_NODE_VALUE && node->type == type;
}

static calx_status *wrong_arguments(const cx_io_unpickling *u, const char *call)
{
  return cx_io_unpickle_bad(u, CALX_DATA_LOSS, "%s with other arguments", call);
}

static bool is_natural(const cx_io_node *node)
{
  return is_value(node, CALX_KIND_INT) && node->as.integer >= 0;
}

// A tuple of `rank` natural numbers.
static bool take_numbers(const cx_io_node *tuple, size_t rank, int64_t *out)
{
  if (!is_value(tuple, CALX_KIND_TUPLE) || tuple->as.list.count != rank) {
    return false;
  }
  for (size_t i = 0; i < rank; i++) {
    const cx_io_node *n = tuple->as.list.items[i];
    if (!is_natural(n)) return false;
    out[i] = n->as.integer;
  }
  return true;
}

// Whether an argument is foreign. What is made of it is so too: *out.
static bool has_foreign(const cx_io_node *args, cx_io_node **out)
{
  for (size_t i = 0; i < args->as.list.count; i++) {
    if (!cx_io_node_is_foreign(args->as.list.items[i])) continue;
    *out = args->as.list.items[i];
    return true;
  }
  return false;
}

// ---- calls ------------------------------------------------------------------

// (storage, offset, sizes, strides, requires_grad, hooks, …); version 3 has the
// dtype at 6.
static calx_status *rebuild(cx_io_unpickling *u, const cx_io_node *args,
                            bool has_dtype, cx_io_node **out)
{
  cx_io_node *const *a = args->as.list.items;
  size_t n = args->as.list.count;
  if (has_foreign(args, out)) return NULL;
  if (n < (has_dtype ? 7u : 6u) || a[0]->what != CX_IO_NODE_STORAGE ||
      !is_natural(a[1]) || !is_value(a[2], CALX_KIND_TUPLE)) {
    return wrong_arguments(u, "_rebuild_tensor");
  }
  size_t rank = a[2]->as.list.count;
  if (rank > CALX_MAX_RANK) {
    return cx_io_unpickle_bad(u, CALX_UNIMPLEMENTED,
                              "a tensor of rank %zu, at most %d are possible",
                              rank, CALX_MAX_RANK);
  }
  cx_io_strided *t = CX_ARENA_NEW(u->arena, cx_io_strided);
  cx_io_node *node = cx_io_node_new(u, CALX_KIND_TENSOR);
  if (t == NULL || node == NULL) return cx_out_of_memory();
  node->what = CX_IO_NODE_TENSOR;
  node->as.tensor = t;
  node->dtype = a[0]->dtype;
  t->storage = a[0];
  t->offset = a[1]->as.integer;
  t->rank = (uint32_t)rank;
  if (!take_numbers(a[2], rank, t->dims) ||
      !take_numbers(a[3], rank, t->strides)) {
    return wrong_arguments(u, "_rebuild_tensor");
  }
  if (has_dtype) {
    if (a[6]->what != CX_IO_NODE_CALL || a[6]->call != CX_IO_DTYPE) {
      return wrong_arguments(u, "_rebuild_tensor_v3");
    }
    node->dtype = a[6]->dtype;
  }
  if (node->dtype == CALX_DTYPE_DEFAULT) {
    return wrong_arguments(u, "_rebuild_tensor");
  }
  *out = node;
  return NULL;
}

// torch.nn.Parameter(tensor, requires_grad, hooks), and a tensor that was on an
// XLA device: both begin with the tensor.
static calx_status *first_tensor(cx_io_unpickling *u, const char *call,
                                 const cx_io_node *args, cx_io_node **out)
{
  if (has_foreign(args, out)) return NULL;
  if (args->as.list.count == 0 ||
      args->as.list.items[0]->what != CX_IO_NODE_TENSOR) {
    return wrong_arguments(u, call);
  }
  *out = args->as.list.items[0];
  return NULL;
}

// (function, class, its arguments, state): the function's tensor. The state,
// attributes that a user has set, is ignored.
static calx_status *from_type(cx_io_unpickling *u, const cx_io_node *args,
                              cx_io_node **out)
{
  cx_io_node *const *a = args->as.list.items;
  if (has_foreign(args, out)) return NULL;
  bool right = args->as.list.count == 4 && a[0]->what == CX_IO_NODE_CALL &&
               a[1]->what == CX_IO_NODE_CALL &&
               a[1]->call == CX_IO_TENSOR_TYPE &&
               is_value(a[2], CALX_KIND_TUPLE);
  if (right && a[0]->call == CX_IO_REBUILD_2) {
    return rebuild(u, a[2], false, out);
  }
  if (right && a[0]->call == CX_IO_REBUILD_3) {
    return rebuild(u, a[2], true, out);
  }
  return wrong_arguments(u, "_rebuild_from_type_v2");
}

// A container with the items of the only argument, or an empty container.
static calx_status *copy_items(cx_io_unpickling *u, const cx_io_node *args,
                               calx_kind type, cx_io_node **out)
{
  const cx_io_node *from =
      args->as.list.count == 1 ? args->as.list.items[0] : NULL;
  bool fits = args->as.list.count == 0 ||
              (from != NULL && (is_value(from, CALX_KIND_LIST) ||
                                is_value(from, CALX_KIND_TUPLE)));
  if (!fits) return wrong_arguments(u, calx_kind_name(type));
  cx_io_node *node = cx_io_node_new(u, type);
  if (node == NULL) return cx_out_of_memory();
  for (size_t i = 0; from != NULL && i < from->as.list.count; i++) {
    if (!cx_io_node_add(u, node, from->as.list.items[i])) {
      return cx_out_of_memory();
    }
  }
  *out = node;
  return NULL;
}

// _codecs.encode(text, 'latin1'): each character is a byte.
static calx_status *encode(cx_io_unpickling *u, const cx_io_node *args,
                           cx_io_node **out)
{
  cx_io_node *const *a = args->as.list.items;
  if (args->as.list.count != 2 || !is_value(a[0], CALX_KIND_STRING) ||
      !is_value(a[1], CALX_KIND_STRING) || a[1]->as.text.size != 6 ||
      memcmp(a[1]->as.text.data, "latin1", 6) != 0) {
    return wrong_arguments(u, "_codecs.encode");
  }
  const unsigned char *p = (const unsigned char *)a[0]->as.text.data;
  size_t size = a[0]->as.text.size, n = 0;
  char *bytes = cx_arena_alloc(u->arena, size + 1);
  cx_io_node *node = cx_io_node_new(u, CALX_KIND_BYTES);
  if (bytes == NULL || node == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < size; i++) {
    bool two = (p[i] == 0xc2 || p[i] == 0xc3) && i + 1 < size &&
               (p[i + 1] & 0xc0) == 0x80;
    if (p[i] >= 0x80 && !two) return wrong_arguments(u, "_codecs.encode");
    bytes[n++] = two ? (char)((p[i] & 3) << 6 | (p[i + 1] & 0x3f)) : (char)p[i];
    if (two) i++;
  }
  node->as.text.data = bytes;
  node->as.text.size = n;
  *out = node;
  return NULL;
}

calx_status *cx_io_unpickle_call(cx_io_unpickling *u, const cx_io_node *callee,
                                 const cx_io_node *args, cx_io_node **out)
{
  *out = NULL;
  bool foreign = cx_io_node_is_foreign(callee);
  if ((callee->what != CX_IO_NODE_CALL && !foreign) ||
      !is_value(args, CALX_KIND_TUPLE)) {
    return cx_io_unpickle_bad(u, CALX_DATA_LOSS,
                              "a call of something that is no name");
  }
  if (foreign) return cx_io_unpickle_foreign(u, callee, out);
  switch (callee->call) {
    case CX_IO_REBUILD_2: return rebuild(u, args, false, out);
    case CX_IO_REBUILD_3: return rebuild(u, args, true, out);
    case CX_IO_REBUILD_DEVICE:
      return first_tensor(u, "_rebuild_device_tensor_from_cpu_tensor", args,
                          out);
    case CX_IO_PARAMETER:
      return first_tensor(u, "_rebuild_parameter", args, out);
    case CX_IO_FROM_TYPE: return from_type(u, args, out);
    case CX_IO_SIZE: return copy_items(u, args, CALX_KIND_TUPLE, out);
    case CX_IO_SET: return copy_items(u, args, CALX_KIND_SET, out);
    case CX_IO_ENCODE: return encode(u, args, out);
    case CX_IO_PATH: return cx_io_unpickle_path(u, callee, args, out);
    case CX_IO_NUMPY_DTYPE: return cx_io_unpickle_dtype(u, callee, args, out);
    case CX_IO_NUMPY_SCALAR: return cx_io_unpickle_number(u, callee, args, out);
    case CX_IO_DICT:
    case CX_IO_NAMESPACE: return cx_io_unpickle_new(u, callee, args, out);
    case CX_IO_TENSOR_TYPE:
    case CX_IO_STORAGE:
    case CX_IO_DTYPE:
    case CX_IO_UNKNOWN: break;
  }
  return cx_io_unpickle_bad(u, CALX_UNIMPLEMENTED,
                            "a call of a type, which is not made");
}

// ('storage', torch.FloatStorage, '0', 'cpu', 250)
calx_status *cx_io_unpickle_storage(cx_io_unpickling *u, const cx_io_node *id,
                                    cx_io_node **out)
{
  *out = NULL;
  cx_io_node *const *a = id->as.list.items;
  if (is_value(id, CALX_KIND_TUPLE) && has_foreign(id, out)) return NULL;
  bool right = is_value(id, CALX_KIND_TUPLE) && id->as.list.count == 5 &&
               is_value(a[0], CALX_KIND_STRING) && a[0]->as.text.size == 7 &&
               memcmp(a[0]->as.text.data, "storage", 7) == 0 &&
               a[1]->what == CX_IO_NODE_CALL && a[1]->call == CX_IO_STORAGE &&
               is_value(a[2], CALX_KIND_STRING) && is_natural(a[4]);
  if (!right) {
    return cx_io_unpickle_bad(u, CALX_DATA_LOSS,
                              "a persistent id that names no storage");
  }
  cx_io_node *node = cx_io_node_new(u, CALX_KIND_NONE);
  if (node == NULL) return cx_out_of_memory();
  node->what = CX_IO_NODE_STORAGE;
  node->dtype = a[1]->dtype;
  node->as.storage.key = a[2];
  node->as.storage.elements = a[4]->as.integer;
  *out = node;
  return NULL;
}
