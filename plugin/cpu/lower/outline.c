// lower/outline: copies what is interpreted, and the collectives, to functions
// of a module of their own, and prints that module.
//
// A function holds a copy of one group's operations. The values that they use
// and do not compute become its parameters: first the group's inputs, then what
// its regions capture.
#include <stdio.h>

#include "base/metrics.h"
#include "hlo/ops.h"
#include "hlo/print.h"
#include "lower/lower.h"
#include "opt/edit.h"

#define SMALL 64  // elements that are interpreted without a message

CX_COUNTER(interpreted_counter, "CpuInterpretedOps");

typedef struct outlining {
  cx_hlo_module *module;  // of the functions
  cx_hlo_value **copies;  // by the value's number: what stands for it
  uint32_t *made_in;  // by the value's number: the function that computes it
  uint32_t n_functions;
} outlining;

// ---- parameters ----

// Marks the values that the group's operations and their regions make.
static void mark_made(outlining *o, const cpu_lower_group *g)
{
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (const cx_hlo_op *at = cpu_opt_inner(op);; at = cpu_opt_next(at)) {
      for (uint32_t k = 0; k < at->n_results; k++) {
        o->made_in[at->results[k].number] = o->n_functions;
      }
      for (uint32_t r = 0; r < at->n_regions; r++) {
        const cx_hlo_block *block = at->regions[r].first;
        for (size_t k = 0; block != NULL && k < block->n_args; k++) {
          o->made_in[block->args[k].number] = o->n_functions;
        }
      }
      if (at == op) break;
    }
  }
}

static calx_status *add_input(cpu_lower_state *c, const outlining *o,
                              cpu_lower_group *g, cx_hlo_value *v)
{
  if (o->made_in[v->number] == o->n_functions) return NULL;
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (g->inputs[i] == v) return NULL;
  }
  return cpu_lower_push(c, &g->inputs, &g->n_inputs, &g->inputs_room, v);
}

static calx_status *add_captured(cpu_lower_state *c, const outlining *o,
                                 cpu_lower_group *g)
{
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    for (const cx_hlo_op *at = cpu_opt_inner(op);; at = cpu_opt_next(at)) {
      for (uint32_t k = 0; k < at->n_operands; k++) {
        CALX_TRY(add_input(c, o, g, at->operands[k]));
      }
      if (at == op) break;
    }
  }
  return NULL;
}

// ---- functions ----

static calx_status *types_of(cx_hlo_module *m, cx_hlo_value *const *values,
                             size_t n, cx_hlo_any **out)
{
  cx_hlo_any *types = CX_ARENA_ARRAY(&m->arena, cx_hlo_any, n + 1);
  if (types == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) types[i] = values[i]->type;
  *out = types;
  return NULL;
}

// Links the group's operations to a list of their own, from which they are
// copied. Their order in the block is not needed any more.
static bool copy_ops(const outlining *o, const cpu_lower_group *g,
                     cx_hlo_block *to)
{
  cx_hlo_block *block = g->ops[0]->block;
  cx_hlo_block list = { 0 };
  for (size_t i = 0; i < g->n_ops; i++) {
    g->ops[i]->next = NULL;
    cx_hlo_op_append(&list, g->ops[i]);
  }
  const bool copied = cpu_opt_copy_block(o->module, &list, to, o->copies);
  for (size_t i = 0; i < g->n_ops; i++) g->ops[i]->block = block;
  return copied;
}

