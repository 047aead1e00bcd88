// graph/differ: compares the outline of a compiled graph with a new order, node
// by node in post-order, and words the first difference.
#include "graph/differ.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"

// A tensor that the graph begins with.
typedef struct leaf {
  cx_graph_shape shape;
  calx_site site;
  const char *part;  // of a batch; NULL: it is of none
} leaf;

typedef struct outline_line {
  const cx_graph_op *op;
  calx_site site;
  uint32_t n_in, n_slots;
  const uint32_t *refs;          // n_in, as in the key
  const cx_graph_shape *shapes;  // n_in
  const void *attrs;
  uint32_t attr_bytes;
} outline_line;

struct cx_graph_outline {
  cx_arena arena;
  cx_graph_key key;
  outline_line *lines;
  leaf *leaves;  // n_params
  size_t n_lines, n_params, n_roots;
  const uint32_t *aliases;
};

static uint32_t ref_of(const cx_graph_order *o, const cx_graph_input *in)
{
  return cx_graph_order_ref(o, in->node, in->out);
}

static leaf leaf_of(const cx_graph_value *p)
{
  bool data = (cx_graph_node_flags(p->node) & CX_GRAPH_NODE_DATA) != 0;
  return (leaf){ .shape = p->node->out[p->out].shape,
                 .site = p->node->site,
                 .part = data ? p->node->module : NULL };
}

static void *copy(cx_graph_outline *outline, const void *data, size_t bytes)
{
  return cx_arena_strndup(&outline->arena, data, bytes);
}

static bool fill_line(cx_graph_outline *outline, const cx_graph_order *o,
                      size_t at)
{
  const cx_graph_node *node = o->nodes[at];
  uint32_t *refs = CX_ARENA_ARRAY(&outline->arena, uint32_t, node->n_in + 1);
  cx_graph_shape *shapes =
      CX_ARENA_ARRAY(&outline->arena, cx_graph_shape, node->n_in + 1);
  void *attrs = copy(outline, node->attrs, node->attr_bytes);
  if (refs == NULL || shapes == NULL || attrs == NULL) return false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    refs[i] = ref_of(o, &node->in[i]);
    shapes[i] = *cx_in(node, i);
  }
  outline->lines[at] = (outline_line){ .op = node->op,
                                       .site = node->site,
                                       .n_in = node->n_in,
                                       .n_slots = node->n_slots,
                                       .refs = refs,
                                       .shapes = shapes,
                                       .attrs = attrs,
                                       .attr_bytes = node->attr_bytes };
  return true;
}

static bool fill(cx_graph_outline *outline, const cx_graph_order *o)
{
  uint32_t *words = copy(outline, o->key.words, o->key.count * sizeof *words);
  outline->aliases =
      copy(outline, o->aliases, o->n_params * sizeof *o->aliases);
  outline->lines =
      CX_ARENA_ARRAY(&outline->arena, outline_line, o->n_nodes + 1);
  outline->leaves = CX_ARENA_ARRAY(&outline->arena, leaf, o->n_params + 1);
  if (words == NULL || outline->aliases == NULL || outline->lines == NULL ||
      outline->leaves == NULL) {
    return false;
  }
  for (size_t i = 0; i < o->n_params; i++) {
    outline->leaves[i] = leaf_of(&o->params[i]);
  }
  outline->key = (cx_graph_key){ .words = words, .count = o->key.count };
  outline->n_lines = o->n_nodes;
  outline->n_params = o->n_params;
  outline->n_roots = o->n_roots;
  for (size_t i = 0; i < o->n_nodes; i++) {
    if (!fill_line(outline, o, i)) return false;
  }
  return true;
}

cx_graph_outline *cx_graph_outline_new(const cx_graph_order *order)
{
  cx_graph_outline *outline = cx_calloc(1, sizeof *outline);
  if (outline == NULL) return NULL;
  if (!fill(outline, order)) {
    cx_graph_outline_free(outline);
    return NULL;
  }
  return outline;
}

void cx_graph_outline_free(cx_graph_outline *outline)
{
  if (outline == NULL) return;
  cx_arena_free(&outline->arena);
  cx_free(outline);
}

const cx_graph_key *cx_graph_outline_key(const cx_graph_outline *outline)
{
  return &outline->key;
}

static bool same_attrs(const outline_line *l, const cx_graph_node *node)
{
  return l->attr_bytes == node->attr_bytes &&
         memcmp(l->attrs, node->attrs, l->attr_bytes) == 0;
}

// Whether node `at` of the order does what line `at` did, operands included.
static bool same_line(const outline_line *l, const cx_graph_order *o,
                      const cx_graph_node *node)
{
  if (l->op != node->op || l->n_in != node->n_in ||
      l->n_slots != node->n_slots || !same_attrs(l, node)) {
    return false;
  }
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (l->refs[i] != ref_of(o, &node->in[i]) ||
        !cx_graph_shape_equal(&l->shapes[i], cx_in(node, i))) {
      return false;
    }
  }
  return true;
}

