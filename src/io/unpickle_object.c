// io/unpickle_object: objects of Python's that checkpoints have beside tensors:
// dicts of other classes, namespaces, paths and numpy's numbers. Where such a
// class is given what its objects do not have, the node is foreign.
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "io/pickle.h"

static bool is_value(const cx_io_node *node, calx_kind type)
{
  return node->what == CX_IO_NODE_VALUE && node->type == type;
}

calx_status *cx_io_unpickle_foreign(cx_io_unpickling *u, const cx_io_node *of,
                                    cx_io_node **out)
{
  *out =
      cx_io_node_foreign(u, CALX_KIND_NONE, of->as.name.text, of->as.name.at);
  return *out != NULL ? NULL : cx_out_of_memory();
}

// ---- dicts ------------------------------------------------------------------

static calx_status *add_items(cx_io_unpickling *u, cx_io_node *to,
                              const cx_io_node *from)
{
  size_t n = from->as.list.count;
  for (size_t i = 0; to != from && i < n; i++) {
    if (!cx_io_node_add(u, to, from->as.list.items[i])) {
      return cx_out_of_memory();
    }
  }
  return NULL;
}

// A dict's items come later, or, as those of a Counter, in a dict. defaultdict
// has as argument what makes the value of a key that is not there.
calx_status *cx_io_unpickle_new(cx_io_unpickling *u, const cx_io_node *class,
                                const cx_io_node *args, cx_io_node **out)
{
  *out = NULL;
  if (cx_io_node_is_foreign(class)) {
    return cx_io_unpickle_foreign(u, class, out);
  }
  bool known = class->what == CX_IO_NODE_CALL &&
               (class->call == CX_IO_DICT || class->call == CX_IO_NAMESPACE);
  if (!known) {
    return cx_io_unpickle_bad(u, CALX_UNIMPLEMENTED,
                              "an object of a class, which is not made");
  }
  size_t n = is_value(args, CALX_KIND_TUPLE) ? args->as.list.count : 2;
  const cx_io_node *arg = n == 1 ? args->as.list.items[0] : NULL;
  bool has_items = arg != NULL && is_value(arg, CALX_KIND_DICT);
  if (n > 1 || (arg != NULL && !has_items && arg->what == CX_IO_NODE_VALUE)) {
    return cx_io_unpickle_foreign(u, class, out);
  }
  *out = cx_io_node_new(u, CALX_KIND_DICT);
  if (*out == NULL) return cx_out_of_memory();
  (*out)->call = class->call;
  return has_items ? add_items(u, *out, arg) : NULL;
}

// numpy gives a dtype (3, '<', …).
static void set_order(cx_io_node *dtype, const cx_io_node *state)
{
  const cx_io_node *order =
      is_value(state, CALX_KIND_TUPLE) && state->as.list.count > 1
          ? state->as.list.items[1]
          : NULL;
  bool little = order != NULL && is_value(order, CALX_KIND_STRING) &&
                order->as.text.size == 1 &&
                memchr("<|=", order->as.text.data[0], 3) != NULL;
  if (!little) dtype->dtype = CALX_DTYPE_DEFAULT;
}

// The version numbers that state_dict() attaches to its OrderedDict are of no
// use here.
calx_status *cx_io_unpickle_state(cx_io_unpickling *u, cx_io_node *object,
                                  const cx_io_node *state)
{
  if (cx_io_node_is_foreign(object)) return NULL;
  if (object->what == CX_IO_NODE_CALL && object->call == CX_IO_DTYPE) {
    set_order(object, state);
    return NULL;
  }
  if (!is_value(object, CALX_KIND_DICT)) {
    return cx_io_unpickle_bad(u, CALX_UNIMPLEMENTED,
                              "the state of an object, which is not read");
  }
  if (object->call != CX_IO_NAMESPACE || !is_value(state, CALX_KIND_DICT)) {
    return NULL;
  }
  return add_items(u, object, state);
}

