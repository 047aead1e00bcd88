// fuzz/program_gen_loops: reductions, windows, products.
#include <math.h>
#include <string.h>

#include "program_gen_parts.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

// ---- reductions ----

typedef struct fold {
  cx_hlo_op_kind kind;
  cx_hlo_value *init;
} fold;

// What to reduce elements of x with, and its start (`neutral`: one that changes
// nothing); changes what is known for n elements. The kind is OTHER where it
// would be too large.
static fold choose_fold(gen *g, gen_value x, int64_t n, bool neutral,
                        gen_facts *f)
{
  const cx_hlo_elem e = gen_type(x)->elem;
  const cx_hlo_type scalar = { e, 0, NULL };
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ADD, CX_HLO_OP_ADD,
                                          CX_HLO_OP_MAXIMUM,
                                          CX_HLO_OP_MINIMUM };
  static const cx_hlo_op_kind more[] = { CX_HLO_OP_MULTIPLY, CX_HLO_OP_AND,
                                         CX_HLO_OP_OR, CX_HLO_OP_XOR };
  fold out = { kinds[gen_below(g, COUNT(kinds))], NULL };
  const bool flags = e == CX_HLO_I1;
  if (flags) out.kind = more[1 + gen_below(g, 2)];
  if (!flags && !cx_hlo_elem_is_float(e) && gen_chance(g, 30)) {
    out.kind = more[gen_below(g, COUNT(more))];
  }
  switch (out.kind) {
    case CX_HLO_OP_ADD:
      out.init =
          cx_hlo_splat(g->b, scalar, neutral || gen_chance(g, 80) ? 0 : 1);
      f->magnitude += 1;
      if (!gen_summed(e, n + 1, f)) out.kind = CX_HLO_OP_OTHER;
      break;
    case CX_HLO_OP_MULTIPLY:
      out.init = cx_hlo_splat_int(g->b, scalar, 1);
      f->magnitude = 0x1p64;
      gen_rounded(e, true, f);
      break;
    // The start is among the results where there is nothing to reduce.
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM:
      f->finite = f->finite && n > 0;
      out.init = out.kind == CX_HLO_OP_MAXIMUM ? cx_hlo_lowest(g->b, e)
                                               : cx_hlo_highest(g->b, e);
      break;
    case CX_HLO_OP_AND:
      out.init = flags ? cx_hlo_splat_int(g->b, scalar, 1)
                       : cx_hlo_splat_int(g->b, scalar, -1);
      break;
    default: out.init = cx_hlo_splat_int(g->b, scalar, 0); break;
  }
  if (!cx_hlo_elem_is_float(e)) {
    f->magnitude = ldexp(1, (int)cx_hlo_elem_bits(e));
  }
  return out;
}

bool gen_reduce_one(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_ANY });
  const cx_hlo_type *t = gen_type(x);
  int64_t dims[GEN_RANK], n = 1;
  const size_t n_dims = gen_below(g, t->rank + 1);
  gen_subset(g, t->rank, n_dims, dims);
  for (size_t i = 0; i < n_dims; i++) n *= t->dims[dims[i]];
  gen_facts f = x.f;
  const fold with = choose_fold(g, x, n, g->portable, &f);
  if (with.kind == CX_HLO_OP_OTHER) return false;
  return gen_push(
      g, cx_hlo_reduce_with(g->b, with.kind, x.v, with.init, dims, n_dims), f);
}

// The larger value and its place, the first of equals: (a, i), (b, j).
static void larger(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                   cx_hlo_value **out)
{
  (void)user;
  cx_hlo_value *more = cx_hlo_compare(b, CX_HLO_GT, args[0], args[2]);
  cx_hlo_value *same = cx_hlo_compare(b, CX_HLO_EQ, args[0], args[2]);
  cx_hlo_value *before = cx_hlo_compare(b, CX_HLO_LT, args[1], args[3]);
  cx_hlo_value *first = cx_hlo_binary(b, CX_HLO_OP_AND, same, before);
  cx_hlo_value *take = cx_hlo_binary(b, CX_HLO_OP_OR, more, first);
  out[0] = cx_hlo_select(b, more, args[0], args[2]);
  out[1] = cx_hlo_select(b, take, args[1], args[3]);
}