size_t cx_graph_outline_common(const cx_graph_outline *known,
                               const cx_graph_order *order)
{
  size_t n = known->n_lines < order->n_nodes ? known->n_lines : order->n_nodes;
  size_t i = 0;
  while (i < n && same_line(&known->lines[i], order, order->nodes[i])) i++;
  return i;
}

size_t cx_graph_outline_excess(const cx_graph_outline *known,
                               const cx_graph_order *order)
{
  size_t a = known->n_lines, b = order->n_nodes;
  return a > b ? a - b : b - a;
}

// ---- in words ---------------------------------------------------------------

// Who is compared: a graph with the one before it, or two ranks' graphs.
typedef struct graph_names {
  const char *theirs, *ours;  // "rank 0", "rank 1"; NULL: before and now
} graph_names;

// "was A, is B", or "is A on rank 0, B on rank 1".
static void print_change(const graph_names *p, const char *a, const char *b,
                         cx_text *out)
{
  if (p->theirs == NULL)
    cx_text_format(out, "was %s, is %s", a, b);
  else
    cx_text_format(out, "is %s on %s, %s on %s", a, p->theirs, b, p->ours);
}

static void print_shapes(const graph_names *p, const cx_graph_shape *a,
                         const cx_graph_shape *b, cx_text *out)
{
  print_change(p, cx_graph_shape_str(a), cx_graph_shape_str(b), out);
}

static void print_site(cx_text *out, const char *name, const calx_site *site)
{
  cx_text_append(out, name);
  if (site->file != NULL) {
    cx_text_format(out, " at %s:%d", site->file, site->line);
  }
}

static void print_attrs(const graph_names *p, const outline_line *l,
                        const cx_graph_node *node, cx_text *out)
{
  cx_text a = { 0 }, b = { 0 };
  if (l->op->describe != NULL) {
    l->op->describe(l->attrs, &a);
    l->op->describe(node->attrs, &b);
  } else {
    cx_text_append(&a, "other attributes");
    cx_text_append(&b, "other attributes");
  }
  cx_text_append(out, ": ");
  print_change(p, cx_text_str(&a), cx_text_str(&b), out);
  out->failed |= a.failed || b.failed;
  cx_text_free(&a);
  cx_text_free(&b);
}

static void print_other_op(const graph_names *p, const outline_line *l,
                           cx_text *out)
{
  if (p->theirs == NULL)
    cx_text_append(out, " stands where was ");
  else
    cx_text_format(out, " on %s stands where %s has ", p->ours, p->theirs);
  print_site(out, l->op->name, &l->site);
}

// Operands of one shape come from elsewhere. False: they are all the same.
static bool print_origin(const graph_names *p, const outline_line *l,
                         const cx_graph_order *o, const cx_graph_node *node,
                         cx_text *out)
{
  static const char *const kind[] = { "a result of this graph",
                                      "a tensor from before" };
  for (uint32_t i = 0; i < node->n_in && i < l->n_in; i++) {
    uint32_t ref = ref_of(o, &node->in[i]);
    if (l->refs[i] == ref) continue;
    bool was = (l->refs[i] & CX_GRAPH_KEY_PARAM) != 0;
    bool is = (ref & CX_GRAPH_KEY_PARAM) != 0;
    cx_text_format(out, ": operand %u ", i);
    print_change(p, kind[was], was == is ? "another one" : kind[is], out);
    return true;
  }
  return false;
}

// ---- the tensors that the graphs begin with ---------------------------------

// Only where both graphs have the same ops do their leaves stand in one order.
static bool same_ops(const cx_graph_outline *known, const cx_graph_order *o)
{
  if (known->n_lines != o->n_nodes || known->n_params != o->n_params) {
    return false;
  }
  size_t i = 0;
  while (i < o->n_nodes && known->lines[i].op == o->nodes[i]->op) i++;
  return i == o->n_nodes;
}

// The leaf of another shape, those of a batch before others; n_params: none.
static size_t changed_leaf(const cx_graph_outline *known,
                           const cx_graph_order *o)
{
  size_t first = o->n_params;
  for (size_t i = 0; i < o->n_params; i++) {
    leaf now = leaf_of(&o->params[i]);
    if (cx_graph_shape_equal(&known->leaves[i].shape, &now.shape)) continue;
    if (now.part != NULL) return i;
    if (first == o->n_params) first = i;
  }
  return first;
}

