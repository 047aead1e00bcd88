// fuzz/program_gen_shapes: operations that move elements.
#include <math.h>
#include <string.h>

#include "program_gen_parts.h"

static gen_value any(gen *g, size_t min_rank)
{
  return gen_pick(g, (gen_want){ .classes = GEN_ANY, .min_rank = min_rank });
}

static gen_dims dims_of(gen_value v)
{
  const cx_hlo_type *t = gen_type(v);
  gen_dims out = { .rank = t->rank };
  if (t->rank != 0) memcpy(out.d, t->dims, t->rank * sizeof *out.d);
  return out;
}

static void drop_dim(gen_dims *s, size_t at)
{
  s->rank--;
  memmove(s->d + at, s->d + at + 1, (s->rank - at) * sizeof *s->d);
}

static void add_dim(gen_dims *s, size_t at, int64_t size)
{
  memmove(s->d + at + 1, s->d + at, (s->rank - at) * sizeof *s->d);
  s->d[at] = size;
  s->rank++;
}

// Two dimensions become one, one becomes two, a 1 comes or goes.
bool gen_reshape_one(gen *g)
{
  gen_value x = any(g, 0);
  gen_dims s = dims_of(x);
  const size_t at = gen_below(g, s.rank);
  if (s.rank > 1 && at + 1 < s.rank && gen_chance(g, 50)) {
    s.d[at] *= s.d[at + 1];
    drop_dim(&s, at + 1);
  } else if (s.rank > 0 && s.rank < 5 && s.d[at] % 2 == 0) {
    s.d[at] /= 2;
    add_dim(&s, gen_below(g, 2) + at, 2);
  } else if (s.rank > 0 && s.d[at] == 1) {
    drop_dim(&s, at);
  } else if (s.rank < 5) {
    add_dim(&s, gen_below(g, s.rank + 1), 1);
  } else {
    return false;
  }
  return gen_push(g, cx_hlo_reshape(g->b, x.v, s.d, s.rank), x.f);
}

bool gen_broadcast(gen *g)
{
  gen_value x = any(g, 0);
  const gen_dims s = dims_of(x);
  if (s.rank > 3) return false;
  const size_t rank = s.rank + gen_below(g, 3);
  gen_dims to = gen_shape(g, 0);
  int64_t at[GEN_RANK], elements = 1;
  gen_subset(g, rank, s.rank, at);
  to.rank = rank;
  for (size_t i = 0; i < rank; i++) to.d[i] = gen_range(g, 1, 5);
  for (size_t i = 0; i < s.rank; i++) {
    if (s.d[i] != 1 || gen_chance(g, 40)) to.d[at[i]] = s.d[i];
  }
  for (size_t i = 0; i < rank; i++) elements *= to.d[i];
  if (elements > 4 * GEN_ELEMENTS) return false;
  return gen_push(g, cx_hlo_broadcast_in_dim(g->b, x.v, to.d, rank, at), x.f);
}

bool gen_transpose_one(gen *g)
{
  gen_value x = any(g, 2);
  int64_t permutation[GEN_RANK];
  gen_permutation(g, gen_type(x)->rank, permutation);
  return gen_push(g, cx_hlo_transpose(g->b, x.v, permutation), x.f);
}

bool gen_slice_one(gen *g)
{
  gen_value x = any(g, 1);
  const gen_dims s = dims_of(x);
  int64_t start[GEN_RANK], limit[GEN_RANK], stride[GEN_RANK];
  for (size_t i = 0; i < s.rank; i++) {
    start[i] = gen_chance(g, 50) ? 0 : gen_range(g, 0, s.d[i]);
    limit[i] = gen_chance(g, 50) ? s.d[i] : gen_range(g, start[i], s.d[i]);
    stride[i] = gen_chance(g, 70) ? 1 : gen_range(g, 1, 3);
  }
  return gen_push(g, cx_hlo_slice(g->b, x.v, start, limit, stride), x.f);
}

