// nn/summary: a table of a model's modules. The forward is recorded, not run;
// its nodes know the module that recorded them, and from their shapes follow
// the operations.
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "nn/summary.h"
#include "ops/ops.h"

static void add_rows(cx_nn_summary *s, calx_module *m)
{
  if (!cx_grow(&s->rows, &s->capacity, s->n + 1, sizeof *s->rows)) {
    s->failed = true;
    return;
  }
  s->rows[s->n++] = (cx_nn_summary_row){ .m = m, .was_training = m->training };
  for (size_t i = 0; calx_module_child_at(m, i) != NULL; i++) {
    add_rows(s, calx_module_child_at(m, i));
  }
}

static void note_call(void *user, calx_module *m, calx_tensor *const *in,
                      size_t n_in, calx_tensor *y)
{
  cx_nn_summary *s = user;
  for (size_t i = 0; i < s->n; i++) {
    cx_nn_summary_row *row = &s->rows[i];
    if (row->m != m || row->called) continue;
    row->called = true;
    row->out = calx_tensor_shape(y);
    row->n_in = n_in;
    for (size_t k = 0; k < n_in; k++) row->in[k] = calx_tensor_shape(in[k]);
  }
}

// ---- operations -------------------------------------------------------------

static int64_t flops_of(const cx_graph_node *node)
{
  const cx_graph_shape *out = &node->out[0].shape;
  if (node->op == &cx_ops_matmul) {
    return 2 * cx_graph_shape_numel(cx_in(node, 0)) * out->dims[out->rank - 1];
  }
  bool transposed = node->op == &cx_ops_conv_input;
  if (node->op != &cx_ops_conv && !transposed) return 0;
  const cx_graph_shape *w = cx_in(node, 1);
  int64_t positions = cx_graph_shape_numel(transposed ? cx_in(node, 0) : out);
  return w->dims[0] == 0
             ? 0
             : 2 * (positions / w->dims[0]) * cx_graph_shape_numel(w);
}

// Nodes that were reached, as an open hash table of their addresses.
typedef struct reached {
  const cx_graph_node **nodes;
  size_t n, size;  // size: 0 or a power of 2
} reached;

static size_t slot_of(const reached *r, const cx_graph_node *node)
{
  size_t i = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u;
  for (i &= r->size - 1; r->nodes[i] != NULL && r->nodes[i] != node;) {
    i = (i + 1) & (r->size - 1);
  }
  return i;
}

static bool grow(reached *r)
{
  reached larger = { .n = r->n, .size = r->size != 0 ? 2 * r->size : 256 };
  larger.nodes = cx_calloc(larger.size, sizeof *larger.nodes);
  if (larger.nodes == NULL) return false;
  for (size_t i = 0; i < r->size; i++) {
    if (r->nodes[i] == NULL) continue;
    larger.nodes[slot_of(&larger, r->nodes[i])] = r->nodes[i];
  }
  cx_free(r->nodes);
  *r = larger;
  return true;
}

typedef struct node_walk {
  reached seen;
  const cx_graph_node **stack;
  size_t depth, capacity;
} node_walk;

static bool push(node_walk *w, const cx_graph_node *node)
{
  if (2 * w->seen.n >= w->seen.size && !grow(&w->seen)) return false;
  size_t i = slot_of(&w->seen, node);
  if (w->seen.nodes[i] != NULL) return true;
  w->seen.nodes[i] = node;
  w->seen.n++;
  if (!cx_grow(&w->stack, &w->capacity, w->depth + 1, sizeof *w->stack)) {
    return false;
  }
  w->stack[w->depth++] = node;
  return true;
}

static void count_node(cx_nn_summary *s, const cx_graph_node *node)
{
  int64_t flops = flops_of(node);
  if (flops == 0) return;
  for (size_t i = 0; i < s->n; i++) {
    const char *path = s->rows[i].m->path;
    if (path != node->module && !(path[0] == '\0' && node->module == NULL)) {
      continue;
    }
    s->rows[i].own_flops += flops;
    return;
  }
  s->rows[0].own_flops += flops;  // of a module outside of this one
}

static void count_flops(cx_nn_summary *s, calx_tensor *y)
{
  node_walk w = { .depth = 0 };
  s->failed = s->failed || !push(&w, cx_lazy_tensor_value(y).node);
  while (w.depth != 0 && !s->failed) {
    const cx_graph_node *node = w.stack[--w.depth];
    count_node(s, node);
    for (uint32_t i = 0; i < node->n_in; i++) {
      s->failed = s->failed || !push(&w, node->in[i].node);
    }
  }
  cx_free(w.seen.nodes);
  cx_free(w.stack);
}

static bool is_below(const calx_module *m, const calx_module *of)
{
  while (m != NULL && m != of) m = m->parent;
  return m != NULL;
}

static void sum_flops(cx_nn_summary *s)
{
  for (size_t at = 0; at < s->n; at++) {
    for (size_t i = at; i < s->n; i++) {
      if (!is_below(s->rows[i].m, s->rows[at].m)) continue;
      s->rows[at].flops += s->rows[i].own_flops;
    }
  }
}

// ---- recording --------------------------------------------------------------

