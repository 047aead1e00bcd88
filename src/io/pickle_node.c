// io/pickle_node: the nodes that a pickle is read into: made, filled, visited.
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/pickle.h"
#include "io/value.h"

calx_status *cx_io_unpickle_bad(const cx_io_unpickling *u, calx_code code,
                                const char *format, ...)
{
  cx_text text = { 0 };
  va_list args;
  va_start(args, format);
  cx_text_format_v(&text, format, args);
  va_end(args);
  calx_status *status = cx_error(code, "'%s': data.pkl byte %zu: %s", u->name,
                                 u->op, cx_text_str(&text));
  cx_text_free(&text);
  return status;
}

cx_io_node *cx_io_node_new(const cx_io_unpickling *u, calx_kind type)
{
  cx_io_node *node = CX_ARENA_NEW(u->arena, cx_io_node);
  if (node != NULL) node->type = type;
  return node;
}

bool cx_io_node_add(const cx_io_unpickling *u, cx_io_node *list,
                    cx_io_node *item)
{
  if (list->as.list.count == list->as.list.capacity) {
    size_t more = list->as.list.capacity < 4 ? 4 : list->as.list.capacity * 2;
    cx_io_node **items = CX_ARENA_ARRAY(u->arena, cx_io_node *, more);
    if (items == NULL) return false;
    for (size_t i = 0; i < list->as.list.count; i++) {
      items[i] = list->as.list.items[i];
    }
    list->as.list.items = items;
    list->as.list.capacity = more;
  }
  list->as.list.items[list->as.list.count++] = item;
  return true;
}

cx_io_node *cx_io_node_foreign(const cx_io_unpickling *u, calx_kind type,
                               const char *text, size_t at)
{
  cx_io_node *node = cx_io_node_new(u, type);
  if (node == NULL) return NULL;
  node->what = CX_IO_NODE_FOREIGN;
  node->as.name.text = cx_arena_strndup(u->arena, text, strlen(text));
  node->as.name.at = at;
  return node->as.name.text != NULL ? node : NULL;
}

bool cx_io_node_is_foreign(const cx_io_node *node)
{
  return node->what == CX_IO_NODE_FOREIGN ||
         (node->what == CX_IO_NODE_CALL && node->call == CX_IO_UNKNOWN);
}

typedef struct tensor_walk {
  void (*see)(void *user, const cx_io_node *tensor);
  void *user;
} tensor_walk;

static void walk_node(const tensor_walk *w, cx_io_node *node, int depth)
{
  if (depth > CX_IO_DEPTH || node->seen) return;
  node->seen = true;
  if (node->what == CX_IO_NODE_TENSOR) w->see(w->user, node);
  if (node->what != CX_IO_NODE_VALUE || !cx_io_is_container(node->type)) return;
  for (size_t i = 0; i < node->as.list.count; i++) {
    walk_node(w, node->as.list.items[i], depth + 1);
  }
}

void cx_io_each_tensor(cx_io_node *root,
                       void (*see)(void *user, const cx_io_node *tensor),
                       void *user)
{
  const tensor_walk w = { see, user };
  walk_node(&w, root, 0);
}
