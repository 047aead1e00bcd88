// io/unpickle: the machine that a pickle is a program for.
//
// It has a stack of nodes, marks in it, and a memo. Every instruction that
// torch.save emits is here; none of them does more than build a node. Memory is
// bounded by the arena's limit, which the caller sets from the file's size; the
// memo's numbers must come in order, as Python writes them.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/pickle.h"
#include "io/value.h"

static calx_status *damaged(const cx_io_unpickling *u, const char *what)
{
  return cx_io_unpickle_bad(u, CALX_DATA_LOSS, "%s", what);
}

// ---- bytes ------------------------------------------------------------------

static calx_status *take(cx_io_unpickling *u, uint64_t n, const uint8_t **out)
{
  if (n > u->size - u->at) {
    return damaged(u, "the pickle ends inside an instruction");
  }
  *out = u->data + u->at;
  u->at += (size_t)n;
  return NULL;
}

// A little-endian number of up to 8 bytes.
static calx_status *take_number(cx_io_unpickling *u, int bytes, uint64_t *out)
{
  const uint8_t *p = NULL;
  CALX_TRY(take(u, (uint64_t)bytes, &p));
  *out = 0;
  for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | p[i];
  return NULL;
}

static calx_status *take_line(cx_io_unpickling *u, const char **out,
                              size_t *out_size)
{
  const uint8_t *p = u->data + u->at;
  const uint8_t *end = memchr(p, '\n', u->size - u->at);
  if (end == NULL) return damaged(u, "the pickle ends inside a name");
  *out = (const char *)p;
  *out_size = (size_t)(end - p);
  u->at += *out_size + 1;
  return NULL;
}

// ---- the stack --------------------------------------------------------------

static calx_status *push(cx_io_unpickling *u, cx_io_node *node)
{
  if (node == NULL ||
      !cx_grow(&u->stack, &u->capacity, u->depth + 1, sizeof *u->stack)) {
    return cx_out_of_memory();
  }
  u->stack[u->depth++] = node;
  return NULL;
}

// Pops a node that lies above the last mark.
static calx_status *pop(cx_io_unpickling *u, cx_io_node **out)
{
  size_t floor = u->n_marks > 0 ? u->marks[u->n_marks - 1] : 0;
  if (u->depth <= floor) return damaged(u, "the stack is empty");
  *out = u->stack[--u->depth];
  return NULL;
}

static calx_status *pop_mark(cx_io_unpickling *u, size_t *out_index)
{
  if (u->n_marks == 0) return damaged(u, "there is no mark");
  *out_index = u->marks[--u->n_marks];
  return NULL;
}

static calx_status *push_mark(cx_io_unpickling *u)
{
  if (!cx_grow(&u->marks, &u->marks_capacity, u->n_marks + 1,
               sizeof *u->marks)) {
    return cx_out_of_memory();
  }
  u->marks[u->n_marks++] = u->depth;
  return NULL;
}

static calx_status *top(const cx_io_unpickling *u, cx_io_node **out)
{
  size_t floor = u->n_marks > 0 ? u->marks[u->n_marks - 1] : 0;
  if (u->depth <= floor) return damaged(u, "the stack is empty");
  *out = u->stack[u->depth - 1];
  return NULL;
}

// ---- scalars ----------------------------------------------------------------

static calx_status *push_int(cx_io_unpickling *u, calx_kind type, int64_t value)
{
  cx_io_node *node = cx_io_node_new(u, type);
  if (node != NULL) node->as.integer = value;
  return push(u, node);
}

static calx_status *read_int(cx_io_unpickling *u, int bytes, bool is_signed)
{
  uint64_t n = 0;
  CALX_TRY(take_number(u, bytes, &n));
  int64_t value = is_signed ? (int32_t)(uint32_t)n : (int64_t)n;
  return push_int(u, CALX_KIND_INT, value);
}

// LONG1, LONG4: two's complement of any length.
static calx_status *read_long(cx_io_unpickling *u, int length_bytes)
{
  uint64_t length = 0, n = 0;
  const uint8_t *p = NULL;
  CALX_TRY(take_number(u, length_bytes, &length));
  CALX_TRY(take(u, length, &p));
  if (length > 8) {
    char text[64];
    snprintf(text, sizeof text, "an integer of %" PRIu64 " bytes", length);
    return push(u, cx_io_node_foreign(u, CALX_KIND_INT, text, u->op));
  }
  for (size_t i = (size_t)length; i > 0; i--) n = n << 8 | p[i - 1];
  if (length > 0 && length < 8 && (p[length - 1] & 0x80) != 0) {
    n |= UINT64_MAX << (8 * length);
  }
  return push_int(u, CALX_KIND_INT, (int64_t)n);
}

