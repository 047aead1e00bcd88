// io/pickle: the part of Python's pickle format that torch.save writes.
//
// Reading builds plain nodes in an arena and runs nothing: a table has the few
// Python names that are known. What any other name makes is a foreign node,
// whatever is put into it; pt_read.c refuses it where it is part of the value.
// Protocols 2 to 5.
//
// Source: Python's pickletools.py; torch/serialization.py, torch/_utils.py.
#ifndef CX_IO_PICKLE_H
#define CX_IO_PICKLE_H

#include "base/arena.h"
#include "base/text.h"
#include "calx/io.h"

// ---- reading ----------------------------------------------------------------

typedef enum cx_io_call {  // what a name of Python's means here
  CX_IO_REBUILD_2,         // torch._utils._rebuild_tensor_v2
  CX_IO_REBUILD_3,
  CX_IO_REBUILD_DEVICE,  // torch_xla's
  CX_IO_PARAMETER,
  CX_IO_FROM_TYPE,    // a tensor with attributes, such as torch.nn.Buffer
  CX_IO_TENSOR_TYPE,  // such a tensor's class
  CX_IO_STORAGE,      // a typed storage, or an untyped one
  CX_IO_DTYPE,
  CX_IO_DICT,       // dict's subclasses, such as OrderedDict
  CX_IO_NAMESPACE,  // an object whose attributes are a dict's items
  CX_IO_SIZE,
  CX_IO_SET,
  CX_IO_ENCODE,        // _codecs.encode: bytes, in protocol 2
  CX_IO_PATH,          // pathlib's: a text
  CX_IO_NUMPY_DTYPE,   // numpy.dtype
  CX_IO_NUMPY_SCALAR,  // numpy's function that makes one: a number
  CX_IO_UNKNOWN
} cx_io_call;

typedef enum cx_io_node_kind {
  CX_IO_NODE_VALUE,    // as `type` says
  CX_IO_NODE_CALL,     // a name
  CX_IO_NODE_STORAGE,  // a tensor's memory
  CX_IO_NODE_TENSOR,
  CX_IO_NODE_FOREIGN  // what is not read: an unknown name's object
} cx_io_node_kind;

typedef struct cx_io_node cx_io_node;

typedef struct cx_io_strided cx_io_strided;
struct cx_io_strided {
  const cx_io_node *storage;
  int64_t offset;  // of the first element, in elements
  uint32_t rank;
  int64_t dims[CALX_MAX_RANK], strides[CALX_MAX_RANK];
  calx_tensor *made;  // owned, once a value was made of it
  cx_io_strided *next_made;
};

struct cx_io_node {
  cx_io_node_kind what;
  calx_kind type;    // of a value
  calx_dtype dtype;  // of a storage, a tensor, a name; DEFAULT: untyped
  cx_io_call call;   // of a name, and of the dict that a class made
  bool seen;         // by cx_io_each_tensor()
  union {
    int64_t integer;  // and bool
    double real;
    struct {
      const char *data;  // in the pickle or the arena; not terminated
      size_t size;
    } text;
    struct {
      cx_io_node **items;  // of a dict: key, value, key, value
      size_t count, capacity;
    } list;
    struct {
      const cx_io_node *key;  // a text
      int64_t elements;       // of an untyped storage: bytes
    } storage;
    struct {
      const char *text;  // "module.name", in the arena; terminated
      size_t at;         // of the instruction that it comes from
    } name;  // of a name, of what is foreign; there a number has type INT
    cx_io_strided *tensor;
  } as;
};

typedef struct cx_io_unpickling {
  const char *name;  // of the file, for messages
  const uint8_t *data;
  size_t size, at;
  size_t op;        // where the running instruction begins
  cx_arena *arena;  // of the nodes
  cx_io_node **stack;
  size_t depth, capacity;
  size_t *marks;  // indices into the stack
  size_t n_marks, marks_capacity;
  cx_io_node **memo;
  size_t n_memo, memo_capacity;
} cx_io_unpickling;

