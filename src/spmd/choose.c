// spmd/choose: the axes along which an operation is cut.
//
// Each factor gets axes, no axis twice. An axis can serve several factors, and
// several orders of choosing are tried. The one counts that moves the fewest
// bytes; of equal ones the first.
#include "spmd/internal.h"

// Whose axes are given first.
typedef enum choice_order {
  RESULTS_FIRST,
  CONTRACTED_FIRST,
  OPERANDS_FIRST,
  CONTRACTED_WHOLE,  // only of light operations: contracted indices get none
  ORDERS
} choice_order;

// ---- the axes of the factors ----

static bool is_taken(const cx_spmd_axes *taken, size_t n, size_t axis)
{
  for (size_t f = 0; f < n; f++) {
    if (cx_spmd_axes_have(taken[f], axis)) return true;
  }
  return false;
}

// As many of the axes as no other factor has and as split each dimension of the
// factor evenly.
static cx_spmd_axes possible(const cx_spmd_state *s, const cx_spmd_rule *r,
                             const cx_spmd_axes *taken, size_t f,
                             cx_spmd_axes axes)
{
  size_t n = 0;
  while (n < cx_spmd_axes_count(axes) &&
         !is_taken(taken, r->n_factors, cx_spmd_axes_at(axes, n))) {
    n++;
  }
  axes = cx_spmd_axes_first(axes, n);
  for (size_t t = 0; t < r->n_tensors; t++) {
    const cx_hlo_type *type = &r->tensors[t]->type.tensor;
    for (size_t d = 0; d < type->rank; d++) {
      while (r->factors[t][d] == (int32_t)f &&
             !cx_spmd_fits(&s->mesh, type->dims[d], axes)) {
        axes = cx_spmd_axes_first(axes, cx_spmd_axes_count(axes) - 1);
      }
    }
  }
  return axes;
}

// Gives factors without axes those of the tensors in [from, to).
static void take(const cx_spmd_state *s, const cx_spmd_rule *r, size_t from,
                 size_t to, bool reduces, cx_spmd_axes *axes)
{
  for (size_t t = from; t < to; t++) {
    const cx_spmd_sharding *w = &s->want[r->tensors[t]->number];
    for (size_t d = 0; d < w->rank; d++) {
      const int32_t f = r->factors[t][d];
      if (f < 0 || r->reduces[f] != reduces || axes[f] != 0) continue;
      axes[f] = possible(s, r, axes, (size_t)f, w->dims[d]);
    }
  }
}

static bool split_of(cx_spmd_state *s, const cx_spmd_rule *r, size_t t,
                     const cx_spmd_axes *axes, cx_spmd_sharding *out)
{
  const size_t rank = s->want[r->tensors[t]->number].rank;
  if (!cx_spmd_sharding_new(&s->arena, rank, false, out)) return false;
  for (size_t d = 0; d < rank; d++) {
    if (r->factors[t][d] >= 0) out->dims[d] = axes[r->factors[t][d]];
  }
  return true;
}

// ---- what it costs ----

// The bytes that a device receives when a tensor, of which it has `bytes`, is
// split in another way; the steps are those of cx_spmd_reshard(). *bytes is
// what it has then.
static double reshard_cost(const cx_spmd_state *s, const cx_spmd_sharding *from,
                           const cx_spmd_axes *to, double bytes)
{
  double cost = 0;
  for (size_t d = 0; d < from->rank; d++) {
    const size_t n = cx_spmd_axes_common(from->dims[d], to[d]);
    const cx_spmd_axes rest = cx_spmd_axes_from(from->dims[d], n);
    const double parts = (double)cx_spmd_parts(&s->mesh, rest);
    bool moves = false;
    for (size_t e = 0; e < from->rank; e++) {
      moves = moves || (e != d && cx_spmd_axes_overlap(rest, to[e]));
    }
    if (moves) {
      cost += bytes * (parts - 1) / parts;
    } else {
      cost += bytes * (parts - 1);
      bytes *= parts;
    }
  }
  return cost;
}