// BINFLOAT: big-endian.
static calx_status *read_float(cx_io_unpickling *u)
{
  const uint8_t *p = NULL;
  CALX_TRY(take(u, 8, &p));
  uint64_t bits = 0;
  for (int i = 0; i < 8; i++) bits = bits << 8 | p[i];
  cx_io_node *node = cx_io_node_new(u, CALX_KIND_FLOAT);
  if (node != NULL) memcpy(&node->as.real, &bits, sizeof bits);
  return push(u, node);
}

static calx_status *read_text(cx_io_unpickling *u, calx_kind type,
                              int length_bytes)
{
  uint64_t length = 0;
  const uint8_t *p = NULL;
  CALX_TRY(take_number(u, length_bytes, &length));
  CALX_TRY(take(u, length, &p));
  cx_io_node *node = cx_io_node_new(u, type);
  if (node != NULL) {
    node->as.text.data = (const char *)p;
    node->as.text.size = (size_t)length;
  }
  return push(u, node);
}

// ---- containers -------------------------------------------------------------

// Items from index `from` of the stack go into the container.
static calx_status *add_items(cx_io_unpickling *u, cx_io_node *container,
                              size_t from)
{
  for (size_t i = from; i < u->depth; i++) {
    if (!cx_io_node_add(u, container, u->stack[i])) return cx_out_of_memory();
  }
  u->depth = from;
  return NULL;
}

// LIST, TUPLE, DICT, FROZENSET: a container of all nodes above the mark.
static calx_status *make_marked(cx_io_unpickling *u, calx_kind type)
{
  size_t from = 0;
  CALX_TRY(pop_mark(u, &from));
  if (type == CALX_KIND_DICT && (u->depth - from) % 2 != 0) {
    return damaged(u, "a dict with half an item");
  }
  cx_io_node *node = cx_io_node_new(u, type);
  if (node == NULL) return cx_out_of_memory();
  CALX_TRY(add_items(u, node, from));
  return push(u, node);
}

// TUPLE1, TUPLE2, TUPLE3.
static calx_status *make_tuple(cx_io_unpickling *u, size_t n)
{
  size_t floor = u->n_marks > 0 ? u->marks[u->n_marks - 1] : 0;
  if (u->depth - floor < n) return damaged(u, "the stack is empty");
  cx_io_node *node = cx_io_node_new(u, CALX_KIND_TUPLE);
  if (node == NULL) return cx_out_of_memory();
  CALX_TRY(add_items(u, node, u->depth - n));
  return push(u, node);
}

// APPEND(S), SETITEM(S), ADDITEMS: puts the nodes above `from` into the
// container below them.
static calx_status *extend(cx_io_unpickling *u, calx_kind type, size_t from)
{
  size_t floor = u->n_marks > 0 ? u->marks[u->n_marks - 1] : 0;
  if (from <= floor) return damaged(u, "the stack is empty");
  cx_io_node *container = u->stack[from - 1];
  if (cx_io_node_is_foreign(container)) {
    u->depth = from;
    return NULL;
  }
  if (container->what != CX_IO_NODE_VALUE || container->type != type) {
    return cx_io_unpickle_bad(u, CALX_DATA_LOSS,
                              "items for a %s are put into something else",
                              calx_kind_name(type));
  }
  if (type == CALX_KIND_DICT && (u->depth - from) % 2 != 0) {
    return damaged(u, "a dict with half an item");
  }
  return add_items(u, container, from);
}

static calx_status *extend_marked(cx_io_unpickling *u, calx_kind type)
{
  size_t from = 0;
  CALX_TRY(pop_mark(u, &from));
  return extend(u, type, from);
}

static calx_status *extend_by(cx_io_unpickling *u, calx_kind type, size_t n)
{
  if (u->depth < n) return damaged(u, "the stack is empty");
  return extend(u, type, u->depth - n);
}

// ---- the memo ---------------------------------------------------------------

