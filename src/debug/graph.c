// debug/graph: what a tensor waits for, as text: the recorded graph, one node a
// line, and the StableHLO program that would compute it.
//
// Both walk with an order of their own, under the device's lock, because a walk
// writes its marks into the nodes; neither runs, keeps or expires anything. The
// numbers in the text are those of the program: parameters first, in the order
// they are met, then the nodes in the order of their emission.
#include "base/alloc.h"
#include "base/text.h"
#include "calx/debug.h"
#include "graph/lower.h"
#include "hlo/print.h"
#include "lazy/internal.h"

// ---- the graph --------------------------------------------------------------

static void print_site(cx_text *out, const cx_graph_node *node)
{
  if (node->site.file != NULL) {
    cx_text_format(out, ", at %s:%d", node->site.file, node->site.line);
  }
  if (node->module != NULL && node->module[0] != '\0') {
    bool data = (cx_graph_node_flags(node) & CX_GRAPH_NODE_DATA) != 0;
    cx_text_format(out, data ? ", %s" : " in %s", node->module);
  }
  cx_text_char(out, '\n');
}

// %3 of a node with one output, %3#1 of one with several.
static void print_use(cx_text *out, const cx_graph_order *o,
                      const cx_graph_input *in)
{
  const cx_graph_node *node = in->node;
  if (cx_is_computed(node)) {
    cx_text_format(out, "%%%zu", cx_graph_order_param(o, node, in->out));
    return;
  }
  cx_text_format(out, "%%%zu", o->n_params + node->index);
  if (node->n_out > 1) cx_text_format(out, "#%u", in->out);
}

static void print_shapes(cx_text *out, const cx_graph_node *node)
{
  if (node->n_out > 1) cx_text_char(out, '(');
  for (uint32_t k = 0; k < node->n_out; k++) {
    if (k > 0) cx_text_append(out, ", ");
    cx_graph_shape_print(out, &node->out[k].shape);
  }
  if (node->n_out > 1) cx_text_char(out, ')');
}

// The user's numbers, which are no part of the program.
static void print_slots(cx_text *out, const cx_graph_node *node)
{
  if (node->n_slots == 0) return;
  cx_text_append(out, " numbers=[");
  for (uint32_t k = 0; k < node->n_slots; k++) {
    const cx_graph_slot *s = &node->slots[k];
    if (k > 0) cx_text_append(out, ", ");
    if (s->dtype == CALX_F32 || s->dtype == CALX_F64) {
      cx_text_real(out, s->dtype == CALX_F32 ? "%.9g" : "%.17g",
                   s->value.number);
    } else {
      cx_text_int(out, s->value.integer);
    }
  }
  cx_text_char(out, ']');
}

static void print_node(cx_text *out, const cx_graph_order *o, size_t i)
{
  const cx_graph_node *node = o->nodes[i];
  cx_text_format(out, "%%%zu = ", o->n_params + i);
  print_shapes(out, node);
  cx_text_format(out, " %s(", node->op->name);
  for (uint32_t k = 0; k < node->n_in; k++) {
    if (k > 0) cx_text_append(out, ", ");
    print_use(out, o, &node->in[k]);
  }
  cx_text_char(out, ')');
  if (node->op->describe != NULL) {
    cx_text attrs = { 0 };
    node->op->describe(node->attrs, &attrs);
    if (attrs.size > 0) cx_text_format(out, " %s", cx_text_str(&attrs));
    out->failed |= attrs.failed;
    cx_text_free(&attrs);
  }
  print_slots(out, node);
  print_site(out, node);
}

static void print_order(cx_text *out, const cx_graph_order *o)
{
  for (size_t i = 0; i < o->n_params; i++) {
    const cx_graph_node *node = o->params[i].node;
    cx_text_format(out, "%%%zu = ", i);
    cx_graph_shape_print(out, &node->out[o->params[i].out].shape);
    cx_text_append(out, " device_data");
    print_site(out, node);
  }
  for (size_t i = 0; i < o->n_nodes; i++) print_node(out, o, i);
}

// Under the device's lock. The value alone, or, as a read runs it, all outputs
// of its node.
static bool walk(cx_graph_order *o, const calx_tensor *t, bool whole)
{
  cx_graph_node *node = t->node;
  uint32_t n = whole && !cx_is_computed(node) ? node->n_out : 1;
  if (!cx_grow(&o->roots, &o->roots_capacity, n, sizeof *o->roots)) {
    return false;
  }
  for (uint32_t k = 0; k < n; k++) {
    o->roots[k] = (cx_graph_value){ node, n == 1 ? t->out : k };
  }
  o->n_roots = n;
  return cx_graph_order_walk(o);
}

char *calx_graph_str(calx_tensor *tensor)
{
  cx_text out = { 0 };
  if (tensor == NULL) {
    cx_text_append(&out, "no tensor\n");
    return cx_text_take(&out);
  }
  if (tensor->node == NULL) {
    const calx_status *why = calx_tensor_error(tensor);
    if (why != NULL) {
      cx_text_format(&out, "poisoned: %s\n", calx_status_message(why));
    } else {
      cx_text_append(&out, "%0 = ");
      cx_graph_shape_print(&out, cx_lazy_tensor_shape(tensor));
      cx_text_append(&out, " host_data\n");
    }
    return cx_text_take(&out);
  }
  cx_graph_order o = { 0 };
  cx_lock(&tensor->device->lock);
  if (walk(&o, tensor, false)) {
    print_order(&out, &o);
  } else {
    out.failed = true;
  }
  cx_unlock(&tensor->device->lock);
  cx_graph_order_free(&o);
  return cx_text_take(&out);
}

// ---- the program ------------------------------------------------------------

static calx_status *print_program(calx_tensor *t, cx_text *out)
{
  if (t == NULL) {
    return cx_invalid("stablehlo_str: wants a tensor, got NULL");
  }
  CALX_TRY(cx_lazy_tensor_usable(t, "stablehlo_str", 0));
  cx_graph_order o = { 0 };
  cx_hlo_module *module = NULL;
  cx_graph_lowering l = { .order = &o, .name = "calx" };
  cx_lock(&t->device->lock);
  calx_status *status =
      walk(&o, t, true) ? cx_graph_lower(&l, &module) : cx_out_of_memory();
  cx_unlock(&t->device->lock);
  cx_graph_order_free(&o);
  if (status != NULL) return status;
  cx_hlo_print(module, out);
  cx_hlo_module_free(module);
  return NULL;
}

char *calx_stablehlo_str(calx_tensor *tensor)
{
  cx_text out = { 0 };
  calx_status *status = print_program(tensor, &out);
  if (status == NULL && cx_text_failed(&out)) status = cx_out_of_memory();
  if (status == NULL) return cx_text_take(&out);
  cx_text_free(&out);
  cx_lazy_scope_pin(status);
  return NULL;
}
