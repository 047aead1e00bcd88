// opt/inline: replaces calls in the entry by the operations of the callees.
//
// The copied operations are visited in turn, so only the entry grows, and the
// callees stay as they are until all calls are gone. The verifier has excluded
// recursion. The size and depth of the result are computed before anything is
// copied: a program of a few lines can ask for 2^60 operations.
#include <string.h>

#include "base/alloc.h"
#include "opt/chlo.h"
#include "opt/edit.h"
#include "opt/passes.h"

#define MOST_OPS ((uint64_t)4 << 20)
#define DEEPEST 256u

typedef struct size_of {
  uint64_t ops;
  uint32_t depth;
  bool known;
} size_of;

typedef struct inliner {
  cx_hlo_module *module;
  cx_hlo_value **copies;  // by the number of a callee's value: its last copy
} inliner;

// The function that an operation calls; NULL: the operation is no call.
static cx_hlo_func *callee_of(const cx_hlo_module *m, const cx_hlo_op *op)
{
  cx_hlo_attr_id id = CX_HLO_A_CALLEE;
  if (op->kind == CX_HLO_OP_COMPOSITE) {
    id = CX_HLO_A_DECOMPOSITION;
  } else if (op->kind != CX_HLO_OP_CALL) {
    return NULL;
  }
  return cx_hlo_func_find(m, cx_hlo_op_attr(op, id)->as.text);
}

static uint32_t depth_of(const cx_hlo_op *op)
{
  uint32_t depth = 0;
  while (op->block->region->op != NULL) {
    op = op->block->region->op;
    depth++;
  }
  return depth;
}

// ---- sizes ----

// A function that has been measured up to `op`.
typedef struct frame {
  cx_hlo_func *func;
  const cx_hlo_op *op;
  size_of total;
} frame;

static frame frame_of(cx_hlo_func *f)
{
  return (frame){ f, cpu_opt_first(f->body.first), { .known = true } };
}

// Continues until a callee must be measured first, and returns it; NULL: done.
static cx_hlo_func *measure(const cx_hlo_module *m, frame *at, size_of *sizes)
{
  size_of *total = &at->total;
  for (; at->op != NULL; at->op = cpu_opt_next(at->op)) {
    cx_hlo_func *callee = callee_of(m, at->op);
    const uint32_t depth = depth_of(at->op);
    size_of inner = { .ops = 1 };
    if (callee != NULL) {
      inner = sizes[callee->index];
      if (!inner.known) return callee;
    }
    total->ops += inner.ops;
    if (total->ops > MOST_OPS) total->ops = MOST_OPS + 1;
    if (depth + inner.depth > total->depth) total->depth = depth + inner.depth;
    if (total->depth > DEEPEST) total->depth = DEEPEST + 1;
  }
  sizes[at->func->index] = *total;
  return NULL;
}

// Measures callees before callers, with a stack in memory instead of recursion.
static calx_status *measure_with(const cx_hlo_module *m, cx_hlo_func *entry,
                                 size_of *sizes, frame *stack)
{
  size_t n = 0;
  stack[n++] = frame_of(entry);
  while (n > 0) {
    cx_hlo_func *first = measure(m, &stack[n - 1], sizes);
    if (first == NULL) {
      n--;
    } else if (n > m->n_funcs) {
      return cx_invalid("function '%.*s' calls itself", (int)first->name.n,
                        first->name.s);
    } else {
      stack[n++] = frame_of(first);
    }
  }
  return NULL;
}

static calx_status *measure_all(const cx_hlo_module *m, cx_hlo_func *entry,
                                size_of *out)
{
  size_of *sizes = cx_calloc(m->n_funcs, sizeof *sizes);
  frame *stack = cx_calloc((size_t)m->n_funcs + 1, sizeof *stack);
  calx_status *status = cx_out_of_memory();
  if (sizes != NULL && stack != NULL) {
    status = measure_with(m, entry, sizes, stack);
    *out = sizes[entry->index];
  }
  cx_free(sizes);
  cx_free(stack);
  return status;
}