bool gen_reduce_pair(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_NUMBER,
                                        .min_rank = 1,
                                        .exact = true,
                                        .finite = true,
                                        .full = true });
  const cx_hlo_type *t = gen_type(x);
  const int64_t d = (int64_t)gen_below(g, t->rank);
  const cx_hlo_type places = { CX_HLO_I32, t->rank, t->dims };
  const cx_hlo_type scalar = { CX_HLO_I32, 0, NULL };
  cx_hlo_value *in[2] = { x.v, cx_hlo_iota(g->b, places, d) };
  cx_hlo_value *init[2] = { cx_hlo_lowest(g->b, t->elem),
                            cx_hlo_splat_int(g->b, scalar, 0) };
  cx_hlo_value *out[2] = { NULL, NULL };
  cx_hlo_reduce(g->b, 2, in, init, &d, 1, larger, NULL, out);
  return gen_push(g, out[0], x.f) &&
         gen_push(g, out[1], (gen_facts){ (double)t->dims[d], 0, true, true });
}

typedef struct window {
  int64_t size[GEN_RANK], stride[GEN_RANK], base[GEN_RANK], dilation[GEN_RANK];
  int64_t padding[2 * GEN_RANK];
  int64_t elements;
} window;

static window choose_window(gen *g, const cx_hlo_type *t, bool plain)
{
  window w = { .elements = 1 };
  for (size_t i = 0; i < t->rank; i++) {
    const bool on = gen_chance(g, 60);
    w.size[i] = on ? gen_range(g, 1, 4) : 1;
    w.stride[i] = on ? gen_range(g, 1, 3) : 1;
    w.base[i] = on && !plain && gen_chance(g, 20) ? 2 : 1;
    w.dilation[i] = on && !plain && gen_chance(g, 20) ? 2 : 1;
    // Less than the window: each holds at least one element, or part of it.
    const int64_t most = w.size[i] - 1;
    w.padding[2 * i] = on ? gen_range(g, 0, most) : 0;
    w.padding[2 * i + 1] = on ? gen_range(g, 0, most) : 0;
    w.elements *= w.size[i];
  }
  return w;
}

static bool covered(const cx_hlo_type *t, const window *w)
{
  for (size_t i = 0; i < t->rank; i++) {
    const int64_t n = (t->dims[i] - 1) * w->base[i] + 1 + w->padding[2 * i] +
                      w->padding[2 * i + 1];
    if (t->dims[i] == 0 || n < (w->size[i] - 1) * w->dilation[i] + 1) {
      return false;
    }
  }
  return true;
}

bool gen_window(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_NUMBER, .min_rank = 1 });
  const cx_hlo_type *t = gen_type(x);
  const window w = choose_window(g, t, false);
  if (!covered(t, &w)) return false;
  gen_facts f = x.f;
  const fold with = choose_fold(g, x, w.elements, true, &f);
  if (with.kind == CX_HLO_OP_OTHER) return false;
  // With dilated operands a window may hold none.
  f.finite = f.finite && with.kind == CX_HLO_OP_ADD;
  const cx_hlo_window of = { w.size, w.stride, w.base, w.dilation, w.padding };
  return gen_push(
      g, cx_hlo_reduce_window_with(g->b, with.kind, x.v, with.init, &of), f);
}

static void at_least(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                     cx_hlo_value **out)
{
  (void)user;
  out[0] = cx_hlo_compare(b, CX_HLO_GE, args[0], args[1]);
}

static void sum(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                cx_hlo_value **out)
{
  (void)user;
  out[0] = cx_hlo_binary(b, CX_HLO_OP_ADD, args[0], args[1]);
}