static double bytes_of(const cx_spmd_state *s, const cx_spmd_rule *r, size_t t,
                       const cx_spmd_axes *dims)
{
  const cx_hlo_type *type = &r->tensors[t]->type.tensor;
  double bytes = (double)cx_hlo_elem_bytes(type->elem);
  for (size_t d = 0; d < type->rank; d++) {
    bytes *= (double)type->dims[d] / (double)cx_spmd_parts(&s->mesh, dims[d]);
  }
  return bytes;
}

// A sum over devices moves its bytes twice, one that leaves parts only once.
static double combine_cost(const cx_spmd_state *s, cx_spmd_axes reduced,
                           const cx_spmd_sharding *part,
                           const cx_spmd_axes *want, double bytes)
{
  const double all = (double)cx_spmd_parts(&s->mesh, reduced);
  bool scatters = false;
  for (size_t d = 0; d < part->rank; d++) {
    scatters = scatters || cx_spmd_axes_overlap(reduced, want[d]);
  }
  return (scatters ? 1 : 2) * bytes * (all - 1) / all;
}

static double cost_of(const cx_spmd_state *s, const cx_spmd_rule *r,
                      size_t n_operands, const cx_spmd_axes *axes,
                      const cx_spmd_sharding *parts)
{
  const cx_spmd_axes reduced = cx_spmd_reduced_axes(r, axes);
  double cost = 0;
  for (size_t t = 0; t < r->n_tensors; t++) {
    const cx_spmd_sharding *want = &s->want[r->tensors[t]->number];
    if (r->tensors[t]->type.non_tensor != NULL) continue;
    if (t < n_operands) {
      cost +=
          reshard_cost(s, want, parts[t].dims, bytes_of(s, r, t, want->dims));
      continue;
    }
    const double bytes = bytes_of(s, r, t, parts[t].dims);
    if (reduced != 0) {
      cost += combine_cost(s, reduced, &parts[t], want->dims, bytes);
    }
    cost += reshard_cost(s, &parts[t], want->dims, bytes);
  }
  return cost;
}

// ---- the choice ----

static cx_spmd_axes *try_order(cx_spmd_state *s, const cx_spmd_rule *r,
                               size_t n_operands, choice_order o,
                               cx_spmd_sharding *parts)
{
  cx_spmd_axes *axes =
      CX_ARENA_ARRAY(&s->arena, cx_spmd_axes, r->n_factors + 1);
  if (axes == NULL) return NULL;
  if (o == CONTRACTED_FIRST) take(s, r, 0, n_operands, true, axes);
  if (o == OPERANDS_FIRST) take(s, r, 0, n_operands, false, axes);
  take(s, r, n_operands, r->n_tensors, false, axes);
  take(s, r, 0, n_operands, false, axes);
  if (o != CONTRACTED_WHOLE) take(s, r, 0, n_operands, true, axes);
  for (size_t t = 0; t < r->n_tensors; t++) {
    if (!split_of(s, r, t, axes, &parts[t])) return NULL;
  }
  return axes;
}

cx_spmd_axes cx_spmd_reduced_axes(const cx_spmd_rule *r,
                                  const cx_spmd_axes *axes)
{
  cx_spmd_axes all = 0;
  for (size_t f = 0; f < r->n_factors; f++) {
    if (r->reduces[f]) all = cx_spmd_axes_join(all, axes[f]);
  }
  return all;
}

const cx_spmd_axes *cx_spmd_choose(cx_spmd_state *s, const cx_spmd_rule *r,
                                   size_t n_operands, cx_spmd_sharding *parts)
{
  double least = 0;
  choice_order best = RESULTS_FIRST;
  for (choice_order o = RESULTS_FIRST; o < ORDERS; o++) {
    if (o == CONTRACTED_WHOLE && !r->is_light) continue;
    const cx_spmd_axes *axes = try_order(s, r, n_operands, o, parts);
    if (axes == NULL) return NULL;
    const double cost = cost_of(s, r, n_operands, axes, parts);
    if (o == RESULTS_FIRST || cost < least) {
      least = cost;
      best = o;
    }
  }
  return try_order(s, r, n_operands, best, parts);
}
