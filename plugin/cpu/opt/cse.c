// opt/cse: replaces an operation by an equal one that was computed before.
//
// A table has the operations that dominate the visited one: those before it in
// its block and in the enclosing blocks, as far as regions may use values from
// outside. Regions of while, if and case may; the body of a reduction may not,
// because the jit compiles only closed ones. Constants and iotas are shared
// within a block only: making them in a loop is cheaper than reading them.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "hlo/ops.h"
#include "opt/edit.h"
#include "opt/passes.h"
#include "opt/same.h"

typedef struct known_op {
  cx_hlo_op *op;
  uint64_t hash;
  int32_t next;  // of its bucket; -1: none
} known_op;

typedef struct scope {
  const cx_hlo_block *block;
  size_t first;    // entry of the block
  size_t visible;  // entries from here on may be used in it
} scope;

typedef struct table {
  known_op *entries;
  size_t n, capacity;
  scope *scopes;
  size_t n_scopes, scopes_capacity;
  int32_t *buckets;
  size_t mask;
} table;

// ---- scopes ----

static bool is_inside(const cx_hlo_block *block, const cx_hlo_block *outer)
{
  while (block != outer) {
    const cx_hlo_op *parent = block->region->op;
    if (parent == NULL) return false;
    block = parent->block;
  }
  return true;
}

static void leave_scope(table *t)
{
  const scope *s = &t->scopes[--t->n_scopes];
  while (t->n > s->first) {
    const known_op *e = &t->entries[--t->n];
    t->buckets[e->hash & t->mask] = e->next;
  }
}

// Whether all regions between `block` and `outer` may use values from outside.
static bool is_open(const cx_hlo_block *block, const cx_hlo_block *outer)
{
  while (block != outer) {
    const cx_hlo_op *parent = block->region->op;
    if (!cpu_opt_is_control(parent)) return false;
    block = parent->block;
  }
  return true;
}

static bool enter_scope(table *t, const cx_hlo_block *block)
{
  while (t->n_scopes > 0 &&
         !is_inside(block, t->scopes[t->n_scopes - 1].block)) {
    leave_scope(t);
  }
  const scope *outer = t->n_scopes == 0 ? NULL : &t->scopes[t->n_scopes - 1];
  if (outer != NULL && outer->block == block) return true;
  scope s = { block, t->n, t->n };
  if (outer != NULL && is_open(block, outer->block)) s.visible = outer->visible;
  if (!cx_grow(&t->scopes, &t->scopes_capacity, t->n_scopes + 1, sizeof s)) {
    return false;
  }
  t->scopes[t->n_scopes++] = s;
  return true;
}

// ---- the pass ----

static bool is_shareable(const cx_hlo_op *op)
{
  return op->n_results > 0 && !cpu_opt_is_control(op) &&
         op->kind != CX_HLO_OP_OPTIMIZATION_BARRIER &&
         op->kind != CX_HLO_OP_CUSTOM_CALL && cpu_opt_pure(op);
}

static bool is_local(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_CONSTANT || op->kind == CX_HLO_OP_IOTA;
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  table *t = w->user;
  if (!is_shareable(op)) return NULL;
  if (!enter_scope(t, op->block)) return cx_out_of_memory();
  const scope *s = &t->scopes[t->n_scopes - 1];
  const size_t from = is_local(op) ? s->first : s->visible;
  const uint64_t hash = cpu_opt_hash(op);
  int32_t at = t->buckets[hash & t->mask];
  for (; at >= 0; at = t->entries[at].next) {
    const known_op *e = &t->entries[at];
    if ((size_t)at < from) break;  // the next ones are older
    if (e->hash == hash && cpu_opt_same(e->op, op)) break;
  }
  if (at >= 0 && (size_t)at >= from) {
    cx_hlo_value **out = cpu_opt_values(w, op->n_results);
    if (out == NULL) return NULL;
    for (uint32_t i = 0; i < op->n_results; i++) {
      out[i] = &t->entries[at].op->results[i];
    }
    cpu_opt_replace_all(w, op, out);
    return NULL;
  }
  if (!cx_grow(&t->entries, &t->capacity, t->n + 1, sizeof *t->entries)) {
    return cx_out_of_memory();
  }
  int32_t *bucket = &t->buckets[hash & t->mask];
  t->entries[t->n] = (known_op){ op, hash, *bucket };
  *bucket = (int32_t)t->n++;
  return NULL;
}

calx_status *cpu_opt_cse(cx_hlo_module *m, bool *changed)
{
  table t = { 0 };
  size_t n_buckets = 64;
  while (n_buckets < m->n_values && n_buckets < (1u << 22)) n_buckets *= 2;
  t.buckets = cx_alloc(n_buckets * sizeof *t.buckets);
  if (t.buckets == NULL) return cx_out_of_memory();
  memset(t.buckets, 0xff, n_buckets * sizeof *t.buckets);
  t.mask = n_buckets - 1;
  calx_status *status =
      cpu_opt_walk_func(m, cx_hlo_entry(m), visit, &t, changed);
  cx_free(t.buckets);
  cx_free(t.entries);
  cx_free(t.scopes);
  return status;
}
