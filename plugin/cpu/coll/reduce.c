// coll/reduce: see reduce.h. Loops run over blocks that stay in the L1 cache.
// bf16 and f16 are combined in f32 and rounded once.
#include "coll/reduce.h"

#include <string.h>

#include "base/status.h"
#include "coll/loops.h"
#include "hlo/number.h"
#include "kernel/kernel.h"

enum { BLOCK = 1024, MOST_BYTES = 16 };  // elements; bytes of the widest

static const cpu_coll_loops *loops_get(void)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return &cpu_coll_loops_64;
    case 32: return &cpu_coll_loops_32;
    default: return &cpu_coll_loops_16;
  }
}

// ---- the region ----

// The kind of the operation if the block returns one known operation on its two
// arguments; else OTHER.
static cx_hlo_op_kind kind_of(const cx_hlo_block *b)
{
  const cx_hlo_op *op = b->first;
  if (op == b->last || op->next != b->last ||
      loops_get()->of(op->kind, CX_HLO_I32) == NULL ||
      b->last->n_operands != 1 || b->last->operands[0] != op->results) {
    return CX_HLO_OP_OTHER;
  }
  const cx_hlo_value *x = op->operands[0], *y = op->operands[1];
  const bool both = (x == &b->args[0] && y == &b->args[1]) ||
                    (x == &b->args[1] && y == &b->args[0]);
  return both ? op->kind : CX_HLO_OP_OTHER;
}

cpu_coll_reducer cpu_coll_reducer_of(const cx_hlo_module *m,
                                     const cx_hlo_op *op)
{
  cpu_coll_reducer r = { .module = m,
                         .kind = CX_HLO_OP_ADD,
                         .from = op->operands[0]->type.tensor.elem,
                         .elem = op->results[0].type.tensor.elem };
  if (op->n_regions == 0) return r;
  r.body = &op->regions[0];
  r.kind = kind_of(r.body->first);
  return r;
}

// ---- loops ----

// The sum of a block stays in the L1 cache.
static void reduce_half(const cpu_coll_reducer *r, cpu_coll_loop *f,
                        const void *const *x, uint32_t n_members, int64_t at,
                        int64_t n, void *out)
{
  const cpu_coll_loops *loops = loops_get();
  float sum[BLOCK], next[BLOCK];
  for (int64_t from = 0; from < n; from += BLOCK) {
    const int64_t k = n - from < BLOCK ? n - from : BLOCK;
    loops->widen(r->elem, (const uint16_t *)x[0] + at + from, k, sum);
    for (uint32_t i = 1; i < n_members; i++) {
      loops->widen(r->elem, (const uint16_t *)x[i] + at + from, k, next);
      f(sum, sum, next, k);
    }
    loops->narrow(r->elem, sum, k, (uint16_t *)out + from);
  }
}

static void reduce_plain(const cpu_coll_reducer *r, cpu_coll_loop *f,
                         const void *const *x, uint32_t n_members, int64_t at,
                         int64_t n, void *out)
{
  const size_t size = cx_hlo_elem_bytes(r->elem);
  const int64_t block = BLOCK * 8 / (int64_t)size;
  for (int64_t from = 0; from < n; from += block) {
    const int64_t k = n - from < block ? n - from : block;
    const size_t offset = (size_t)(at + from) * size;
    unsigned char *sum = (unsigned char *)out + (size_t)from * size;
    const unsigned char *a = (const unsigned char *)x[0] + offset;
    if (n_members == 1) {
      memcpy(sum, a, (size_t)k * size);
      continue;
    }
    f(sum, a, (const unsigned char *)x[1] + offset, k);
    for (uint32_t i = 2; i < n_members; i++) {
      f(sum, sum, (const unsigned char *)x[i] + offset, k);
    }
  }
}

// ---- any region ----

// Converts one element to the type of the computation, which may be wider.
static void promote(const cpu_coll_reducer *r, const void *x, void *out)
{
  if (r->from == r->elem) {
    memcpy(out, x, cx_hlo_elem_bytes(r->elem));
  } else if (r->from == CX_HLO_C64) {
    float narrow[2];
    memcpy(narrow, x, sizeof narrow);
    memcpy(out, (double[]){ (double)narrow[0], (double)narrow[1] },
           2 * sizeof(double));
  } else if (cx_hlo_elem_is_float(r->from)) {
    cx_hlo_store_real(r->elem, out, cx_hlo_load_real(r->from, x));
  } else {
    cx_hlo_store_int(r->elem, out, cx_hlo_load_int(r->from, x));
  }
}

static calx_status *interpret(const cpu_coll_reducer *r, const void *const *x,
                              uint32_t n_members, int64_t at, int64_t n,
                              void *out)
{
  const cx_hlo_type type = { r->elem, 0, NULL };
  const size_t size = cx_hlo_elem_bytes(r->elem);
  const size_t from = cx_hlo_elem_bytes(r->from);
  _Alignas(16) unsigned char sum[MOST_BYTES], next[MOST_BYTES], to[MOST_BYTES];
  const cpu_ref_tensor args[2] = { { type, sum }, { type, next } };
  const cpu_ref_tensor result = { type, to };
  for (int64_t i = 0; i < n; i++) {
    const size_t offset = (size_t)(at + i) * from;
    promote(r, (const unsigned char *)x[0] + offset, sum);
    for (uint32_t k = 1; k < n_members; k++) {
      promote(r, (const unsigned char *)x[k] + offset, next);
      CALX_TRY(cpu_ref_region(r->module, r->body, args, &result, &r->context));
      memcpy(sum, to, size);
    }
    memcpy((unsigned char *)out + (size_t)i * size, sum, size);
  }
  return NULL;
}

calx_status *cpu_coll_reduce(const cpu_coll_reducer *r, const void *const *x,
                             uint32_t n_members, int64_t at, int64_t n,
                             void *out)
{
  cpu_coll_loop *f =
      r->from == r->elem ? loops_get()->of(r->kind, r->elem) : NULL;
  if (f == NULL && r->body == NULL) {
    return cx_error(CALX_UNIMPLEMENTED, "cross-replica-sum of %s",
                    cx_hlo_elem_name(r->from));
  }
  if (f == NULL) return interpret(r, x, n_members, at, n, out);
  if (r->elem == CX_HLO_BF16 || r->elem == CX_HLO_F16) {
    reduce_half(r, f, x, n_members, at, n, out);
  } else {
    reduce_plain(r, f, x, n_members, at, n, out);
  }
  return NULL;
}