// ---- paths ------------------------------------------------------------------

calx_status *cx_io_unpickle_path(cx_io_unpickling *u, const cx_io_node *callee,
                                 const cx_io_node *args, cx_io_node **out)
{
  size_t size = 0, n = args->as.list.count;
  for (size_t i = 0; i < n; i++) {
    const cx_io_node *part = args->as.list.items[i];
    if (!is_value(part, CALX_KIND_STRING)) {
      return cx_io_unpickle_foreign(u, callee, out);
    }
    size += part->as.text.size + 1;
  }
  char *path = cx_arena_alloc(u->arena, size + 2);
  cx_io_node *node = cx_io_node_new(u, CALX_KIND_STRING);
  if (path == NULL || node == NULL) return cx_out_of_memory();
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const cx_io_node *part = args->as.list.items[i];
    if (at > 0 && path[at - 1] != '/') path[at++] = '/';
    if (part->as.text.size == 0) continue;
    memcpy(path + at, part->as.text.data, part->as.text.size);
    at += part->as.text.size;
  }
  if (at == 0) path[at++] = '.';
  node->as.text.data = path;
  node->as.text.size = at;
  *out = node;
  return NULL;
}

// ---- numpy ------------------------------------------------------------------

// ('f8', False, True)
calx_status *cx_io_unpickle_dtype(cx_io_unpickling *u, const cx_io_node *callee,
                                  const cx_io_node *args, cx_io_node **out)
{
  static const struct {
    char name[3];
    calx_dtype dtype;
  } known[] = {
    { "b1", CALX_BOOL }, { "i1", CALX_I8 },  { "i2", CALX_I16 },
    { "i4", CALX_I32 },  { "i8", CALX_I64 }, { "u1", CALX_U8 },
    { "u2", CALX_U16 },  { "u4", CALX_U32 }, { "f2", CALX_F16 },
    { "f4", CALX_F32 },  { "f8", CALX_F64 },
  };
  const cx_io_node *name =
      args->as.list.count > 0 ? args->as.list.items[0] : callee;
  bool is_name = is_value(name, CALX_KIND_STRING) && name->as.text.size == 2;
  CALX_TRY(cx_io_unpickle_foreign(u, callee, out));
  (*out)->what = CX_IO_NODE_CALL;
  (*out)->call = CX_IO_DTYPE;
  for (size_t i = 0; is_name && i < sizeof known / sizeof *known; i++) {
    if (memcmp(known[i].name, name->as.text.data, 2) == 0) {
      (*out)->dtype = known[i].dtype;
    }
  }
  return NULL;
}

// (dtype, bytes)
calx_status *cx_io_unpickle_number(cx_io_unpickling *u,
                                   const cx_io_node *callee,
                                   const cx_io_node *args, cx_io_node **out)
{
  cx_io_node *const *a = args->as.list.items;
  bool right = args->as.list.count == 2 && a[0]->what == CX_IO_NODE_CALL &&
               a[0]->call == CX_IO_DTYPE && a[0]->dtype != CALX_DTYPE_DEFAULT &&
               is_value(a[1], CALX_KIND_BYTES) &&
               a[1]->as.text.size == calx_dtype_size(a[0]->dtype);
  if (!right) return cx_io_unpickle_foreign(u, callee, out);
  calx_dtype dtype = a[0]->dtype;
  bool real = dtype == CALX_F16 || dtype == CALX_F32 || dtype == CALX_F64;
  calx_kind kind = real                 ? CALX_KIND_FLOAT
                   : dtype == CALX_BOOL ? CALX_KIND_BOOL
                                        : CALX_KIND_INT;
  cx_io_node *node = cx_io_node_new(u, kind);
  if (node == NULL) return cx_out_of_memory();
  const char *bytes = a[1]->as.text.data;
  if (real) {
    node->as.real = cx_load_double(dtype, bytes);
  } else {
    node->as.integer = cx_load_int(dtype, bytes);
  }
  *out = node;
  return NULL;
}