// Reads the pickle's value as nodes of the arena, which point into the data. A
// node may occur several times, also inside itself.
calx_status *cx_io_unpickle(const char *name, const void *data, size_t size,
                            cx_arena *arena,
                            cx_io_node **out_root) CALX_MUST_USE;

// Calls `see` once for each tensor of the value. Containers nested more than 64
// deep are not entered, as values are never deeper.
void cx_io_each_tensor(cx_io_node *root,
                       void (*see)(void *user, const cx_io_node *tensor),
                       void *user);

// "'x.pt': data.pkl byte 17: …".
calx_status *cx_io_unpickle_bad(const cx_io_unpickling *u, calx_code code,
                                const char *format, ...)
    CALX_PRINTF(3, 4) CALX_MUST_USE;
// NULL: no memory.
cx_io_node *cx_io_node_new(const cx_io_unpickling *u, calx_kind type);
// Puts an item into a list, tuple, set, or half of one into a dict. False: no
// memory.
bool cx_io_node_add(const cx_io_unpickling *u, cx_io_node *list,
                    cx_io_node *item);
// A node for what is not read.
cx_io_node *cx_io_node_foreign(const cx_io_unpickling *u, calx_kind type,
                               const char *text, size_t at);
bool cx_io_node_is_foreign(const cx_io_node *node);  // or an unknown name
// The node of a Python name.
calx_status *cx_io_unpickle_name(cx_io_unpickling *u, const char *module,
                                 size_t module_size, const char *name,
                                 size_t name_size,
                                 cx_io_node **out) CALX_MUST_USE;
// What calling a name with a tuple gives.
calx_status *cx_io_unpickle_call(cx_io_unpickling *u, const cx_io_node *callee,
                                 const cx_io_node *args,
                                 cx_io_node **out) CALX_MUST_USE;
// What a foreign node or name makes.
calx_status *cx_io_unpickle_foreign(cx_io_unpickling *u, const cx_io_node *of,
                                    cx_io_node **out) CALX_MUST_USE;
// An object of the class with these arguments, before it gets its state.
calx_status *cx_io_unpickle_new(cx_io_unpickling *u, const cx_io_node *class,
                                const cx_io_node *args,
                                cx_io_node **out) CALX_MUST_USE;
// Gives the object its state.
calx_status *cx_io_unpickle_state(cx_io_unpickling *u, cx_io_node *object,
                                  const cx_io_node *state) CALX_MUST_USE;
// A path of its parts, a tuple of texts; a number of numpy's of its dtype and
// bytes. *out is foreign where the arguments are others.
calx_status *cx_io_unpickle_path(cx_io_unpickling *u, const cx_io_node *callee,
                                 const cx_io_node *args,
                                 cx_io_node **out) CALX_MUST_USE;
calx_status *cx_io_unpickle_dtype(cx_io_unpickling *u, const cx_io_node *callee,
                                  const cx_io_node *args,
                                  cx_io_node **out) CALX_MUST_USE;
calx_status *cx_io_unpickle_number(cx_io_unpickling *u,
                                   const cx_io_node *callee,
                                   const cx_io_node *args,
                                   cx_io_node **out) CALX_MUST_USE;
// The storage that a persistent id names.
calx_status *cx_io_unpickle_storage(cx_io_unpickling *u, const cx_io_node *id,
                                    cx_io_node **out) CALX_MUST_USE;

// ---- writing ----------------------------------------------------------------

typedef struct cx_io_pickling {
  cx_text out;
  calx_value *seen;       // indices of tensors by their address
  calx_tensor **tensors;  // borrowed; tensor i is in the storage "i"
  size_t n, capacity;
  int memo[32];  // numbers of names that were written; 0: not yet
  int n_memo;
} cx_io_pickling;

// Protocol 2, as torch.save writes it. On failure too cx_io_pickled() frees.
calx_status *cx_io_pickle(const calx_value *value,
                          cx_io_pickling *out) CALX_MUST_USE;
void cx_io_pickled(cx_io_pickling *p);

#endif
