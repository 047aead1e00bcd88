// autograd/pass: rules are called once for each node, after all its users.
#include "autograd/pass.h"

#include <string.h>

#include "base/alloc.h"
#include "calx/autograd.h"
#include "calx/ops.h"
#include "graph/extra.h"
#include "lazy/tape.h"

enum { RULES_IN_BATCH = 256 };

// ---- batches ----------------------------------------------------------------

static void open_batch(cx_autograd_pass *p)
{
  p->mode_before = cx_lazy_grad_mode();
  p->batch = calx_scope_begin();
  p->in_batch = 0;
  cx_lazy_grad_mode_set(p->create_graph);
  // Rules compute in the types of the forward pass.
  p->autocast_before = cx_lazy_autocast_set(CALX_DTYPE_DEFAULT);
}

static void close_batch(cx_autograd_pass *p)
{
  // A handle may be in several cells, so owners are added before any is
  // removed.
  for (size_t i = 0; i < p->n_fresh; i++) {
    size_t cell = p->fresh[i];
    if (p->grads[cell] == NULL || p->owned[cell]) continue;
    calx_retain(p->grads[cell]);
    p->owned[cell] = true;
  }
  p->n_fresh = 0;
  for (size_t i = 0; i < p->n_done; i++) calx_release(p->done[i]);
  p->n_done = 0;
  calx_status *status = calx_scope_end(p->batch);
  if (p->status == NULL) {
    p->status = status;
  } else {
    calx_status_free(status);
  }
  p->batch = NULL;
  (void)cx_lazy_autocast_set(p->autocast_before);
  // Without memory there was no scope, whose end would have freed these.
  if (cx_lazy_grad_mode() != p->mode_before)
    cx_lazy_grad_mode_set(p->mode_before);
}

bool cx_autograd_failed(const cx_autograd_pass *p)
{
  return p->status != NULL || calx_scope_error() != NULL;
}

// ---- cells ------------------------------------------------------------------

// Makes space for one more cell on both lists. False: the pass has failed.
static bool make_room(cx_autograd_pass *p)
{
  if (cx_grow(&p->fresh, &p->fresh_capacity, p->n_fresh + 1,
              sizeof *p->fresh) &&
      cx_grow(&p->done, &p->done_capacity, p->n_done + 1, sizeof *p->done)) {
    return true;
  }
  cx_lazy_scope_pin(cx_out_of_memory());
  return false;
}

static void set_cell(cx_autograd_pass *p, size_t cell, calx_tensor *grad)
{
  if (!make_room(p)) return;
  calx_tensor *old = p->grads[cell];
  p->grads[cell] = grad;
  if (p->owned[cell]) p->done[p->n_done++] = old;
  p->owned[cell] = false;
  p->fresh[p->n_fresh++] = cell;
}

void cx_autograd_put(cx_autograd_pass *p, size_t cell, calx_tensor *grad)
{
  calx_tensor *old = p->grads[cell];
  set_cell(p, cell, old != NULL ? calx_add_with(old, grad, NULL) : grad);
}

// Releases the gradients of a node, but not those asked for.
static void drop_cells(cx_autograd_pass *p, const cx_autograd_entry *e)
{
  for (size_t c = e->first_cell; c < e->first_cell + e->node->n_out; c++) {
    if (p->grads[c] == NULL || (p->kept != NULL && p->kept[c]) ||
        (p->marks != NULL && (p->marks[c] & CX_AUTOGRAD_TARGET) != 0)) {
      continue;
    }
    if (p->owned[c]) {
      if (!make_room(p)) return;
      p->done[p->n_done++] = p->grads[c];
      p->owned[c] = false;
    }
    p->grads[c] = NULL;
  }
}

// ---- marks ------------------------------------------------------------------

bool cx_autograd_mark(cx_autograd_pass *p, size_t cell)
{
  if (p->marks == NULL) {
    p->marks = cx_calloc(p->walk.n_cells, 1);
    if (p->marks == NULL) return false;
  }
  p->marks[cell] |= CX_AUTOGRAD_TARGET;
  return true;
}

// Whether a gradient along this edge is of use.
static bool leads_on(const cx_autograd_pass *p, const cx_graph_input *in,
                     size_t cell)
{
  if (p->marks == NULL) return true;
  return in->leaf != NULL
             ? (p->marks[cell] & CX_AUTOGRAD_TARGET) != 0
             : (p->marks[cell - in->out] & CX_AUTOGRAD_THROUGH) != 0;
}