// The first op that takes the leaf.
static const cx_graph_node *user_of(const cx_graph_order *o, size_t param)
{
  uint32_t ref = CX_GRAPH_KEY_PARAM | (uint32_t)param;
  for (size_t i = 0; i < o->n_nodes; i++) {
    const cx_graph_node *node = o->nodes[i];
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (ref_of(o, &node->in[k]) == ref) return node;
    }
  }
  return NULL;
}

static void print_leaf(const leaf *l, cx_text *out)
{
  cx_text_append(out, l->part != NULL ? l->part : "a tensor");
  if (l->site.file != NULL) {
    cx_text_format(out, " of %s:%d", l->site.file, l->site.line);
  }
}

// A change that began with what the user gave the program: that is told, and
// not the op inside of a model that met it first. False: it did not.
static bool print_input(const graph_names *p, const cx_graph_outline *known,
                        const cx_graph_order *o, cx_text *out)
{
  if (!same_ops(known, o)) return false;
  size_t i = changed_leaf(known, o);
  if (i == o->n_params) return false;
  leaf now = leaf_of(&o->params[i]);
  print_leaf(&now, out);
  cx_text_char(out, ' ');
  print_shapes(p, &known->leaves[i].shape, &now.shape, out);
  const cx_graph_node *user = user_of(o, i);
  if (user != NULL) {
    cx_text_append(out, ", first used by ");
    print_site(out, cx_graph_node_name(user), &user->site);
  }
  if ((cx_graph_node_flags(o->params[i].node) & CX_GRAPH_NODE_SHORT) != 0) {
    cx_text_append(out,
                   "; this is the short last batch of an epoch: the loader "
                   "leaves it out with .drop_last = true");
  }
  return true;
}

// ---- the first op -----------------------------------------------------------

static void print_line(const graph_names *p, const outline_line *l,
                       const cx_graph_order *o, const cx_graph_node *node,
                       cx_text *out)
{
  print_site(out, cx_graph_node_name(node), &node->site);
  if (l->op != node->op) {
    print_other_op(p, l, out);
    return;
  }
  for (uint32_t i = 0; i < node->n_in && i < l->n_in; i++) {
    if (cx_graph_shape_equal(&l->shapes[i], cx_in(node, i))) continue;
    cx_text_format(out, ": operand %u ", i);
    print_shapes(p, &l->shapes[i], cx_in(node, i), out);
    return;
  }
  if (!same_attrs(l, node)) {
    print_attrs(p, l, node, out);
    return;
  }
  if (print_origin(p, l, o, node, out)) return;
  if (p->theirs == NULL)
    cx_text_format(out, ": had %u operands, has %u", l->n_in, node->n_in);
  else
    cx_text_format(out, ": has %u operands on %s, %u on %s", l->n_in, p->theirs,
                   node->n_in, p->ours);
}

static void print_missing(const graph_names *p, const char *who,
                          const char *suffix, const cx_graph_op *op,
                          const calx_site *site, cx_text *out)
{
  if (p->theirs != NULL) cx_text_format(out, "only %s has ", who);
  print_site(out, op->name, site);
  if (p->theirs == NULL) cx_text_append(out, suffix);
}

// All nodes that both have are the same, and neither has more.
static void print_rest(const graph_names *p, const cx_graph_outline *known,
                       const cx_graph_order *order, cx_text *out)
{
  if (known->n_roots != order->n_roots) {
    if (p->theirs == NULL)
      cx_text_format(out, "%zu tensors were kept, now %zu", known->n_roots,
                     order->n_roots);
    else
      cx_text_format(out, "%s keeps %zu tensors, %s %zu", p->theirs,
                     known->n_roots, p->ours, order->n_roots);
    return;
  }
  bool in_place = known->n_params == order->n_params &&
                  memcmp(known->aliases, order->aliases,
                         order->n_params * sizeof *order->aliases) != 0;
  cx_text_append(out, in_place ? "other tensors can be updated in place"
                               : "other tensors are kept");
  if (p->theirs != NULL) {
    cx_text_format(out, " on %s than on %s", p->ours, p->theirs);
  }
}

void cx_graph_outline_differ(const cx_graph_outline *known, const char *theirs,
                             const cx_graph_order *order, const char *ours,
                             cx_text *out)
{
  const graph_names p = { theirs, ours };
  if (print_input(&p, known, order, out)) return;
  size_t i = cx_graph_outline_common(known, order);
  if (i < known->n_lines && i < order->n_nodes) {
    print_line(&p, &known->lines[i], order, order->nodes[i], out);
  } else if (i < order->n_nodes) {
    print_missing(&p, ours, " is new", order->nodes[i]->op,
                  &order->nodes[i]->site, out);
  } else if (i < known->n_lines) {
    print_missing(&p, theirs, " is missing", known->lines[i].op,
                  &known->lines[i].site, out);
  } else {
    print_rest(&p, known, order, out);
  }
}