static void record(cx_nn_summary *s, calx_dims shape, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o, .dtype = dtype };
  for (size_t i = 0; i < s->n; i++) s->rows[i].m->training = false;
  cx_lazy_no_grad_begin();
  cx_nn_module_watch(note_call, s);
  calx_tensor *y = calx_forward(s->rows[0].m, calx_zeros_with(shape, &o));
  cx_nn_module_watch(NULL, NULL);
  cx_lazy_no_grad_end();
  for (size_t i = 0; i < s->n; i++) {
    s->rows[i].m->training = s->rows[i].was_training;
  }
  if (!cx_lazy_tensor_poisoned(y)) count_flops(s, y);
  sum_flops(s);
}

calx_status *cx_nn_summarize(calx_module *model, const calx_dims *input,
                             calx_dtype dtype, cx_nn_summary *s)
{
  *s = (cx_nn_summary){ 0 };
  add_rows(s, model);
  calx_scope *scope = calx_scope_begin();
  if (!s->failed && input != NULL) record(s, *input, dtype);
  calx_status *status = calx_scope_end(scope);
  if (status == NULL && s->failed) status = cx_out_of_memory();
  if (status == NULL) return NULL;
  cx_free(s->rows);
  *s = (cx_nn_summary){ 0 };
  return status;
}

// ---- numbers and names ------------------------------------------------------

const char *cx_nn_summary_name(const cx_nn_summary *s, size_t row)
{
  return s->rows[row].m->path +
         (row == 0 ? 0 : cx_nn_module_prefix(s->rows[0].m));
}

static void count_trained(void *user, const char *path, calx_entry_kind kind,
                          calx_tensor *t)
{
  (void)path;
  (void)kind;
  if (cx_lazy_tensor_requires_grad(t)) {
    *(int64_t *)user += calx_tensor_numel(t);
  }
}

int64_t cx_nn_trainable_count(calx_module *m)
{
  int64_t n = 0;
  calx_module_parameters(m, count_trained, &n);
  return n;
}

void cx_nn_put_grouped(cx_text *out, int64_t value)
{
  char digits[32];
  const int n = snprintf(digits, sizeof digits, "%" PRId64, value);
  for (int i = 0; i < n; i++) {
    if (i != 0 && (n - i) % 3 == 0 && digits[i - 1] != '-') {
      cx_text_char(out, ',');
    }
    cx_text_char(out, digits[i]);
  }
}

// ---- the table --------------------------------------------------------------

static void write_row(cx_text *out, const char *name, const char *shape,
                      int64_t parameters, int64_t flops)
{
  cx_text p = { 0 }, f = { 0 };
  cx_nn_put_grouped(&p, parameters);
  cx_nn_put_grouped(&f, flops);
  cx_text_format(out, "%-36s %-22s %14s %18s\n", name, shape, cx_text_str(&p),
                 cx_text_str(&f));
  cx_text_free(&p);
  cx_text_free(&f);
}

static void write_shape(const cx_nn_summary_row *r, char *out, size_t size)
{
  size_t used = (size_t)snprintf(out, size, r->called ? "(" : "-");
  for (size_t i = 0; r->called && i < r->out.count && used < size; i++) {
    used += (size_t)snprintf(out + used, size - used, "%s%" PRId64,
                             i == 0 ? "" : ", ", r->out.values[i]);
  }
  if (r->called && used < size) snprintf(out + used, size - used, ")");
}

static char *write_table(const cx_nn_summary *s)
{
  cx_text out = { 0 };
  cx_text_format(&out, "%-36s %-22s %14s %18s\n", "layer", "output shape",
                 "parameters", "FLOPs");
  int top = s->rows[0].m->depth;
  for (size_t i = 0; i < s->n; i++) {
    const calx_module *m = s->rows[i].m;
    char name[256], shape[128];
    const char *own = m->path;
    if (i != 0) own += cx_nn_module_prefix(m->parent);
    snprintf(name, sizeof name, i != 0 ? "%*s%s (%s)" : "%*s%.0s%s",
             2 * (m->depth - top), "", own, m->kind);
    write_shape(&s->rows[i], shape, sizeof shape);
    write_row(&out, name, shape, calx_module_param_count(m), s->rows[i].flops);
  }
  cx_text_append(&out, "trained parameters: ");
  cx_nn_put_grouped(&out, cx_nn_trainable_count(s->rows[0].m));
  cx_text_char(&out, '\n');
  return cx_text_take(&out);
}

char *calx_summary_str_with(calx_module *model, calx_dims input_shape,
                            const calx_summary_options *options)
{
  calx_summary_options o;
  calx_status *status = cx_options_take("summary", options, &o, sizeof o);
  if (status == NULL) status = calx_module_error(model);
  if (status != NULL) {
    cx_lazy_scope_pin(cx_annotate(status, "so there is no summary"));
    return NULL;
  }
  cx_nn_summary s;
  status = cx_nn_summarize(model, &input_shape, o.dtype, &s);
  char *text = status == NULL ? write_table(&s) : NULL;
  cx_free(s.rows);
  if (text == NULL && status == NULL) status = cx_out_of_memory();
  cx_lazy_scope_pin(status);
  return text;
}

void calx_summary_with(calx_module *model, calx_dims input_shape,
                       const calx_summary_options *options)
{
  char *text = calx_summary_str_with(model, input_shape, options);
  if (text != NULL) fputs(text, stdout);
  calx_string_free(text);
}