static calx_status *memo_put(cx_io_unpickling *u, uint64_t index)
{
  cx_io_node *node = NULL;
  CALX_TRY(top(u, &node));
  if (index > u->n_memo) return damaged(u, "a memo's number is out of order");
  if (index == u->n_memo) {
    if (!cx_grow(&u->memo, &u->memo_capacity, u->n_memo + 1, sizeof *u->memo)) {
      return cx_out_of_memory();
    }
    u->n_memo++;
  }
  u->memo[index] = node;
  return NULL;
}

static calx_status *memo_get(cx_io_unpickling *u, int bytes)
{
  uint64_t index = 0;
  CALX_TRY(take_number(u, bytes, &index));
  if (index >= u->n_memo) return damaged(u, "the memo has no such number");
  return push(u, u->memo[index]);
}

static calx_status *memo_put_number(cx_io_unpickling *u, int bytes)
{
  uint64_t index = 0;
  CALX_TRY(take_number(u, bytes, &index));
  return memo_put(u, index);
}

// ---- names and calls --------------------------------------------------------

static calx_status *read_name(cx_io_unpickling *u)
{
  const char *module = NULL, *name = NULL;
  size_t module_size = 0, name_size = 0;
  cx_io_node *node = NULL;
  CALX_TRY(take_line(u, &module, &module_size));
  CALX_TRY(take_line(u, &name, &name_size));
  CALX_TRY(cx_io_unpickle_name(u, module, module_size, name, name_size, &node));
  return push(u, node);
}

static bool is_text(const cx_io_node *node)
{
  return node->what == CX_IO_NODE_VALUE && node->type == CALX_KIND_STRING;
}

static calx_status *stack_name(cx_io_unpickling *u)
{
  cx_io_node *module = NULL, *name = NULL, *node = NULL;
  CALX_TRY(pop(u, &name));
  CALX_TRY(pop(u, &module));
  if (!is_text(module) || !is_text(name)) {
    return damaged(u, "a name that is no text");
  }
  CALX_TRY(cx_io_unpickle_name(u, module->as.text.data, module->as.text.size,
                               name->as.text.data, name->as.text.size, &node));
  return push(u, node);
}

static calx_status *reduce(cx_io_unpickling *u)
{
  cx_io_node *args = NULL, *callee = NULL, *node = NULL;
  CALX_TRY(pop(u, &args));
  CALX_TRY(pop(u, &callee));
  CALX_TRY(cx_io_unpickle_call(u, callee, args, &node));
  return push(u, node);
}

// NEWOBJ, and NEWOBJ_EX, which has arguments by name too.
static calx_status *make_object(cx_io_unpickling *u, bool named)
{
  cx_io_node *args = NULL, *by_name = NULL, *class = NULL, *node = NULL;
  if (named) CALX_TRY(pop(u, &by_name));
  CALX_TRY(pop(u, &args));
  CALX_TRY(pop(u, &class));
  CALX_TRY(cx_io_unpickle_new(u, class, args, &node));
  return push(u, node);
}

static calx_status *build(cx_io_unpickling *u)
{
  cx_io_node *state = NULL, *object = NULL;
  CALX_TRY(pop(u, &state));
  CALX_TRY(top(u, &object));
  return cx_io_unpickle_state(u, object, state);
}

static calx_status *persistent(cx_io_unpickling *u)
{
  cx_io_node *id = NULL, *node = NULL;
  CALX_TRY(pop(u, &id));
  CALX_TRY(cx_io_unpickle_storage(u, id, &node));
  return push(u, node);
}

// ---- instructions -----------------------------------------------------------

static calx_status *begin(cx_io_unpickling *u)
{
  uint64_t protocol = 0;
  CALX_TRY(take_number(u, 1, &protocol));
  if (protocol >= 2 && protocol <= 5) return NULL;
  return cx_io_unpickle_bad(u, CALX_UNIMPLEMENTED,
                            "protocol %" PRIu64 ", 2 to 5 are read", protocol);
}

static calx_status *drop(cx_io_unpickling *u)
{
  cx_io_node *node = NULL;
  return pop(u, &node);
}

static calx_status *drop_marked(cx_io_unpickling *u)
{
  return pop_mark(u, &u->depth);
}

static calx_status *skip(cx_io_unpickling *u, int bytes)
{
  uint64_t n = 0;
  return take_number(u, bytes, &n);
}

