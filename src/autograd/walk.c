// autograd/walk: an iterative depth-first walk, since chains are millions long.
#include "autograd/walk.h"

#include "base/alloc.h"

typedef struct cx_autograd_frame {
  cx_graph_node *node;
  uint32_t next;  // input to look at next
} cx_autograd_frame;

// A node on the stack has no cells yet.
#define ON_STACK SIZE_MAX

calx_tensor *cx_autograd_leaf_tensor(const cx_graph_input *in)
{
  return atomic_load(&in->leaf->tensor);
}

bool cx_autograd_cell(const cx_autograd_walk *walk, const cx_graph_input *in,
                      size_t *out_cell)
{
  *out_cell = 0;
  if (!in->differentiable) return false;
  const void *key =
      in->leaf != NULL ? (void *)cx_autograd_leaf_tensor(in) : in->node;
  const size_t *first =
      key != NULL ? cx_autograd_map_find(&walk->cells, key) : NULL;
  if (first == NULL) return false;
  *out_cell = in->leaf != NULL ? *first : *first + in->out;
  return true;
}

bool cx_autograd_walk_leaf(cx_autograd_walk *w, calx_tensor *leaf)
{
  if (leaf == NULL) return true;
  bool is_new;
  if (cx_autograd_map_add(&w->cells, leaf, w->n_cells, &is_new) == NULL) {
    return false;
  }
  if (!is_new) return true;
  if (!cx_grow(&w->leaves, &w->leaves_capacity, w->n_leaves + 1,
               sizeof *w->leaves)) {
    return false;
  }
  w->leaves[w->n_leaves++] = (cx_autograd_leaf){ leaf, w->n_cells++ };
  return true;
}

// Pushes a node that was not visited before.
static bool enter(cx_autograd_walk *w, size_t *depth, cx_graph_node *node)
{
  bool is_new;
  if (cx_autograd_map_add(&w->cells, node, ON_STACK, &is_new) == NULL) {
    return false;
  }
  if (!is_new) return true;
  if (!cx_grow(&w->stack, &w->stack_capacity, *depth + 1, sizeof *w->stack)) {
    return false;
  }
  w->stack[(*depth)++] = (cx_autograd_frame){ node, 0 };
  return true;
}

static bool leave(cx_autograd_walk *w, cx_graph_node *node)
{
  bool is_new;
  size_t *cell = cx_autograd_map_add(&w->cells, node, ON_STACK, &is_new);
  if (cell == NULL || !cx_grow(&w->entries, &w->entries_capacity,
                               w->n_entries + 1, sizeof *w->entries)) {
    return false;
  }
  *cell = w->n_cells;
  w->entries[w->n_entries++] = (cx_autograd_entry){ node, w->n_cells };
  w->n_cells += node->n_out;
  return true;
}

bool cx_autograd_walk_from(cx_autograd_walk *w, cx_graph_node *root)
{
  size_t depth = 0;
  if (!cx_grow(&w->roots, &w->roots_capacity, w->n_roots + 1,
               sizeof(cx_graph_node *))) {
    return false;
  }
  cx_graph_node_retain(root);
  w->roots[w->n_roots++] = root;
  if (!enter(w, &depth, root)) return false;
  while (depth > 0) {
    cx_autograd_frame *top = &w->stack[depth - 1];
    cx_graph_node *node = top->node;
    if (top->next == node->n_in) {
      depth--;
      if (!leave(w, node)) return false;
      continue;
    }
    const cx_graph_input *in = &node->in[top->next++];
    if (!in->differentiable) continue;
    bool ok = in->leaf != NULL
                  ? cx_autograd_walk_leaf(w, cx_autograd_leaf_tensor(in))
                  : enter(w, &depth, in->node);
    if (!ok) return false;
  }
  return true;
}

void cx_autograd_walk_free(cx_autograd_walk *w)
{
  for (size_t i = 0; i < w->n_roots; i++) cx_graph_node_release(w->roots[i]);
  cx_free(w->roots);
  cx_free(w->entries);
  cx_free(w->leaves);
  cx_free(w->stack);
  cx_autograd_map_free(&w->cells);
}
