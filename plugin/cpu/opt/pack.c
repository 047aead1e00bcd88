// opt/pack: a matrix that products of a loop multiply with, and that the loop
// does not change, is packed once, before the outermost such loop.
//
// The product of a few rows takes hardly longer than packing its right operand.
// Panels stay in the cache from one iteration to the next. Packing and the
// product become calls of kernels, so this comes after all passes that look at
// products.
#include <string.h>

#include "opt/kernel_call.h"
#include "opt/loops.h"
#include "opt/passes.h"

#define MOST_PACKED 32  // of one loop; more are packed in each iteration

typedef struct packed_operand {
  const cx_hlo_value *from;
  cpu_kernel_desc pack;
  cx_hlo_value *to;
} packed_operand;

typedef struct packed_operands {
  packed_operand items[MOST_PACKED];
  size_t n;
} packed_operands;

// The operation in whose region op is; NULL: the function's.
static const cx_hlo_op *parent_of(const cx_hlo_op *op)
{
  return op->block == NULL || op->block->region == NULL ? NULL
                                                        : op->block->region->op;
}

// Whether `loop` is the outermost one that v comes from outside of.
static bool is_outermost(const cx_hlo_op *loop, const cx_hlo_value *v)
{
  if (cpu_opt_is_inside(loop, v)) return false;
  for (const cx_hlo_op *p = parent_of(loop); p != NULL; p = parent_of(p)) {
    if (cpu_opt_is_loop(p) && !cpu_opt_is_inside(p, v)) return false;
  }
  return true;
}

// The packed operand; NULL: there are too many, or the builder has failed.
static cx_hlo_value *pack(cpu_opt_walk *w, packed_operands *all,
                          cx_hlo_value *from, const cpu_kernel_desc *desc,
                          int64_t elements)
{
  for (size_t i = 0; i < all->n; i++) {
    const packed_operand *x = &all->items[i];
    if (x->from == from && memcmp(&x->pack, desc, sizeof *desc) == 0) {
      return x->to;
    }
  }
  if (all->n == MOST_PACKED) return NULL;
  int64_t *dims = cpu_opt_list(w, 1);
  if (dims == NULL) return NULL;
  dims[0] = elements;
  const cx_hlo_type type = { CX_HLO_F32, 1, dims };
  const cx_hlo_type *const types[1] = { &type };
  const cx_hlo_op *call = cpu_opt_kernel_call(&w->b, desc, &from, 1, types, 1);
  if (call == NULL) return NULL;
  packed_operand *x = &all->items[all->n++];
  *x = (packed_operand){ from, *desc, &call->results[0] };
  return x->to;
}

// Makes the product, which is inside the visited loop, a call.
static void visit_product(cpu_opt_walk *w, packed_operands *all,
                          const cx_hlo_op *loop, cx_hlo_op *dot)
{
  cpu_kernel_desc product, first;
  memset(&product, 0, sizeof product);
  if (!is_outermost(loop, dot->operands[1]) ||
      !cpu_kernel_describe(dot, &product) || !cpu_kernel_dot_packs(&product)) {
    return;
  }
  const int64_t elements = cpu_kernel_dot_pack_of(&product, &first);
  cx_hlo_value *packed = pack(w, all, dot->operands[1], &first, elements);
  if (packed == NULL) return;
  cx_hlo_value *const operands[2] = { dot->operands[0], packed };
  // The call is built here, and the product becomes what it is.
  const cx_hlo_type *const types[1] = { &dot->results[0].type.tensor };
  cx_hlo_op *call = cpu_opt_kernel_call(&w->b, &product, operands, 2, types, 1);
  if (call == NULL) return;
  cpu_opt_unlink(call);
  dot->kind = call->kind;
  dot->operands = call->operands;
  dot->attrs = call->attrs;
  w->changed = true;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  if (!cpu_opt_is_loop(op)) return NULL;
  packed_operands *all = CX_ARENA_NEW(&w->b.module->arena, packed_operands);
  if (all == NULL) return NULL;
  for (cx_hlo_op *inner = cpu_opt_inner(op); inner != op;
       inner = cpu_opt_next(inner)) {
    if (inner->kind == CX_HLO_OP_DOT_GENERAL) {
      visit_product(w, all, op, inner);
    }
  }
  return NULL;
}

calx_status *cpu_opt_pack(cx_hlo_module *m, bool *changed)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  return cpu_opt_any(f, cpu_opt_is_loop)
             ? cpu_opt_walk_func(m, f, visit, NULL, changed)
             : NULL;
}