static calx_status *check_size(const cx_hlo_module *m, cx_hlo_func *entry)
{
  size_of size = { 0 };
  CALX_TRY(measure_all(m, entry, &size));
  if (size.ops > MOST_OPS) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "function '%.*s' with all that it calls has more than %llu "
                    "operations",
                    (int)entry->name.n, entry->name.s,
                    (unsigned long long)MOST_OPS);
  }
  if (size.depth > DEEPEST) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "function '%.*s' with all that it calls nests deeper than "
                    "%u regions",
                    (int)entry->name.n, entry->name.s, DEEPEST);
  }
  return NULL;
}

// ---- copying ----

// A composite that is a function of CHLO which the jit has: the operation takes
// less time than the decomposition. That of erf on f32 takes as long, and
// stays.
static cx_hlo_value *function_of(cpu_opt_walk *w, const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_COMPOSITE || op->n_operands != 1 ||
      op->n_results != 1 || op->operands[0]->type.non_tensor != NULL ||
      op->results[0].type.non_tensor != NULL ||
      !cx_hlo_type_equal(&op->operands[0]->type.tensor,
                         &op->results[0].type.tensor)) {
    return NULL;
  }
  const cx_hlo_elem e = op->results[0].type.tensor.elem;
  const cx_hlo_op_kind kind =
      cpu_opt_chlo_function(cx_hlo_op_attr(op, CX_HLO_A_NAME)->as.text, e);
  if (kind == CX_HLO_OP_OTHER ||
      (kind == CX_HLO_OP_CHLO_ERF && e == CX_HLO_F32)) {
    return NULL;
  }
  return cx_hlo_unary(&w->b, kind, op->operands[0]);
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  inliner *in = w->user;
  cx_hlo_value *function = function_of(w, op);
  if (function != NULL) {
    cpu_opt_replace(w, op, function);
    return NULL;
  }
  const cx_hlo_func *f = callee_of(in->module, op);
  if (f == NULL) return NULL;
  const cx_hlo_block *body = f->body.first;
  const cx_hlo_op *end = cx_hlo_terminator(body);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    in->copies[body->args[i].number] = op->operands[i];
  }
  if (!cpu_opt_copy_block(in->module, body, &w->made, in->copies)) {
    return cx_out_of_memory();
  }
  cx_hlo_value **out = cpu_opt_values(w, end->n_operands);
  if (out == NULL) return NULL;
  for (uint32_t i = 0; i < end->n_operands; i++) {
    out[i] = in->copies[end->operands[i]->number];
  }
  cpu_opt_replace_all(w, op, out);
  w->revisit = true;
  return NULL;
}

// ---- functions that nothing calls ----

static bool names_functions(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_OTHER ||
         (op->kind == CX_HLO_OP_CUSTOM_CALL &&
          cx_hlo_op_attr(op, CX_HLO_A_CALLED_COMPUTATIONS) != NULL);
}

static void keep_only(cx_hlo_module *m, cx_hlo_func *f)
{
  m->first = f;
  m->last = f;
  m->n_funcs = 1;
  f->next = NULL;
  f->index = 0;
  f->same_bucket = NULL;
  // f stays in its bucket, without the functions that it shares it with.
  for (size_t i = 0; i < m->n_buckets; i++) {
    bool its = false;
    for (cx_hlo_func *g = m->buckets[i]; g != NULL; g = g->same_bucket) {
      its = its || g == f;
    }
    m->buckets[i] = its ? f : NULL;
  }
}

calx_status *cpu_opt_inline(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *entry = cx_hlo_entry(m);
  CALX_TRY(check_size(m, entry));
  inliner in = { .module = m };
  in.copies = cx_calloc((size_t)m->n_values + 1, sizeof(*in.copies));
  if (in.copies == NULL) return cx_out_of_memory();
  calx_status *status = cpu_opt_walk_func(m, entry, visit, &in, changed);
  cx_free(in.copies);
  CALX_TRY(status);
  if (m->first != m->last && !cpu_opt_any(entry, names_functions)) {
    keep_only(m, entry);
    *changed = true;
  }
  return NULL;
}