bool gen_pad_one(gen *g)
{
  gen_value x = any(g, 1);
  const gen_dims s = dims_of(x);
  const cx_hlo_type scalar = { gen_type(x)->elem, 0, NULL };
  gen_value with = gen_like(g, &scalar, false);
  int64_t low[GEN_RANK], high[GEN_RANK], interior[GEN_RANK];
  for (size_t i = 0; i < s.rank; i++) {
    interior[i] = gen_chance(g, 70) ? 0 : gen_range(g, 0, 2);
    low[i] = gen_range(g, -1, 2);
    high[i] = gen_range(g, -1, 2);
    const int64_t inside =
        s.d[i] == 0 ? 0 : s.d[i] + (s.d[i] - 1) * interior[i];
    if (low[i] + inside + high[i] < 0) return false;
  }
  return gen_push(g, cx_hlo_pad(g->b, x.v, with.v, low, high, interior),
                  gen_both(&x.f, &with.f));
}

bool gen_concat(gen *g)
{
  gen_value x = any(g, 1);
  const size_t n = 1 + gen_below(g, 3);
  const size_t at = gen_below(g, gen_type(x)->rank);
  cx_hlo_value *xs[3] = { x.v };
  gen_facts f = x.f;
  for (size_t i = 1; i < n; i++) {
    gen_dims s = dims_of(x);
    if (gen_chance(g, 50)) s.d[at] = gen_range(g, 0, 4);
    const cx_hlo_type t = { gen_type(x)->elem, s.rank, s.d };
    const gen_value y = gen_like(g, &t, false);
    xs[i] = y.v;
    f = gen_both(&f, &y.f);
  }
  return gen_push(g, cx_hlo_concatenate(g->b, xs, n, (int64_t)at), f);
}

bool gen_reverse_one(gen *g)
{
  gen_value x = any(g, 1);
  int64_t dims[GEN_RANK];
  const size_t n = gen_below(g, gen_type(x)->rank + 1);
  gen_subset(g, gen_type(x)->rank, n, dims);
  return gen_push(g, cx_hlo_reverse(g->b, x.v, dims, n), x.f);
}

bool gen_iota_one(gen *g)
{
  gen_dims s = gen_shape(g, 3);
  if (s.rank == 0) return false;
  const cx_hlo_type t = { gen_elem(g, GEN_NUMBER), s.rank, s.d };
  const int64_t d = (int64_t)gen_below(g, s.rank);
  return gen_push(g, cx_hlo_iota(g->b, t, d),
                  (gen_facts){ (double)s.d[d], 0, true, true });
}

// One scalar for each dimension, some outside of the operand.
static void make_starts(gen *g, size_t rank, cx_hlo_value **out)
{
  static const cx_hlo_elem elems[] = { CX_HLO_I32, CX_HLO_I64, CX_HLO_UI8 };
  const cx_hlo_type t = { elems[gen_below(g, g->portable ? 2 : 3)], 0, NULL };
  for (size_t i = 0; i < rank; i++) out[i] = gen_like(g, &t, false).v;
}

bool gen_dynamic_slice(gen *g)
{
  gen_value x = any(g, 1);
  const gen_dims s = dims_of(x);
  cx_hlo_value *starts[GEN_RANK];
  int64_t sizes[GEN_RANK];
  make_starts(g, s.rank, starts);
  for (size_t i = 0; i < s.rank; i++) sizes[i] = gen_range(g, 0, s.d[i]);
  return gen_push(g, cx_hlo_dynamic_slice(g->b, x.v, starts, sizes), x.f);
}

bool gen_dynamic_update(gen *g)
{
  gen_value x = any(g, 1);
  gen_dims s = dims_of(x);
  cx_hlo_value *starts[GEN_RANK];
  make_starts(g, s.rank, starts);
  for (size_t i = 0; i < s.rank; i++) s.d[i] = gen_range(g, 0, s.d[i]);
  const cx_hlo_type t = { gen_type(x)->elem, s.rank, s.d };
  const gen_value u = gen_like(g, &t, false);
  return gen_push(g, cx_hlo_dynamic_update_slice(g->b, x.v, u.v, starts),
                  gen_both(&x.f, &u.f));
}
