// graph/differ: compares the outline of a compiled graph with a new order, node
// by node in post-order, and words the first difference.
#include "graph/differ.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "graph/key.h"

typedef struct line {
  const cx_op *op;
  calx_site site;
  uint32_t n_in, n_slots;
  const uint32_t *refs;    // n_in, as in the key
  const cx_shape *shapes;  // n_in
  const void *attrs;
} line;

struct cx_outline {
  cx_arena arena;
  cx_key key;
  line *lines;
  size_t n_lines, n_params, n_roots;
  const uint32_t *aliases;
};

static uint32_t ref_of(const cx_order *o, const cx_input *in)
{
  if (in->node->out[0].buffer == NULL) return in->node->index << 3 | in->out;
  for (size_t i = in->node->index; i < o->n_params; i++) {
    if (o->params[i].node == in->node && o->params[i].out == in->out) {
      return CX_KEY_PARAM | (uint32_t)i;
    }
  }
  return CX_KEY_PARAM;
}

static bool fill_line(cx_outline *outline, const cx_order *o, size_t at)
{
  const cx_node *node = o->nodes[at];
  uint32_t *refs = CX_ARENA_ARRAY(&outline->arena, uint32_t, node->n_in + 1);
  cx_shape *shapes = CX_ARENA_ARRAY(&outline->arena, cx_shape, node->n_in + 1);
  char *attrs =
      cx_arena_strndup(&outline->arena, node->attrs, node->op->attr_size);
  if (refs == NULL || shapes == NULL || attrs == NULL) return false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    refs[i] = ref_of(o, &node->in[i]);
    shapes[i] = *cx_in(node, i);
  }
  outline->lines[at] = (line){ .op = node->op,
                               .site = node->site,
                               .n_in = node->n_in,
                               .n_slots = node->n_slots,
                               .refs = refs,
                               .shapes = shapes,
                               .attrs = attrs };
  return true;
}

static bool fill(cx_outline *outline, const cx_order *o)
{
  uint32_t *words = CX_ARENA_ARRAY(&outline->arena, uint32_t, o->key.count + 1);
  uint32_t *aliases =
      CX_ARENA_ARRAY(&outline->arena, uint32_t, o->n_params + 1);
  outline->lines = CX_ARENA_ARRAY(&outline->arena, line, o->n_nodes + 1);
  if (words == NULL || aliases == NULL || outline->lines == NULL) return false;
  memcpy(words, o->key.words, o->key.count * sizeof *words);
  for (size_t i = 0; i < o->n_params; i++) aliases[i] = o->aliases[i];
  outline->key = (cx_key){ .words = words, .count = o->key.count };
  outline->aliases = aliases;
  outline->n_lines = o->n_nodes;
  outline->n_params = o->n_params;
  outline->n_roots = o->n_roots;
  for (size_t i = 0; i < o->n_nodes; i++) {
    if (!fill_line(outline, o, i)) return false;
  }
  return true;
}

cx_outline *cx_outline_new(const cx_order *order)
{
  cx_outline *outline = cx_calloc(1, sizeof *outline);
  if (outline == NULL) return NULL;
  if (!fill(outline, order)) {
    cx_outline_free(outline);
    return NULL;
  }
  return outline;
}

void cx_outline_free(cx_outline *outline)
{
  if (outline == NULL) return;
  cx_arena_free(&outline->arena);
  cx_free(outline);
}

const cx_key *cx_outline_key(const cx_outline *outline)
{
  return &outline->key;
}

// Whether node `at` of the order does what line `at` did, operands included.
static bool same_line(const line *l, const cx_order *o, const cx_node *node)
{
  if (l->op != node->op || l->n_in != node->n_in ||
      l->n_slots != node->n_slots ||
      memcmp(l->attrs, node->attrs, node->op->attr_size) != 0) {
    return false;
  }
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (l->refs[i] != ref_of(o, &node->in[i]) ||
        !cx_shape_equal(&l->shapes[i], cx_in(node, i))) {
      return false;
    }
  }
  return true;
}

size_t cx_outline_common(const cx_outline *known, const cx_order *order)
{
  size_t n = known->n_lines < order->n_nodes ? known->n_lines : order->n_nodes;
  size_t i = 0;
  while (i < n && same_line(&known->lines[i], order, order->nodes[i])) i++;
  return i;
}

size_t cx_outline_excess(const cx_outline *known, const cx_order *order)
{
  size_t a = known->n_lines, b = order->n_nodes;
  return a > b ? a - b : b - a;
}

static void say_site(cx_text *out, const char *name, const calx_site *site)
{
  cx_text_append(out, name);
  if (site->file != NULL) {
    cx_text_format(out, " at %s:%d", site->file, site->line);
  }
}

static void say_attrs(cx_text *out, const cx_op *op, const void *attrs)
{
  if (op->describe != NULL)
    op->describe(attrs, out);
  else
    cx_text_append(out, "other attributes");
}

static void say_line(const line *l, const cx_order *o, const cx_node *node,
                     cx_text *out)
{
  say_site(out, node->op->name, &node->site);
  if (l->op != node->op) {
    cx_text_append(out, " stands where was ");
    say_site(out, l->op->name, &l->site);
    return;
  }
  for (uint32_t i = 0; i < node->n_in && i < l->n_in; i++) {
    if (cx_shape_equal(&l->shapes[i], cx_in(node, i))) continue;
    cx_text_format(out, ": operand %u was ", i);
    cx_shape_print(out, &l->shapes[i]);
    cx_text_append(out, ", is ");
    cx_shape_print(out, cx_in(node, i));
    return;
  }
  if (memcmp(l->attrs, node->attrs, node->op->attr_size) != 0) {
    cx_text_append(out, ": was ");
    say_attrs(out, l->op, l->attrs);
    cx_text_append(out, ", is ");
    say_attrs(out, node->op, node->attrs);
    return;
  }
  for (uint32_t i = 0; i < node->n_in && i < l->n_in; i++) {
    if (l->refs[i] == ref_of(o, &node->in[i])) continue;
    bool was = (l->refs[i] & CX_KEY_PARAM) != 0;
    bool is = (ref_of(o, &node->in[i]) & CX_KEY_PARAM) != 0;
    static const char *const kind[] = { "a result of this graph",
                                        "a tensor from before" };
    cx_text_format(out, ": operand %u was %s, is %s", i, kind[was],
                   was == is ? "another one" : kind[is]);
    return;
  }
  cx_text_format(out, ": had %u operands, has %u", l->n_in, node->n_in);
}

void cx_outline_differ(const cx_outline *known, const cx_order *order,
                       cx_text *out)
{
  size_t i = cx_outline_common(known, order);
  if (i < known->n_lines && i < order->n_nodes) {
    say_line(&known->lines[i], order, order->nodes[i], out);
  } else if (i < order->n_nodes) {
    say_site(out, order->nodes[i]->op->name, &order->nodes[i]->site);
    cx_text_append(out, " is new");
  } else if (i < known->n_lines) {
    say_site(out, known->lines[i].op->name, &known->lines[i].site);
    cx_text_append(out, " is missing");
  } else if (known->n_roots != order->n_roots) {
    cx_text_format(out, "%zu tensors were kept, now %zu", known->n_roots,
                   order->n_roots);
  } else if (known->n_params == order->n_params &&
             memcmp(known->aliases, order->aliases,
                    order->n_params * sizeof *order->aliases) != 0) {
    cx_text_append(out, "other tensors can be updated in place");
  } else {
    cx_text_append(out, "other tensors are kept");
  }
}
