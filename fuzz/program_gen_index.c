// fuzz/program_gen_index: gather, scatter, sort.
#include <string.h>

#include "base/status.h"
#include "program_gen_parts.h"

// How indices select windows of an operand, by meaning: for gather and scatter
// alike.
typedef struct windows {
  int64_t sizes[GEN_RANK];  // of the window, one for each dimension
  int64_t map[GEN_RANK];    // the dimensions that an index vector is of
  size_t n_map;
  int64_t collapsed[GEN_RANK];  // dimensions of size 1 that are left out
  size_t n_collapsed;
  int64_t offset[GEN_RANK];  // where the others stand in the windows' tensor
  size_t n_offset;
  int64_t indices[GEN_RANK];  // sizes of the indices' tensor
  size_t indices_rank;
  int64_t vector_dim;
  int64_t dims[GEN_RANK];  // of all windows in one tensor
  size_t rank;
  int64_t count;  // windows
} windows;

static bool has(const int64_t *list, size_t n, int64_t v)
{
  for (size_t i = 0; i < n; i++) {
    if (list[i] == v) return true;
  }
  return false;
}

// `thin`: of size 1 in the indexed dimensions, so that none is half outside.
static bool choose_windows(gen *g, const cx_hlo_type *t, bool thin, windows *w)
{
  *w = (windows){ .count = 1 };
  if (t->rank > 3) return false;
  w->n_map = 1 + gen_below(g, t->rank < 2 ? t->rank : 2);
  gen_subset(g, t->rank, w->n_map, w->map);
  if (w->n_map == 2 && gen_chance(g, 30)) {
    const int64_t first = w->map[0];
    w->map[0] = w->map[1];
    w->map[1] = first;
  }
  for (size_t i = 0; i < t->rank; i++) {
    const bool indexed = has(w->map, w->n_map, (int64_t)i);
    w->sizes[i] = indexed && (thin || gen_chance(g, 70)) ? 1
                  : gen_chance(g, 60)                    ? t->dims[i]
                                      : gen_range(g, 1, t->dims[i]);
    if (w->sizes[i] == 1 && gen_chance(g, 60)) {
      w->collapsed[w->n_collapsed++] = (int64_t)i;
    }
  }
  int64_t batch[2];
  const size_t n_batch = gen_below(g, 3);
  for (size_t i = 0; i < n_batch; i++) {
    batch[i] = gen_range(g, 1, 5);
    w->count *= batch[i];
  }
  // The vector's dimension may be left out where it would be 1.
  w->vector_dim = (int64_t)gen_below(g, n_batch + 1);
  const bool implicit = w->n_map == 1 && gen_chance(g, 50);
  if (implicit) w->vector_dim = (int64_t)n_batch;
  for (size_t i = 0, from = 0; i < n_batch + (implicit ? 0 : 1); i++) {
    const bool vector = !implicit && (int64_t)i == w->vector_dim;
    w->indices[i] = vector ? (int64_t)w->n_map : batch[from++];
    w->indices_rank++;
  }
  w->n_offset = t->rank - w->n_collapsed;
  w->rank = w->n_offset + n_batch;
  gen_subset(g, w->rank, w->n_offset, w->offset);
  size_t from_batch = 0, from_window = 0;
  for (size_t i = 0; i < w->rank; i++) {
    if (!has(w->offset, w->n_offset, (int64_t)i)) {
      w->dims[i] = batch[from_batch++];
      continue;
    }
    while (has(w->collapsed, w->n_collapsed, (int64_t)from_window)) {
      from_window++;
    }
    w->dims[i] = w->sizes[from_window++];
  }
  return true;
}

static cx_hlo_value *choose_indices(gen *g, const windows *w)
{
  const cx_hlo_type t = { gen_chance(g, 70) ? CX_HLO_I32 : CX_HLO_I64,
                          w->indices_rank, w->indices };
  return gen_like(g, &t, false).v;
}

bool gen_gather_one(gen *g)
{
  gen_value x = gen_pick(
      g, (gen_want){ .classes = GEN_ANY, .min_rank = 1, .full = true });
  const cx_hlo_type *t = gen_type(x);
  windows w;
  if (!choose_windows(g, t, false, &w)) return false;
  cx_hlo_value *operands[2] = { x.v, choose_indices(g, &w) };
  const cx_hlo_gather_numbers numbers = { .offset = { w.offset, w.n_offset },
                                          .collapsed = { w.collapsed,
                                                         w.n_collapsed },
                                          .index_map = { w.map, w.n_map },
                                          .index_vector_dim = w.vector_dim };
  cx_hlo_op *op = cx_hlo_build_begin(g->b, CX_HLO_OP_GATHER, operands, 2, 1, 0);
  if (op == NULL) return false;
  cx_hlo_build_attr(
      g->b, op, CX_HLO_A_GATHER_DIMENSION_NUMBERS,
      cx_hlo_attr_struct(g->b->module, CX_HLO_STRUCT_GATHER, &numbers));
  cx_hlo_build_ints(g->b, op, CX_HLO_A_SLICE_SIZES, w.sizes, t->rank);
  return gen_push(g, cx_hlo_build_end(g->b, op), x.f);
}