void cx_autograd_mark_ways(cx_autograd_pass *p)
{
  for (size_t i = 0; p->marks != NULL && i < p->walk.n_entries; i++) {
    const cx_autograd_entry *e = &p->walk.entries[i];
    unsigned char *mark = &p->marks[e->first_cell];
    for (uint32_t k = 0; k < e->node->n_out; k++) {
      if ((mark[k] & CX_AUTOGRAD_TARGET) != 0) *mark |= CX_AUTOGRAD_THROUGH;
    }
    for (uint32_t k = 0; k < e->node->n_in; k++) {
      const cx_graph_input *in = &e->node->in[k];
      size_t cell;
      if (cx_autograd_cell(&p->walk, in, &cell) && leads_on(p, in, cell)) {
        *mark |= CX_AUTOGRAD_BELOW | CX_AUTOGRAD_THROUGH;
      }
    }
  }
}

// ---- hooks ------------------------------------------------------------------

static void call_hook(cx_autograd_pass *p, const cx_hook *h, size_t cell)
{
  calx_gradient_hook_fn *fn = (calx_gradient_hook_fn *)h->fn;
  calx_tensor *before = p->grads[cell], *after = fn(h->user, before);
  if (after == NULL || after == before || cx_autograd_failed(p)) return;
  calx_status *status = cx_lazy_tensor_usable(after, "register_hook", 0);
  const cx_graph_shape *is = cx_lazy_tensor_shape(after),
                       *was = cx_lazy_tensor_shape(before);
  if (status == NULL && !cx_graph_shape_equal(is, was)) {
    status = cx_invalid(
        "backward: a hook has changed the shape of a gradient: it gave %s, the "
        "gradient is %s",
        cx_graph_shape_str(is), cx_graph_shape_str(was));
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
  } else {
    set_cell(p, cell, after);
  }
}

// Notes that a tensor keeps the gradient in this cell.
static void retain_cell(cx_autograd_pass *p, const cx_hook *h, size_t cell)
{
  calx_tensor *t = atomic_load(&((cx_graph_leaf *)h->user)->tensor);
  if (t == NULL) return;
  if (p->kept == NULL) p->kept = cx_calloc(p->walk.n_cells, 1);
  if (p->kept == NULL || !cx_grow(&p->retained, &p->retained_capacity,
                                  p->n_retained + 1, sizeof *p->retained)) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  p->kept[cell] = true;
  p->retained[p->n_retained++] = (cx_autograd_leaf){ calx_retain(t), cell };
}

void cx_autograd_hook(cx_autograd_pass *p, cx_graph_extra *extra, size_t cell,
                      uint32_t out)
{
  if (extra == NULL || p->grads[cell] == NULL) return;
  for (int kind = CX_GRAPH_HOOK_GRAD; kind <= CX_GRAPH_HOOK_RETAIN; kind++) {
    cx_hook *h = NULL;
    while ((h = cx_hook_next(&extra->hooks, h, kind, out)) != NULL) {
      if (cx_autograd_failed(p)) {
        cx_hook_give_back(h);
        return;
      }
      if (kind == CX_GRAPH_HOOK_GRAD) {
        call_hook(p, h, cell);
      } else {
        retain_cell(p, h, cell);
      }
    }
  }
}

// ---- rules ------------------------------------------------------------------

static calx_status *check_grad(const cx_graph_node *node, uint32_t i,
                               const calx_tensor *grad)
{
  const cx_graph_shape *got = cx_lazy_tensor_shape(grad);
  if (cx_lazy_tensor_poisoned(grad))
    return cx_status_copy(calx_tensor_error(grad));
  if (cx_graph_shape_equal(got, cx_in(node, i))) return NULL;
  return cx_error(CALX_INTERNAL,
                  "backward: the rule of %s gives operand %u the gradient %s, "
                  "its shape is %s",
                  node->op->name, i, cx_graph_shape_str(got),
                  cx_graph_shape_str(cx_in(node, i)));
}

static void spread(cx_autograd_pass *p, const cx_graph_node *node)
{
  for (uint32_t i = 0; i < node->n_in && !cx_autograd_failed(p); i++) {
    calx_tensor *grad = p->in_grads[i];
    size_t cell;
    if (grad == NULL || !cx_autograd_cell(&p->walk, &node->in[i], &cell) ||
        !leads_on(p, &node->in[i], cell)) {
      continue;
    }
    calx_status *status = check_grad(node, i, grad);
    if (status != NULL) {
      cx_lazy_scope_pin(status);
    } else {
      cx_autograd_put(p, cell, grad);
    }
  }
}

