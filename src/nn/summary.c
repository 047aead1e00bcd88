// nn/summary: a table of a model's modules. The forward is recorded, not run;
// its nodes know the module that recorded them, and from their shapes follow
// the operations.
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "nn/module.h"
#include "ops/ops.h"

typedef struct summary_row {
  calx_module *m;
  bool called, was_training;
  calx_dims shape;  // of the last result
  int64_t flops;    // recorded by the module itself
} summary_row;

typedef struct summary {
  summary_row *rows;  // each module before its children
  size_t n, capacity;
  bool failed;
} summary;

static void add_rows(summary *s, calx_module *m)
{
  if (!cx_grow(&s->rows, &s->capacity, s->n + 1, sizeof *s->rows)) {
    s->failed = true;
    return;
  }
  s->rows[s->n++] = (summary_row){ .m = m, .was_training = m->training };
  for (size_t i = 0; calx_module_child_at(m, i) != NULL; i++) {
    add_rows(s, calx_module_child_at(m, i));
  }
}

static void note_result(void *user, calx_module *m, calx_tensor *y)
{
  summary *s = user;
  for (size_t i = 0; i < s->n; i++) {
    if (s->rows[i].m != m) continue;
    s->rows[i].called = true;
    s->rows[i].shape = calx_tensor_shape(y);
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

static void count_node(summary *s, const cx_graph_node *node)
{
  int64_t flops = flops_of(node);
  if (flops == 0) return;
  for (size_t i = 0; i < s->n; i++) {
    const char *path = s->rows[i].m->path;
    if (path != node->module && !(path[0] == '\0' && node->module == NULL)) {
      continue;
    }
    s->rows[i].flops += flops;
    return;
  }
  s->rows[0].flops += flops;  // of a module outside of this one
}

static void count_flops(summary *s, calx_tensor *y)
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

// ---- the table --------------------------------------------------------------

static bool is_below(const calx_module *m, const calx_module *of)
{
  while (m != NULL && m != of) m = m->parent;
  return m != NULL;
}

static int64_t flops_below(const summary *s, size_t at)
{
  int64_t sum = 0;
  for (size_t i = at; i < s->n; i++) {
    if (is_below(s->rows[i].m, s->rows[at].m)) sum += s->rows[i].flops;
  }
  return sum;
}

// 21840 as "21,840".
static void write_number(char *out, size_t size, int64_t value)
{
  char digits[32];
  int n = snprintf(digits, sizeof digits, "%" PRId64, value);
  size_t used = 0;
  for (int i = 0; i < n && used + 2 < size; i++) {
    if (i != 0 && (n - i) % 3 == 0) out[used++] = ',';
    out[used++] = digits[i];
  }
  out[used] = '\0';
}

static void write_row(cx_text *out, const char *name, const char *shape,
                      int64_t parameters, int64_t flops)
{
  char p[48], f[48];
  write_number(p, sizeof p, parameters);
  write_number(f, sizeof f, flops);
  cx_text_format(out, "%-36s %-22s %14s %18s\n", name, shape, p, f);
}

static void write_shape(const summary_row *r, char *out, size_t size)
{
  size_t used = (size_t)snprintf(out, size, r->called ? "(" : "-");
  for (size_t i = 0; r->called && i < r->shape.count && used < size; i++) {
    used += (size_t)snprintf(out + used, size - used, "%s%" PRId64,
                             i == 0 ? "" : ", ", r->shape.values[i]);
  }
  if (r->called && used < size) snprintf(out + used, size - used, ")");
}

typedef struct trained {
  int64_t n;
} trained;

static void count_trained(void *user, const char *path, calx_entry_kind kind,
                          calx_tensor *t)
{
  (void)path;
  (void)kind;
  if (cx_lazy_tensor_requires_grad(t)) {
    ((trained *)user)->n += calx_tensor_numel(t);
  }
}

static char *write_table(const summary *s)
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
    write_row(&out, name, shape, calx_module_param_count(m), flops_below(s, i));
  }
  trained t = { 0 };
  calx_module_parameters(s->rows[0].m, count_trained, &t);
  char number[48];
  write_number(number, sizeof number, t.n);
  cx_text_format(&out, "trained parameters: %s\n", number);
  return cx_text_take(&out);
}

// ---- recording --------------------------------------------------------------

static void record(summary *s, calx_dims shape, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o, .dtype = dtype };
  for (size_t i = 0; i < s->n; i++) s->rows[i].m->training = false;
  cx_lazy_no_grad_begin();
  cx_nn_module_watch(note_result, s);
  calx_tensor *y = calx_forward(s->rows[0].m, calx_zeros_with(shape, &o));
  cx_nn_module_watch(NULL, NULL);
  cx_lazy_no_grad_end();
  for (size_t i = 0; i < s->n; i++) {
    s->rows[i].m->training = s->rows[i].was_training;
  }
  if (!cx_lazy_tensor_poisoned(y)) count_flops(s, y);
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
  summary s = { .n = 0 };
  add_rows(&s, model);
  calx_scope *scope = calx_scope_begin();
  if (!s.failed) record(&s, input_shape, o.dtype);
  status = calx_scope_end(scope);
  if (status == NULL && s.failed) status = cx_out_of_memory();
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