static void fold(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                 cx_hlo_value **out)
{
  out[0] = cx_hlo_binary(b, *(cx_hlo_op_kind *)user, args[0], args[1]);
}

bool gen_scatter_one(gen *g)
{
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ADD, CX_HLO_OP_ADD,
                                          CX_HLO_OP_MAXIMUM,
                                          CX_HLO_OP_MINIMUM };
  gen_value x = gen_pick(
      g, (gen_want){ .classes = GEN_NUMBER, .min_rank = 1, .full = true });
  const cx_hlo_type *t = gen_type(x);
  windows w;
  if (!choose_windows(g, t, g->portable, &w)) return false;
  const cx_hlo_type of = { t->elem, w.rank, w.dims };
  gen_value u = gen_like(g, &of, false);
  cx_hlo_op_kind kind = kinds[gen_below(g, 4)];
  gen_facts f = gen_both(&x.f, &u.f);
  if (kind == CX_HLO_OP_ADD && !gen_summed(t->elem, w.count + 1, &f)) {
    return false;
  }
  cx_hlo_value *operands[3] = { x.v, choose_indices(g, &w), u.v };
  const cx_hlo_scatter_numbers numbers = { .window = { w.offset, w.n_offset },
                                           .inserted = { w.collapsed,
                                                         w.n_collapsed },
                                           .index_map = { w.map, w.n_map },
                                           .index_vector_dim = w.vector_dim };
  cx_hlo_op *op =
      cx_hlo_build_begin(g->b, CX_HLO_OP_SCATTER, operands, 3, 1, 1);
  if (op == NULL) return false;
  cx_hlo_build_attr(
      g->b, op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS,
      cx_hlo_attr_struct(g->b->module, CX_HLO_STRUCT_SCATTER, &numbers));
  const cx_hlo_elem args[2] = { t->elem, t->elem };
  cx_hlo_build_body(g->b, op, 0, args, 2, 1, fold, &kind);
  return gen_push(g, cx_hlo_build_end(g->b, op), f);
}

// ---- sort ----

static void before(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                   cx_hlo_value **out)
{
  out[0] = cx_hlo_compare(b, *(cx_hlo_direction *)user, args[0], args[1]);
}

// By the first operand; another of the same size is moved along.
bool gen_sort_one(gen *g)
{
  gen_value xs[2];
  xs[0] = gen_pick(g, (gen_want){ .classes = GEN_NUMBER,
                                  .min_rank = 1,
                                  .exact = true,
                                  .finite = true });
  const cx_hlo_type *t = gen_type(xs[0]);
  const size_t n = 1 + gen_below(g, 2);
  cx_hlo_type other = *t;
  other.elem = gen_elem(g, GEN_ANY);
  if (n == 2) xs[1] = gen_like(g, &other, false);
  cx_hlo_value *operands[2] = { xs[0].v, n == 2 ? xs[1].v : NULL };
  cx_hlo_op *op = cx_hlo_build_begin(g->b, CX_HLO_OP_SORT, operands, n, n, 1);
  if (op == NULL) return false;
  cx_hlo_build_int(g->b, op, CX_HLO_A_DIMENSION,
                   (int64_t)gen_below(g, t->rank));
  cx_hlo_build_attr(g->b, op, CX_HLO_A_IS_STABLE,
                    cx_hlo_attr_bool(g->b->module, true));
  cx_hlo_elem args[4];
  for (size_t i = 0; i < n; i++) {
    args[2 * i] = args[2 * i + 1] = gen_type(xs[i])->elem;
  }
  cx_hlo_direction d = gen_chance(g, 50) ? CX_HLO_LT : CX_HLO_GT;
  cx_hlo_build_body(g->b, op, 0, args, 2 * n, 1, before, &d);
  if (cx_hlo_build_end(g->b, op) == NULL) return false;
  for (size_t i = 0; i < n; i++) gen_push(g, &op->results[i], xs[i].f);
  return true;
}
