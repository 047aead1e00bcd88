// fuzz/program_gen_pick: random choices, what is known of values, and how
// operands are found.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "hlo/number.h"
#include "program_gen_parts.h"

// ---- choices ----

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t gen_random(gen *g)
{
  g->state += 0x9E3779B97F4A7C15u;
  uint64_t z = g->state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

size_t gen_below(gen *g, size_t n)
{
  return n == 0 ? 0 : (size_t)(gen_random(g) % n);
}

int64_t gen_range(gen *g, int64_t low, int64_t high)
{
  return low + (int64_t)gen_below(g, (size_t)(high - low + 1));
}

bool gen_chance(gen *g, int percent)
{
  return (int)gen_below(g, 100) < percent;
}

gen_dims gen_shape(gen *g, size_t max_rank)
{
  static const int64_t sizes[] = {
    1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33
  };
  gen_dims out = { .rank = gen_below(g, max_rank + 1) };
  int64_t elements = 1;
  for (size_t i = 0; i < out.rank; i++) {
    out.d[i] = sizes[gen_below(g, sizeof sizes / sizeof *sizes)];
    if (elements * out.d[i] > GEN_ELEMENTS) out.d[i] = 1;
    elements *= out.d[i];
  }
  if (out.rank > 0 && gen_chance(g, 2)) out.d[gen_below(g, out.rank)] = 0;
  return out;
}

void gen_permutation(gen *g, size_t n, int64_t *out)
{
  for (size_t i = 0; i < n; i++) {
    const size_t at = gen_below(g, i + 1);
    out[i] = out[at];
    out[at] = (int64_t)i;
  }
}

void gen_subset(gen *g, size_t of, size_t n, int64_t *out)
{
  size_t at = 0;
  for (size_t i = 0; i < of; i++) {
    if (gen_below(g, of - i) < n - at) out[at++] = (int64_t)i;
  }
}

// ---- facts ----

double gen_epsilon(cx_hlo_elem e)
{
  switch (e) {
    case CX_HLO_F64: return 0x1p-52;
    case CX_HLO_F32: return 0x1p-23;
    case CX_HLO_F16: return 0x1p-10;
    case CX_HLO_BF16: return 0x1p-7;
    default: return 0;
  }
}

// Below this, numbers may be flushed to zero, or lose digits.
static double smallest(cx_hlo_elem e)
{
  return e == CX_HLO_F64 ? 0x1p-1022 : e == CX_HLO_F16 ? 0x1p-14 : 0x1p-126;
}

static double largest(cx_hlo_elem e)
{
  return e == CX_HLO_F16 ? 8192 : 1e12;
}

static double int_largest(cx_hlo_elem e)
{
  return ldexp(1, (int)cx_hlo_elem_bits(e));
}

gen_facts gen_both(const gen_facts *a, const gen_facts *b)
{
  return (gen_facts){ .magnitude = fmax(a->magnitude, b->magnitude),
                      .error = fmax(a->error, b->error),
                      .finite = a->finite && b->finite,
                      .integral = a->integral && b->integral };
}

bool gen_rounded(cx_hlo_elem e, bool keeps, gen_facts *f)
{
  if (!cx_hlo_elem_is_float(e)) {
    *f = (gen_facts){ fmin(f->magnitude, int_largest(e)), 0, true, true };
    return true;
  }
  const double epsilon = gen_epsilon(e);
  if (keeps && f->integral && f->error == 0 && f->magnitude <= 2 / epsilon) {
    return true;
  }
  f->integral = false;
  f->error += 4 * epsilon * f->magnitude + 4 * smallest(e);
  return f->magnitude < largest(e) && f->error <= 0.2 * f->magnitude + 0.01;
}

bool gen_summed(cx_hlo_elem e, int64_t n, gen_facts *f)
{
  const double count = n < 1 ? 1 : (double)n;
  f->magnitude *= count;
  f->error *= count;
  if (!cx_hlo_elem_is_float(e)) return gen_rounded(e, true, f);
  if (f->integral && f->error == 0 && f->magnitude <= 2 / gen_epsilon(e)) {
    return true;
  }
  f->error += count * gen_epsilon(e) * f->magnitude;
  return gen_rounded(e, false, f);
}

// ---- elements ----

cx_hlo_elem gen_elem(gen *g, unsigned classes)
{
  static const cx_hlo_elem elems[] = {
    CX_HLO_F32, CX_HLO_F32,  CX_HLO_F32,  CX_HLO_F32,  CX_HLO_F32,
    CX_HLO_F64, CX_HLO_F64,  CX_HLO_BF16, CX_HLO_BF16, CX_HLO_F16,
    CX_HLO_I32, CX_HLO_I32,  CX_HLO_I64,  CX_HLO_I8,   CX_HLO_I16,
    CX_HLO_UI8, CX_HLO_UI16, CX_HLO_UI32, CX_HLO_UI64, CX_HLO_I1,
  };
  for (;;) {
    const cx_hlo_elem e = elems[gen_below(g, sizeof elems / sizeof *elems)];
    if ((cx_hlo_elem_class(e) & classes) != 0) return e;
  }
}

static void fill_ints(gen *g, const cx_hlo_type *t, unsigned char *out,
                      gen_facts *f)
{
  const int64_t n = cx_hlo_type_elements(t);
  const size_t size = cx_hlo_elem_bytes(t->elem);
  const bool small = gen_chance(g, 80);
  const bool is_unsigned = cx_hlo_elem_is_unsigned(t->elem);
  for (int64_t i = 0; i < n; i++) {
    const int64_t v =
        small ? gen_range(g, is_unsigned ? 0 : -5, 5) : (int64_t)gen_random(g);
    cx_hlo_store_int(t->elem, out + (size_t)i * size,
                     t->elem == CX_HLO_I1 ? v & 1 : v);
  }
  *f = (gen_facts){ small ? 5 : int_largest(t->elem), 0, true, true };
}

static double real_of(gen *g, bool whole)
{
  if (whole) return (double)gen_range(g, -4, 4);
  return (double)gen_range(g, -2000000, 2000000) / 1e6;
}

void gen_fill(gen *g, const cx_hlo_type *t, unsigned char *out, gen_facts *f)
{
  static const double specials[] = { (double)NAN, (double)INFINITY,
                                     -(double)INFINITY, -0.0 };
  if (!cx_hlo_elem_is_float(t->elem)) {
    fill_ints(g, t, out, f);
    return;
  }
  const int64_t n = cx_hlo_type_elements(t);
  const size_t size = cx_hlo_elem_bytes(t->elem);
  const bool whole = gen_chance(g, 50), special = gen_chance(g, 8);
  for (int64_t i = 0; i < n; i++) {
    const double v = special && gen_chance(g, 20) ? specials[gen_below(g, 4)]
                                                  : real_of(g, whole);
    cx_hlo_store_real(t->elem, out + (size_t)i * size, v);
  }
  *f = (gen_facts){ whole ? 4 : 2.1, 0, !special, whole };
}

gen_value gen_literal(gen *g, const cx_hlo_type *t)
{
  const size_t size =
      (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
  gen_value out = { 0 };
  unsigned char *bytes = cx_alloc(size + 1);
  if (bytes == NULL) {
    cx_hlo_builder_fail(g->b, cx_out_of_memory());
    return out;
  }
  gen_fill(g, t, bytes, &out.f);
  out.v = cx_hlo_constant(g->b, *t, bytes, size);
  cx_free(bytes);
  return out;
}

// ---- picking ----

const cx_hlo_type *gen_type(gen_value v)
{
  return cx_hlo_value_type(v.v);
}

static bool fits(gen_value v, gen_want want)
{
  const cx_hlo_type *t = gen_type(v);
  return (cx_hlo_elem_class(t->elem) & want.classes) != 0 &&
         t->rank >= want.min_rank && (!want.exact || v.f.error == 0) &&
         (!want.finite || v.f.finite) &&
         (!want.full || cx_hlo_type_elements(t) > 0);
}

// The newest are taken more often.
gen_value gen_pick(gen *g, gen_want want)
{
  for (int tries = 0; tries < 20; tries++) {
    size_t i = gen_below(g, g->n);
    if (gen_chance(g, 50)) i = g->n - 1 - gen_below(g, g->n < 5 ? g->n : 5);
    if (fits(g->pool[i], want)) return g->pool[i];
  }
  for (;;) {
    gen_dims dims = gen_shape(g, 4);
    while (dims.rank < want.min_rank) dims.d[dims.rank++] = 1;
    const cx_hlo_type t = { gen_elem(g, want.classes), dims.rank, dims.d };
    if (want.full && cx_hlo_type_elements(&t) == 0) continue;
    const gen_value v = gen_literal(g, &t);
    if (v.v == NULL || fits(v, want)) return v;
  }
}

// What has the same element type is brought into shape: by a broadcast of one
// that fits, else there is a literal.
static bool stretch(gen *g, gen_value x, const cx_hlo_type *t, gen_value *out)
{
  const cx_hlo_type *from = gen_type(x);
  if (from->elem != t->elem || from->rank > t->rank) return false;
  int64_t at[GEN_RANK];
  for (size_t i = 0; i < from->rank; i++) {
    const size_t to = t->rank - from->rank + i;
    if (from->dims[i] != 1 && from->dims[i] != t->dims[to]) return false;
    at[i] = (int64_t)to;
  }
  out->v = cx_hlo_broadcast_in_dim(g->b, x.v, t->dims, t->rank, at);
  out->f = x.f;
  return true;
}

gen_value gen_like(gen *g, const cx_hlo_type *t, bool finite)
{
  gen_value out;
  for (int tries = 0; tries < 12; tries++) {
    const gen_value x = g->pool[gen_below(g, g->n)];
    if (finite && !x.f.finite) continue;
    if (cx_hlo_type_equal(gen_type(x), t)) return x;
    if (tries > 6 && stretch(g, x, t, &out)) return out;
  }
  do {
    out = gen_literal(g, t);
  } while (out.v != NULL && finite && !out.f.finite);
  return out;
}

bool gen_push(gen *g, cx_hlo_value *v, gen_facts f)
{
  if (v == NULL) return false;
  const cx_hlo_type *t = cx_hlo_value_type(v);
  if (g->n == GEN_VALUES || t->rank > GEN_RANK ||
      cx_hlo_type_elements(t) > 8 * GEN_ELEMENTS) {
    return true;
  }
  g->pool[g->n++] = (gen_value){ v, f };
  return true;
}

// ---- regions ----

cx_hlo_block *gen_region_open(gen *g, cx_hlo_op *op, size_t region,
                              const cx_hlo_value *const *like, size_t n,
                              cx_hlo_block **out_outside)
{
  *out_outside = g->b->block;
  if (op == NULL) return NULL;
  cx_hlo_block *block = cx_hlo_block_new(g->b->module, &op->regions[region], n);
  if (block == NULL) {
    cx_hlo_builder_fail(g->b, cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < n; i++) block->args[i].type = like[i]->type;
  g->b->block = block;
  return block;
}

void gen_region_close(gen *g, cx_hlo_value *const *results, size_t n,
                      cx_hlo_block *outside)
{
  cx_hlo_build_end(
      g->b, cx_hlo_build_begin(g->b, CX_HLO_OP_RETURN, results, n, 0, 0));
  g->b->block = outside;
}