static calx_status *refuse(cx_io_unpickling *u, uint8_t op)
{
  return cx_io_unpickle_bad(u, CALX_UNIMPLEMENTED,
                            "the instruction 0x%02x, which torch.save does not "
                            "write",
                            (unsigned)op);
}

static calx_status *step(cx_io_unpickling *u, uint8_t op)
{
  switch (op) {
    case 0x80: return begin(u);
    case 0x95: return skip(u, 8);  // FRAME
    case '(': return push_mark(u);
    case '0': return drop(u);
    case '1': return drop_marked(u);
    case 'N': return push(u, cx_io_node_new(u, CALX_KIND_NONE));
    case 0x88: return push_int(u, CALX_KIND_BOOL, 1);
    case 0x89: return push_int(u, CALX_KIND_BOOL, 0);
    case 'J': return read_int(u, 4, true);
    case 'K': return read_int(u, 1, false);
    case 'M': return read_int(u, 2, false);
    case 0x8a: return read_long(u, 1);
    case 0x8b: return read_long(u, 4);
    case 'G': return read_float(u);
    case 'X': return read_text(u, CALX_KIND_STRING, 4);
    case 0x8c: return read_text(u, CALX_KIND_STRING, 1);
    case 0x8d: return read_text(u, CALX_KIND_STRING, 8);
    case 'T': return read_text(u, CALX_KIND_STRING, 4);
    case 'U': return read_text(u, CALX_KIND_STRING, 1);
    case 'B': return read_text(u, CALX_KIND_BYTES, 4);
    case 'C': return read_text(u, CALX_KIND_BYTES, 1);
    case 0x8e: return read_text(u, CALX_KIND_BYTES, 8);
    case 0x96: return read_text(u, CALX_KIND_BYTES, 8);
    case ']': return push(u, cx_io_node_new(u, CALX_KIND_LIST));
    case 'a': return extend_by(u, CALX_KIND_LIST, 1);
    case 'e': return extend_marked(u, CALX_KIND_LIST);
    case 'l': return make_marked(u, CALX_KIND_LIST);
    case ')': return push(u, cx_io_node_new(u, CALX_KIND_TUPLE));
    case 't': return make_marked(u, CALX_KIND_TUPLE);
    case 0x85: return make_tuple(u, 1);
    case 0x86: return make_tuple(u, 2);
    case 0x87: return make_tuple(u, 3);
    case '}': return push(u, cx_io_node_new(u, CALX_KIND_DICT));
    case 'd': return make_marked(u, CALX_KIND_DICT);
    case 's': return extend_by(u, CALX_KIND_DICT, 2);
    case 'u': return extend_marked(u, CALX_KIND_DICT);
    case 0x8f: return push(u, cx_io_node_new(u, CALX_KIND_SET));
    case 0x90: return extend_marked(u, CALX_KIND_SET);
    case 0x91: return make_marked(u, CALX_KIND_SET);
    case 'h': return memo_get(u, 1);
    case 'j': return memo_get(u, 4);
    case 'q': return memo_put_number(u, 1);
    case 'r': return memo_put_number(u, 4);
    case 0x94: return memo_put(u, u->n_memo);
    case 'c': return read_name(u);
    case 0x93: return stack_name(u);
    case 'R': return reduce(u);
    case 0x81: return make_object(u, false);
    case 0x92: return make_object(u, true);
    case 'b': return build(u);
    case 'Q': return persistent(u);
    default: return refuse(u, op);
  }
}

static calx_status *run(cx_io_unpickling *u, cx_io_node **out_root)
{
  for (;;) {
    u->op = u->at;
    const uint8_t *op = NULL;
    CALX_TRY(take(u, 1, &op));
    if (*op == '.') break;
    CALX_TRY(step(u, *op));
  }
  if (u->n_marks != 0 || u->depth != 1) {
    return damaged(u, "it ends with other than one value");
  }
  *out_root = u->stack[0];
  return NULL;
}

calx_status *cx_io_unpickle(const char *name, const void *data, size_t size,
                            cx_arena *arena, cx_io_node **out_root)
{
  *out_root = NULL;
  cx_io_unpickling u = {
    .name = name, .data = data, .size = size, .arena = arena
  };
  calx_status *status = run(&u, out_root);
  cx_free(u.stack);
  cx_free(u.marks);
  cx_free(u.memo);
  return status;
}