static calx_status *fill_function(const outlining *o, const cpu_lower_group *g,
                                  cx_hlo_func *f, cx_hlo_block *block)
{
  cx_hlo_module *m = o->module;
  cx_hlo_any *params = NULL, *results = NULL;
  CALX_TRY(types_of(m, g->inputs, g->n_inputs, &params));
  CALX_TRY(types_of(m, g->outputs, g->n_outputs, &results));
  f->params = params;
  f->n_params = g->n_inputs;
  f->results = results;
  f->n_results = g->n_outputs;
  for (size_t i = 0; i < g->n_inputs; i++) {
    block->args[i].type = params[i];
    o->copies[g->inputs[i]->number] = &block->args[i];
  }
  cx_hlo_op *end = cx_hlo_op_new(m, CX_HLO_OP_FUNC_RETURN, g->n_outputs, 0, 0);
  if (end == NULL || !copy_ops(o, g, block)) return cx_out_of_memory();
  for (size_t i = 0; i < g->n_outputs; i++) {
    end->operands[i] = o->copies[g->outputs[i]->number];
  }
  cx_hlo_op_append(block, end);
  for (size_t i = 0; i < g->n_inputs; i++) {
    o->copies[g->inputs[i]->number] = NULL;
  }
  return NULL;
}

static calx_status *make_function(const outlining *o, cpu_lower_group *g)
{
  // A valid module has a function @main; nobody calls it.
  char name[32] = "main";
  const int n = o->n_functions == 1
                    ? 4
                    : snprintf(name, sizeof name, "group%u", o->n_functions);
  cx_hlo_func *f =
      cx_hlo_func_new(o->module, cx_hlo_str_copy(o->module, name, (size_t)n));
  cx_hlo_block *block =
      f == NULL ? NULL : cx_hlo_block_new(o->module, &f->body, g->n_inputs);
  if (block == NULL) return cx_out_of_memory();
  g->index = f->index;
  return fill_function(o, g, f, block);
}

// ---- messages ----

static bool is_small(const cx_hlo_any *type)
{
  return type->non_tensor == NULL &&
         cx_hlo_type_elements(&type->tensor) <= SMALL;
}

static bool is_slow(const cx_hlo_op *op)
{
  // The function of a custom call is machine code.
  if (op->kind == CX_HLO_OP_REPLICA_ID || op->kind == CX_HLO_OP_PARTITION_ID ||
      op->kind == CX_HLO_OP_CUSTOM_CALL) {
    return false;
  }
  for (size_t i = 0; i < cx_hlo_op_n_types(op); i++) {
    if (!is_small(cx_hlo_op_type(op, i))) return true;
  }
  return false;
}

static void report_interpreted(const cpu_lower_group *g)
{
  cx_counter_add(&interpreted_counter, (int64_t)g->n_ops);
  for (size_t i = 0; i < g->n_ops; i++) {
    const cx_hlo_op *op = g->ops[i];
    if (op->kind == CX_HLO_OP_CONSTANT || op->n_results == 0) continue;
    const char *name = cx_hlo_op_short(op->kind);
    if (is_slow(op)) {
      cx_log_once_per_site(name, "the CPU engine interprets %s of %s: slow",
                           name, cx_hlo_shape(&op->results[0].type.tensor).s);
    }
  }
}

// ---- the module ----

static calx_status *outline_group(cpu_lower_state *c, void *user,
                                  cpu_lower_group *g)
{
  outlining *o = user;
  if (g->kind != CPU_LOWER_GROUP_INTERPRETED &&
      g->kind != CPU_LOWER_GROUP_COLLECTIVE) {
    return NULL;
  }
  o->n_functions++;
  mark_made(o, g);
  CALX_TRY(add_captured(c, o, g));
  CALX_TRY(make_function(o, g));
  if (g->kind == CPU_LOWER_GROUP_INTERPRETED) report_interpreted(g);
  return NULL;
}

calx_status *cpu_lower_outline(cpu_lower_state *c, cpu_lower_schedule *schedule)
{
  const size_t n = c->module->n_values + 1;
  outlining o = { .module = cx_hlo_module_new(),
                  .copies = CX_ARENA_ARRAY(&c->arena, cx_hlo_value *, n),
                  .made_in = CX_ARENA_ARRAY(&c->arena, uint32_t, n) };
  calx_status *status =
      o.module == NULL || o.copies == NULL || o.made_in == NULL
          ? cx_out_of_memory()
          : cpu_lower_each_group(c, schedule, outline_group, &o);
  if (status == NULL && o.n_functions > 0) {
    status = cpu_lower_assemble_outlined(&c->a, o.module);
  }
  cx_hlo_module_free(o.module);
  return status;
}