bool gen_select_scatter(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_NUMBER,
                                        .min_rank = 1,
                                        .exact = true,
                                        .finite = true,
                                        .full = true });
  const cx_hlo_type *t = gen_type(x);
  const window w = choose_window(g, t, true);
  if (!covered(t, &w)) return false;
  if (g->portable && (x.f.integral || x.v->op != NULL)) return false;
  int64_t dims[GEN_RANK];
  for (size_t i = 0; i < t->rank; i++) {
    dims[i] =
        (t->dims[i] + w.padding[2 * i] + w.padding[2 * i + 1] - w.size[i]) /
            w.stride[i] +
        1;
  }
  const cx_hlo_type of = { t->elem, t->rank, dims };
  const cx_hlo_type scalar = { t->elem, 0, NULL };
  gen_value source = gen_like(g, &of, true);
  gen_facts f = source.f;
  if (!gen_summed(t->elem, w.elements + 1, &f)) return false;
  const cx_hlo_window win = { w.size, w.stride, NULL, NULL, w.padding };
  cx_hlo_value *zero = cx_hlo_splat(g->b, scalar, 0);
  return gen_push(g,
                  cx_hlo_select_and_scatter(g->b, x.v, source.v, zero, &win,
                                            at_least, sum, NULL),
                  f);
}

// ---- products ----

static bool product_facts(cx_hlo_elem in, cx_hlo_elem out, const gen_value *x,
                          const gen_value *y, int64_t n, gen_facts *f)
{
  *f = gen_both(&x->f, &y->f);
  f->magnitude = x->f.magnitude * y->f.magnitude;
  f->error = x->f.magnitude * y->f.error + y->f.magnitude * x->f.error;
  if (!f->integral && cx_hlo_elem_is_float(in)) {
    f->error += gen_epsilon(in) * f->magnitude;
  }
  if (!gen_summed(in, n, f)) return false;
  return cx_hlo_elem_is_float(out) || gen_rounded(out, true, f);
}

bool gen_dot(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_NUMBER, .min_rank = 1 });
  const cx_hlo_type *t = gen_type(x);
  int64_t xs[GEN_RANK], dims[GEN_RANK], place[GEN_RANK], n = 1;
  gen_permutation(g, t->rank, xs);
  const size_t n_batch = gen_below(g, t->rank > 2 ? 3 : t->rank);
  const size_t n_contract =
      gen_chance(g, 90) && n_batch < t->rank
          ? 1 + gen_below(g, (t->rank - n_batch) > 1 ? 2 : 1)
          : 0;
  const size_t free = gen_below(g, 3);
  const size_t rank = n_batch + n_contract + free;
  // place[i]: where the i-th of batch, contracted, free dimensions is in y.
  gen_permutation(g, rank, place);
  // XLA is wrong where y is a broadcast and has the two in the other order.
  if (g->portable && n_contract > 1 && place[n_batch] > place[n_batch + 1]) {
    return false;
  }
  for (size_t i = 0; i < rank; i++) {
    dims[place[i]] =
        i < n_batch + n_contract ? t->dims[xs[i]] : gen_range(g, 1, 9);
    if (i >= n_batch && i < n_batch + n_contract) n *= t->dims[xs[i]];
  }
  const cx_hlo_type of = { t->elem, rank, dims };
  int64_t elements = cx_hlo_type_elements(t);
  for (size_t i = n_batch + n_contract; i < rank; i++)
    elements *= dims[place[i]];
  if (elements > 20 * GEN_ELEMENTS) return false;
  gen_value y = gen_like(g, &of, false);
  if (y.v == NULL) return false;
  cx_hlo_elem out = t->elem;
  if (gen_chance(g, 20)) {
    if (out == CX_HLO_BF16 || out == CX_HLO_F16) out = CX_HLO_F32;
    if (out == CX_HLO_I8) out = CX_HLO_I32;
  }
  gen_facts f;
  if (!product_facts(t->elem, out, &x, &y, n, &f)) return false;
  const cx_hlo_dot_dims numbers = { xs,           place,           n_batch,
                                    xs + n_batch, place + n_batch, n_contract };
  return gen_push(g, cx_hlo_dot_general(g->b, x.v, y.v, &numbers, out), f);
}

// Sizes of a convolution, by meaning; they are laid out afterwards.
typedef struct conv {
  size_t n;  // spatial dimensions
  int64_t batch, in, out, groups, batch_groups;
  int64_t size[3], kernel[3], stride[3], padding[6], lhs[3], rhs[3];
  bool reversal[3];
  int64_t window;  // elements of the kernel's window
} conv;

