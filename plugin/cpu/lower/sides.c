// lower/sides: what is interpreted, as functions of a module of their own.
//
// A function holds a copy of one unit's operations. What they use from outside
// becomes its parameters: first what the unit reads as inputs, then what its
// regions capture.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metrics.h"
#include "hlo/ops.h"
#include "hlo/print.h"
#include "lower/plan.h"
#include "opt/edit.h"

#define SMALL 64  // elements that are not worth a word

CX_COUNTER(interpreted_counter, "CpuInterpretedOps");

typedef struct side {
  cpu_lower_planner *g;
  cx_hlo_module *module;  // of the functions
  cx_hlo_value **map;     // by number: what stands for a value in the copy
  uint32_t *inside;       // by number: the unit in which it is made
  uint32_t unit;
} side;

// ---- what comes from outside ----

typedef calx_status *operand_fn(side *s, cpu_lower_unit *u,
                                cx_hlo_value *operand);

static calx_status *each_operand(side *s, cpu_lower_unit *u, operand_fn *fn)
{
  for (size_t i = 0; i < u->n_ops; i++) {
    cx_hlo_op *op = u->ops[i];
    for (cx_hlo_op *at = cpu_opt_inner(op);; at = cpu_opt_next(at)) {
      for (uint32_t k = 0; k < at->n_operands; k++) {
        CALX_TRY(fn(s, u, at->operands[k]));
      }
      if (at == op) break;
    }
  }
  return NULL;
}

static void mark_inside(side *s, const cpu_lower_unit *u)
{
  for (size_t i = 0; i < u->n_ops; i++) {
    cx_hlo_op *op = u->ops[i];
    for (cx_hlo_op *at = cpu_opt_inner(op);; at = cpu_opt_next(at)) {
      for (uint32_t k = 0; k < at->n_results; k++) {
        s->inside[at->results[k].number] = s->unit;
      }
      for (uint32_t r = 0; r < at->n_regions; r++) {
        const cx_hlo_block *block = at->regions[r].first;
        for (size_t k = 0; block != NULL && k < block->n_args; k++) {
          s->inside[block->args[k].number] = s->unit;
        }
      }
      if (at == op) break;
    }
  }
}

static calx_status *note_outside(side *s, cpu_lower_unit *u,
                                 cx_hlo_value *operand)
{
  if (s->inside[operand->number] == s->unit) return NULL;
  for (size_t i = 0; i < u->n_inputs; i++) {
    if (u->inputs[i] == operand) return NULL;
  }
  return cpu_lower_push(s->g->l, &u->inputs, &u->n_inputs, &u->inputs_room,
                        operand)
             ? NULL
             : cx_out_of_memory();
}

// ---- the functions ----

static calx_status *params_of(side *s, cpu_lower_unit *u, cx_hlo_func *f,
                              cx_hlo_block *block)
{
  cx_hlo_any *types =
      CX_ARENA_ARRAY(&s->module->arena, cx_hlo_any, u->n_inputs + 1);
  if (types == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < u->n_inputs; i++) {
    types[i] = u->inputs[i]->type;
    block->args[i].type = types[i];
    s->map[u->inputs[i]->number] = &block->args[i];
  }
  f->params = types;
  f->n_params = u->n_inputs;
  return NULL;
}

// Puts the unit's operations into a list of their own, to be copied from: the
// order in their block is of no more use.
static bool copy_ops(side *s, cpu_lower_unit *u, cx_hlo_block *to)
{
  cx_hlo_block *block = u->ops[0]->block;
  cx_hlo_block list = { 0 };
  for (size_t i = 0; i < u->n_ops; i++) {
    cx_hlo_op *op = u->ops[i];
    op->previous = list.last;
    op->next = NULL;
    op->block = &list;
    if (list.last == NULL) {
      list.first = op;
    } else {
      list.last->next = op;
    }
    list.last = op;
  }
  bool copied = cpu_opt_copy_block(s->module, &list, to, s->map);
  for (size_t i = 0; i < u->n_ops; i++) u->ops[i]->block = block;
  return copied;
}