static calx_status *check_used_up(const cx_graph_node *node)
{
  if ((cx_graph_node_flags(node) & CX_GRAPH_NODE_USED_UP) == 0) return NULL;
  return cx_error(
      CALX_FAILED_PRECONDITION,
      "Trying to backward through the graph a second time: %s was "
      "differentiated before; give the first backward pass .retain_graph = "
      "true, or compute the output again",
      cx_graph_node_name(node));
}

static void apply_rule(cx_autograd_pass *p, const cx_autograd_entry *e)
{
  cx_graph_node *node = e->node;
  size_t at = (size_t)(e - p->walk.entries);
  if (!cx_grow(&p->in_grads, &p->in_grads_capacity, node->n_in,
               sizeof *p->in_grads)) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  memset(p->in_grads, 0, node->n_in * sizeof *p->in_grads);
  cx_lazy_tape tape = { .node = node,
                        .attrs = node->attrs,
                        .device = p->device,
                        .out_grads = &p->grads[e->first_cell],
                        .in_grads = p->in_grads,
                        .used_values = &p->used[at],
                        .create_graph = p->create_graph };
  const char *path = cx_lazy_module_path_set(node->module);
  node->op->grad(&tape);
  if (p->used[at]) cx_lazy_scope_pin(check_used_up(node));
  if (!cx_autograd_failed(p)) spread(p, node);
  cx_lazy_module_path_set(path);
  if (cx_autograd_failed(p)) p->failed = node;
  p->in_batch++;
}

static bool has_gradient(const cx_autograd_pass *p, const cx_autograd_entry *e)
{
  for (uint32_t k = 0; k < e->node->n_out; k++) {
    if (p->grads[e->first_cell + k] != NULL) return true;
  }
  return false;
}

// ---- the pass ---------------------------------------------------------------

bool cx_autograd_begin(cx_autograd_pass *p)
{
  size_t n = p->walk.n_cells;
  p->grads = cx_calloc(n, sizeof(calx_tensor *));
  p->owned = cx_calloc(n, sizeof *p->owned);
  p->used = cx_calloc(p->walk.n_entries + 1, sizeof *p->used);
  if (p->grads == NULL || p->owned == NULL || p->used == NULL) return false;
  open_batch(p);
  return true;
}

void cx_autograd_run(cx_autograd_pass *p)
{
  for (size_t i = p->walk.n_entries; i > 0 && !cx_autograd_failed(p); i--) {
    const cx_autograd_entry *e = &p->walk.entries[i - 1];
    if (!has_gradient(p, e)) continue;
    for (uint32_t k = 0; e->node->extra != NULL && k < e->node->n_out; k++) {
      cx_autograd_hook(p, e->node->extra, e->first_cell + k, k);
    }
    if (cx_autograd_failed(p)) break;
    if (e->node->op->grad != NULL &&
        (p->marks == NULL ||
         (p->marks[e->first_cell] & CX_AUTOGRAD_BELOW) != 0)) {
      apply_rule(p, e);
    }
    drop_cells(p, e);
    if (p->in_batch == RULES_IN_BATCH) {
      close_batch(p);
      open_batch(p);
    }
  }
}

void cx_autograd_use_up(cx_autograd_pass *p)
{
  for (size_t i = 0; !p->retain_graph && i < p->walk.n_entries; i++) {
    if (!p->used[i]) continue;
    cx_graph_node_set_flags(p->walk.entries[i].node, CX_GRAPH_NODE_USED_UP);
  }
}

calx_status *cx_autograd_end(cx_autograd_pass *p)
{
  if (p->batch != NULL) {
    p->n_fresh = 0;
    close_batch(p);
  }
  for (size_t c = 0; p->owned != NULL && c < p->walk.n_cells; c++) {
    if (p->owned[c]) calx_release(p->grads[c]);
  }
  calx_status *status = p->status;
  if (p->failed != NULL) {
    const calx_site *at = &p->failed->site;
    status = cx_annotate(status, "in the gradient of %s, recorded at %s:%d",
                         p->failed->op->name, at->file != NULL ? at->file : "?",
                         at->line);
  }
  for (size_t i = 0; i < p->n_retained; i++) {
    calx_release(p->retained[i].tensor);
  }
  cx_autograd_walk_free(&p->walk);
  cx_free(p->retained);
  cx_free(p->kept);
  cx_free(p->used);
  cx_free(p->marks);
  cx_free(p->grads);
  cx_free(p->owned);
  cx_free(p->in_grads);
  cx_free(p->fresh);
  cx_free(p->done);
  return status;
}