static bool choose_conv(gen *g, conv *c)
{
  *c = (conv){ .n = 1 + gen_below(g, 3),
               .groups = 1,
               .batch_groups = 1,
               .batch = gen_range(g, 1, 3),
               .window = 1 };
  const int64_t in = gen_range(g, 1, 4), out = gen_range(g, 1, 4);
  if (gen_chance(g, 20))
    c->groups = gen_range(g, 1, 3);
  else if (gen_chance(g, 15))
    c->batch_groups = gen_range(g, 1, 3);
  c->in = in * c->groups;
  c->out = out * c->groups * c->batch_groups;
  c->batch *= c->batch_groups;
  for (size_t i = 0; i < c->n; i++) {
    c->size[i] = gen_range(g, 1, c->n == 3 ? 4 : 7);
    c->kernel[i] = gen_range(g, 1, 3);
    c->stride[i] = gen_range(g, 1, 2);
    c->lhs[i] = gen_chance(g, 20) ? 2 : 1;
    c->rhs[i] = gen_chance(g, 20) ? 2 : 1;
    c->padding[2 * i] = gen_range(g, gen_chance(g, 10) ? -1 : 0, 2);
    c->padding[2 * i + 1] = gen_range(g, 0, 2);
    c->reversal[i] = gen_chance(g, 15);
    c->window *= c->kernel[i];
    if ((c->size[i] - 1) * c->lhs[i] + 1 + c->padding[2 * i] +
            c->padding[2 * i + 1] <
        (c->kernel[i] - 1) * c->rhs[i] + 1) {
      return false;
    }
  }
  return true;
}

// The usual place of each dimension, or any.
static void places(gen *g, size_t rank, int64_t *out)
{
  if (gen_chance(g, 40)) {
    gen_permutation(g, rank, out);
  } else if (gen_chance(g, 50)) {
    for (size_t i = 0; i < rank; i++) out[i] = (int64_t)i;
  } else {
    out[0] = 0;
    out[1] = (int64_t)rank - 1;
    for (size_t i = 2; i < rank; i++) out[i] = (int64_t)i - 1;
  }
}

bool gen_conv(gen *g)
{
  conv c;
  if (!choose_conv(g, &c)) return false;
  const size_t rank = c.n + 2;
  int64_t x_at[5], k_at[5], y_at[5], x_dims[5], k_dims[5];
  places(g, rank, x_at);
  places(g, rank, k_at);
  places(g, rank, y_at);
  x_dims[x_at[0]] = c.batch;
  x_dims[x_at[1]] = c.in;
  k_dims[k_at[0]] = c.out;
  k_dims[k_at[1]] = c.in / c.groups;
  for (size_t i = 0; i < c.n; i++) {
    x_dims[x_at[i + 2]] = c.size[i];
    k_dims[k_at[i + 2]] = c.kernel[i];
  }
  const cx_hlo_elem e =
      gen_elem(g, gen_chance(g, 85) ? CX_HLO_CLASS_FLOAT : GEN_INTEGER);
  const cx_hlo_type x_type = { e, rank, x_dims }, k_type = { e, rank, k_dims };
  gen_value x = gen_like(g, &x_type, true), k = gen_like(g, &k_type, true);
  if (k.v == NULL) return false;
  gen_facts f;
  const int64_t n = c.window * c.in / c.groups;
  if (!product_facts(e, e, &x, &k, n, &f)) return false;
  if (g->portable && !cx_hlo_elem_is_float(e) && f.magnitude > 127) {
    return false;
  }
  const cx_hlo_conv_dims dims = { .n_spatial = c.n,
                                  .input_batch = x_at[0],
                                  .input_feature = x_at[1],
                                  .input_spatial = x_at + 2,
                                  .kernel_output = k_at[0],
                                  .kernel_input = k_at[1],
                                  .kernel_spatial = k_at + 2,
                                  .output_batch = y_at[0],
                                  .output_feature = y_at[1],
                                  .output_spatial = y_at + 2,
                                  .strides = c.stride,
                                  .padding = c.padding,
                                  .lhs_dilation = c.lhs,
                                  .rhs_dilation = c.rhs,
                                  .reversal = c.reversal,
                                  .feature_groups = c.groups,
                                  .batch_groups = c.batch_groups };
  return gen_push(g, cx_hlo_convolution(g->b, x.v, k.v, &dims), f);
}