static calx_status *results_of(side *s, const cpu_lower_unit *u, cx_hlo_func *f,
                               cx_hlo_block *block)
{
  cx_hlo_any *types =
      CX_ARENA_ARRAY(&s->module->arena, cx_hlo_any, u->n_outputs + 1);
  cx_hlo_op *end =
      cx_hlo_op_new(s->module, CX_HLO_OP_FUNC_RETURN, u->n_outputs, 0, 0);
  if (types == NULL || end == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < u->n_outputs; i++) {
    types[i] = u->outputs[i]->type;
    end->operands[i] = s->map[u->outputs[i]->number];
  }
  f->results = types;
  f->n_results = u->n_outputs;
  cx_hlo_op_append(block, end);
  return NULL;
}

static calx_status *make_function(side *s, cpu_lower_unit *u)
{
  // A valid module has an entry; nobody calls it.
  char name[32] = "main";
  int n = s->unit == 1 ? 4 : snprintf(name, sizeof name, "unit%u", s->unit);
  cx_hlo_func *f =
      cx_hlo_func_new(s->module, cx_hlo_str_copy(s->module, name, (size_t)n));
  cx_hlo_block *block =
      f == NULL ? NULL : cx_hlo_block_new(s->module, &f->body, u->n_inputs);
  if (block == NULL) return cx_out_of_memory();
  CALX_TRY(params_of(s, u, f, block));
  if (!copy_ops(s, u, block)) return cx_out_of_memory();
  u->index = f->index;
  CALX_TRY(results_of(s, u, f, block));
  for (size_t i = 0; i < u->n_inputs; i++) s->map[u->inputs[i]->number] = NULL;
  return NULL;
}

static bool is_small(const cx_hlo_value *v)
{
  return v->type.odd == NULL && cx_hlo_type_elements(&v->type.tensor) <= SMALL;
}

// Which device it is needs no compiling, nor do a few numbers.
static bool is_slow(const cx_hlo_op *op)
{
  if (op->kind == CX_HLO_OP_REPLICA_ID || op->kind == CX_HLO_OP_PARTITION_ID) {
    return false;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!is_small(op->operands[i])) return true;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (!is_small(&op->results[i])) return true;
  }
  return false;
}

static void tell(const cpu_lower_unit *u)
{
  cx_counter_add(&interpreted_counter, (int64_t)u->n_ops);
  for (size_t i = 0; i < u->n_ops; i++) {
    const cx_hlo_op *op = u->ops[i];
    if (op->kind == CX_HLO_OP_CONSTANT || op->n_results == 0) continue;
    const char *name = cx_hlo_op_short(op->kind);
    if (is_slow(op)) {
      cx_log_once_per_site(name, "the CPU engine interprets %s of %s: slow",
                           name, cx_hlo_shape(&op->results[0].type.tensor).s);
    }
  }
}

static calx_status *fill(side *s)
{
  for (size_t i = 0; i < s->g->n_sides; i++) {
    cpu_lower_unit *u = s->g->sides[i];
    s->unit = (uint32_t)i + 1;
    mark_inside(s, u);
    CALX_TRY(each_operand(s, u, note_outside));
    CALX_TRY(make_function(s, u));
    if (u->kind == CPU_LOWER_UNIT_INTERPRET) tell(u);
  }
  return NULL;
}

calx_status *cpu_lower_sides(cpu_lower_planner *g)
{
  if (g->n_sides == 0) return NULL;
  size_t n = g->l->module->n_values + 1;
  side s = { .g = g, .module = cx_hlo_module_new() };
  s.map = CX_ARENA_ARRAY(&g->l->arena, cx_hlo_value *, n);
  s.inside = CX_ARENA_ARRAY(&g->l->arena, uint32_t, n);
  calx_status *status = s.module == NULL || s.map == NULL || s.inside == NULL
                            ? cx_out_of_memory()
                            : fill(&s);
  if (status == NULL) {
    cx_text text = { 0 };
    cx_hlo_print_with(s.module, &(cx_hlo_print_options){ .no_locations = true },
                      &text);
    cpu_run_program *p = g->l->a.program;
    p->side_size = text.size;
    p->side_text = cx_text_take(&text);
    if (p->side_text == NULL) status = cx_out_of_memory();
  }
  cx_hlo_module_free(s.module);
  return status;
}
