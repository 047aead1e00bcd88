// opt/attention: softmax(scale * q k^T, masked) v becomes a call of the kernel
// in kernel/attention.h, and its gradient another. Where a score is needed for
// anything else, all stays as it is.
#include "opt/attention.h"

#include <string.h>

#include "base/alloc.h"
#include "kernel/half.h"
#include "opt/kernel_call.h"
#include "opt/passes.h"

// ---- calls ------------------------------------------------------------------

static void describe(const cpu_opt_attention *a, bool backward,
                     cpu_kernel_desc *out)
{
  cpu_kernel_attention_desc d = a->desc;
  d.kind = CPU_KERNEL_ATTENTION;
  d.backward = backward;
  d.scale = cpu_kernel_f32_to_bits((float)a->scale);
  for (int t = 0; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
    const bool keys =
        t == CPU_KERNEL_ATTENTION_K || t == CPU_KERNEL_ATTENTION_V ||
        t == CPU_KERNEL_ATTENTION_DK || t == CPU_KERNEL_ATTENTION_DV;
    const bool of_values = t == CPU_KERNEL_ATTENTION_V ||
                           t == CPU_KERNEL_ATTENTION_OUT ||
                           t == CPU_KERNEL_ATTENTION_DV;
    const bool result = t > CPU_KERNEL_ATTENTION_OUT ||
                        (t == CPU_KERNEL_ATTENTION_OUT && !backward);
    if (t == CPU_KERNEL_ATTENTION_MASK || (result && a->products[t].op == NULL))
      continue;
    const cx_hlo_value *v =
        result ? &a->products[t].op->results[0] : a->inputs[t];
    d.layout[t] = cpu_opt_axes_layout(
        &v->type.tensor, result ? &a->products[t].axes : &a->input_axes[t],
        keys ? CPU_OPT_AXIS_COLUMN : CPU_OPT_AXIS_ROW,
        of_values ? CPU_OPT_AXIS_VALUE : CPU_OPT_AXIS_WIDTH);
    if (result) {
      d.factor[t - CPU_KERNEL_ATTENTION_OUT] =
          cpu_kernel_f32_to_bits((float)a->products[t].factor);
    }
  }
  memset(out, 0, sizeof *out);
  memcpy(out, &d, sizeof d);
}

// The call, before the visited operation; NULL: the builder has failed.
static cx_hlo_op *build_call(cpu_opt_walk *w, const cpu_opt_attention *a,
                             bool backward)
{
  cx_hlo_builder *b = &w->b;
  cpu_kernel_desc desc;
  describe(a, backward, &desc);
  cx_hlo_value *operands[CPU_KERNEL_ATTENTION_TENSORS];
  size_t n = 0;
  const int last =
      backward ? CPU_KERNEL_ATTENTION_OUT : CPU_KERNEL_ATTENTION_MASK;
  for (int t = 0; t <= last; t++) {
    if (t == CPU_KERNEL_ATTENTION_MASK &&
        a->desc.masking == CPU_KERNEL_ATTENTION_NO_MASK) {
      continue;
    }
    operands[n++] = cpu_opt_resolve(w, a->inputs[t]);
  }
  const int first = backward ? CPU_KERNEL_ATTENTION_DQ : last + 1;
  const size_t n_results = backward ? 3 : 1;
  const cx_hlo_type *types[3];
  for (size_t i = 0; i < n_results; i++) {
    types[i] = &a->products[first + (int)i].op->results[0].type.tensor;
  }
  return cpu_opt_kernel_call(b, &desc, operands, n, types, n_results);
}

// ---- the pass ---------------------------------------------------------------

typedef struct found {
  cpu_opt_attention *items;
  size_t n, room;
  cx_hlo_op **calls;   // of the gradients of each
  uint32_t *by_value;  // by the number of a product's result: item + 1
} found;

static calx_status *find_all(cx_hlo_func *f, cpu_opt_fact *facts, found *all)
{
  for (cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
       op = cpu_opt_next(op)) {
    if (op->kind != CX_HLO_OP_EXPONENTIAL) continue;
    cpu_opt_attention a;
    if (!cpu_opt_attention_find(facts, op, &a)) continue;
    if (!cx_grow(&all->items, &all->room, all->n + 1, sizeof *all->items)) {
      return cx_out_of_memory();
    }
    all->items[all->n++] = a;
    for (int t = 0; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
      const cx_hlo_op *product = a.products[t].op;
      if (product == NULL) continue;
      all->by_value[product->results[0].number] = (uint32_t)all->n;
    }
  }
  return NULL;
}

// At the first of the three products that the gradient's call replaces, its
// operands are there: each of the products has the gradient of the result
// above it. Of the two uses of that gradient one has been visited.
static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  found *all = w->user;
  if (op->kind != CX_HLO_OP_DOT_GENERAL ||
      op->results[0].number >= w->b.module->n_values ||
      all->by_value[op->results[0].number] == 0) {
    return NULL;
  }
  const size_t i = all->by_value[op->results[0].number] - 1;
  cpu_opt_attention *a = &all->items[i];
  if (op == a->products[CPU_KERNEL_ATTENTION_OUT].op) {
    const cx_hlo_op *call = build_call(w, a, false);
    cpu_opt_replace(w, op, call == NULL ? NULL : &call->results[0]);
    return NULL;
  }
  if (all->calls[i] == NULL) {
    if (op == a->products[CPU_KERNEL_ATTENTION_DV].op) {
      a->inputs[CPU_KERNEL_ATTENTION_OUT] = a->out_grad;
      a->input_axes[CPU_KERNEL_ATTENTION_OUT] = a->out_grad_axes;
    }
    all->calls[i] = build_call(w, a, true);
  }
  for (int t = CPU_KERNEL_ATTENTION_DQ; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
    if (op != a->products[t].op) continue;
    cpu_opt_replace(w, op,
                    all->calls[i] == NULL
                        ? NULL
                        : &all->calls[i]->results[t - CPU_KERNEL_ATTENTION_DQ]);
  }
  return NULL;
}

calx_status *cpu_opt_attention_pass(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  found all = { 0 };
  const size_t n = (size_t)m->n_values + 1;
  cpu_opt_fact *facts = cx_calloc(n, sizeof *facts);
  all.by_value = cx_calloc(n, sizeof *all.by_value);
  calx_status *status = facts == NULL || all.by_value == NULL
                            ? cx_out_of_memory()
                            : find_all(f, facts, &all);
  cx_free(facts);
  if (status == NULL && all.n > 0) {
    all.calls = cx_calloc(all.n, sizeof(cx_hlo_op *));
    status = all.calls == NULL ? cx_out_of_memory()
                               : cpu_opt_walk_func(m, f, visit, &all, changed);
  }
  cx_free(all.items);
  cx_free(all.calls);
  cx_free(all.by_value);
  return status;
}
