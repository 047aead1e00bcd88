// ops/ctc: the loss of connectionist temporal classification.
//
// With the blank around each label a target of S labels has L = 2 S + 1
// positions. One loop over the steps sums, for each position, the probabilities
// of all alignments that are there (alpha). The gradient needs the sums from
// the other end (beta): the same loop over the sequences in reverse. All in
// logarithms. Sizes: T steps, N samples, C classes.
#include <math.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"
#include "ops/recurrent.h"

// ---- the loop ---------------------------------------------------------------

// in: log-probabilities at the positions (T, N, L); 0 where a position is
// reached from two positions before it, else -infinity (N, L). out: the sums
// (T, N, L).
static calx_status *infer_sums(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  return NULL;
}

// A state's values `positions` positions later, and -infinity before them.
static cx_hlo_value *later(cx_ops_loop *l, cx_hlo_value *state,
                           int64_t positions)
{
  const cx_hlo_type *type = cx_hlo_value_type(state);
  if (type->rank != 2) return state;  // the builder has failed
  int64_t low[2] = { 0, positions }, high[2] = { 0, -positions },
          none[2] = { 0, 0 };
  cx_hlo_value *nothing =
      cx_hlo_splat(l->b, (cx_hlo_type){ l->elem, 0, NULL }, -(double)INFINITY);
  return cx_hlo_pad(l->b, state, nothing, low, high, none);
}

static void step(cx_ops_loop *l)
{
  cx_hlo_builder *b = l->b;
  cx_hlo_value *from[3] = { l->v[CX_OPS_VAR_H] };
  cx_hlo_type type = *cx_hlo_value_type(from[0]);
  from[1] = later(l, from[0], 1);
  from[2] = cx_hlo_binary(b, CX_HLO_OP_ADD, later(l, from[0], 2),
                          l->v[CX_OPS_VAR_BIAS]);
  cx_hlo_value *most =
      cx_hlo_binary(b, CX_HLO_OP_MAXIMUM, from[2],
                    cx_hlo_binary(b, CX_HLO_OP_MAXIMUM, from[0], from[1]));
  // Of a position that nothing reaches: exp(-infinity - 0) is 0, not NaN.
  cx_hlo_value *never = cx_hlo_compare(
      b, CX_HLO_EQ, most, cx_hlo_splat(b, type, -(double)INFINITY));
  most = cx_hlo_select(b, never, cx_hlo_splat(b, type, 0), most);
  cx_hlo_value *sum = NULL;
  for (int i = 0; i < 3; i++) {
    cx_hlo_value *e = cx_hlo_binary(b, CX_HLO_OP_SUBTRACT, from[i], most);
    e = cx_hlo_unary(b, CX_HLO_OP_EXPONENTIAL, e);
    sum = i == 0 ? e : cx_hlo_binary(b, CX_HLO_OP_ADD, sum, e);
  }
  cx_hlo_value *state = cx_hlo_binary(
      b, CX_HLO_OP_ADD, cx_hlo_unary(b, CX_HLO_OP_LOG, sum), most);
  state = cx_hlo_binary(b, CX_HLO_OP_ADD, state,
                        cx_ops_loop_read(l, CX_OPS_VAR_IN));
  l->v[CX_OPS_VAR_H] = state;
  cx_ops_loop_write(l, CX_OPS_VAR_OUT, state);
}

// Before the first step all are at position 0, from where positions 0 and 1 are
// reached.
static void emit_sums(cx_graph_emit *e)
{
  const cx_graph_shape *in = cx_in(e->node, 0);
  cx_hlo_elem elem = cx_hlo_elem_of(in->dtype);
  cx_ops_loop l = { .b = e->b,
                    .steps = in->dims[0],
                    .batch = in->dims[1],
                    .elem = elem,
                    .wide = elem,
                    .step = step };
  int64_t first[2] = { in->dims[1], 1 }, none[2] = { 0, 0 };
  int64_t rest[2] = { 0, in->dims[2] - 1 };
  cx_hlo_value *start = cx_hlo_splat(e->b, (cx_hlo_type){ elem, 2, first }, 0);
  cx_hlo_value *nothing =
      cx_hlo_splat(e->b, (cx_hlo_type){ elem, 0, NULL }, -(double)INFINITY);
  l.v[CX_OPS_VAR_H] = cx_hlo_pad(e->b, start, nothing, none, rest, none);
  l.v[CX_OPS_VAR_BIAS] = e->in[1];
  l.v[CX_OPS_VAR_IN] = e->in[0];
  l.v[CX_OPS_VAR_OUT] = cx_hlo_splat(e->b, cx_ops_out_type(e, 0), 0);
  cx_ops_emit_loop(&l);
  e->out[0] = l.v[CX_OPS_VAR_OUT];
}

// A wrong second derivative in silence would be worse than none.
static void grad_sums(cx_lazy_tape *t)
{
  t->in_grads[0] = cx_ops_poison(CALX_UNIMPLEMENTED,
                                 "ctc_loss: it has first derivatives only");
}

CX_OPS_DEFINE(ctc_sums, .infer = infer_sums, .grad = grad_sums,
              .emit = emit_sums)

static calx_tensor *sums(calx_tensor *at_positions, calx_tensor *skip)
{
  calx_tensor *in[2] = { at_positions, skip };
  return cx_ops_record(&cx_ops_ctc_sums, in, 2, NULL);
}

// ---- positions
// -----------------------------------------------------------------

typedef struct ctc {
  calx_tensor *log_probs;  // (T, N, C)
  calx_tensor *targets;    // (N, S) i64
  calx_tensor *steps;      // (N) i64: of each sample's input
  calx_tensor *labels;     // (N) i64: of each sample's target
  int64_t blank;
} ctc;

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// One that integers stay integers beside.
static calx_tensor *whole(int64_t value)
{
  return cx_ops_weak_as(number((double)value), CALX_I64, NULL);
}

static calx_tensor *count_up(const ctc *c, int64_t n)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(c->log_probs) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// The class of each position (N, L): labels at odd positions, else the blank.
static calx_tensor *classes_of(const ctc *c)
{
  int64_t n = calx_tensor_dim(c->targets, 0),
          s = calx_tensor_dim(c->targets, 1);
  calx_tensor *in = calx_lt(count_up(c, s), calx_unsqueeze(c->labels, 1));
  calx_tensor *blank = whole(c->blank);
  calx_tensor *labels = calx_where(in, c->targets, blank);
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(c->log_probs) };
  calx_dims one = CALX_SHAPE(n, s, 1), last = CALX_SHAPE(n, 1);
  calx_tensor *pair[2] = { calx_full_with(one, (double)c->blank, &o),
                           calx_unsqueeze(labels, 2) };
  calx_tensor *all[2] = { calx_reshape(calx_cat(pair, 2, 2),
                                       CALX_SHAPE(n, 2 * s)),
                          calx_full_with(last, (double)c->blank, &o) };
  return calx_cat(all, 2, 1);
}

// What the loop adds to come from two positions before: 0 at a label that
// differs from the one before it, else -infinity.
static calx_tensor *skips(const ctc *c, calx_tensor *classes)
{
  int64_t n = calx_tensor_dim(classes, 0), l = calx_tensor_dim(classes, 1);
  calx_tensor *differs = calx_ne(classes, whole(c->blank));
  if (l > 2) {
    calx_create_options o = { .size = sizeof o,
                              .dtype = CALX_I64,
                              .device = calx_tensor_device(c->log_probs) };
    calx_tensor *both[2] = { calx_full_with(CALX_SHAPE(n, 2), (double)c->blank,
                                            &o),
                             calx_slice(classes, 1, 0, l - 2, 1) };
    differs = calx_mul(differs, calx_ne(classes, calx_cat(both, 2, 1)));
  }
  calx_dtype dtype = calx_tensor_dtype(c->log_probs);
  calx_tensor *zero =
      cx_ops_weak_as(number(0), dtype, calx_tensor_device(c->log_probs));
  return calx_where(differs, zero, number(-(double)INFINITY));
}

// (T, N, L) of log-probabilities (T, N, C) at the classes (N, L).
static calx_tensor *at_positions(calx_tensor *log_probs, calx_tensor *classes)
{
  return calx_take_along_dim(log_probs, calx_unsqueeze(classes, 0), 2);
}

// x (T, N, L) with each sample's steps and positions from its last to its
// first; -infinity behind them.
static calx_tensor *reversed(const ctc *c, calx_tensor *x)
{
  int64_t t = calx_tensor_dim(x, 0), l = calx_tensor_dim(x, 2);
  calx_tensor *last = calx_sub_with(c->steps, whole(1), NULL);
  calx_tensor *step = calx_sub_with(calx_unsqueeze(last, 0),
                                    calx_unsqueeze(count_up(c, t), 1), NULL);
  calx_tensor *end = calx_mul(c->labels, whole(2));
  calx_tensor *position =
      calx_sub_with(calx_unsqueeze(end, 1), count_up(c, l), NULL);
  step = calx_unsqueeze(step, 2);          // (T, N, 1)
  position = calx_unsqueeze(position, 0);  // (1, N, L)
  calx_tensor *in =
      calx_mul(calx_ge(step, whole(0)), calx_ge(position, whole(0)));
  x = calx_take_along_dim(x, calx_clamp_min(step, whole(0)), 0);
  x = calx_take_along_dim(x, calx_clamp_min(position, whole(0)), 2);
  return calx_where(in, x, number(-(double)INFINITY));
}

// -log of what has reached one of the last two positions at the last step: (N).
static calx_tensor *loss_of(const ctc *c, calx_tensor *alpha)
{
  int64_t l = calx_tensor_dim(alpha, 2);
  calx_tensor *last = calx_sub_with(c->steps, whole(1), NULL);
  calx_tensor *at =
      calx_reshape(calx_clamp_min(last, whole(0)), CALX_SHAPE(1, -1, 1));
  calx_tensor *end = calx_squeeze(calx_take_along_dim(alpha, at, 0), 0);
  calx_tensor *behind = calx_sub_with(
      calx_unsqueeze(calx_mul(c->labels, whole(2)), 1), count_up(c, l), NULL);
  calx_tensor *is_end =
      calx_mul(calx_ge(behind, whole(0)), calx_le(behind, whole(1)));
  end = calx_where(is_end, end, number(-(double)INFINITY));
  int64_t dim = 1;
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&dim, 1) };
  calx_tensor *loss = calx_neg(calx_logsumexp_with(end, &o));
  // Without a step only the empty target is there.
  calx_tensor *empty = calx_where(calx_eq(c->labels, whole(0)), number(0),
                                  number((double)INFINITY));
  return calx_where(calx_eq(c->steps, whole(0)), empty, loss);
}

// ---- the gradient -----------------------------------------------------------

typedef struct ctc_function {
  cx_ops_function base;
  int64_t blank;
  bool zero_infinity;
} ctc_function;

// The classes of each sample's positions from its last to its first.
static calx_tensor *reversed_classes(const ctc *c, calx_tensor *classes)
{
  calx_tensor *end = calx_unsqueeze(calx_mul(c->labels, whole(2)), 1);
  calx_tensor *position =
      calx_sub_with(end, count_up(c, calx_tensor_dim(classes, 1)), NULL);
  return calx_take_along_dim(classes, calx_clamp_min(position, whole(0)), 1);
}

// The part of a sample's alignments that is at a position at a step: (T, N, L).
static calx_tensor *shares(const ctc *c, calx_tensor *classes,
                           calx_tensor *alpha, calx_tensor *loss)
{
  calx_tensor *positions = at_positions(c->log_probs, classes);
  calx_tensor *back = skips(c, reversed_classes(c, classes));
  calx_tensor *beta = reversed(c, sums(reversed(c, positions), back));
  calx_tensor *both = cx_ops_plus(alpha, beta);
  calx_tensor *never = calx_eq(both, number(-(double)INFINITY));
  loss = calx_reshape(loss, CALX_SHAPE(1, -1, 1));
  calx_tensor *share =
      calx_exp(cx_ops_plus(cx_ops_minus(both, positions), loss));
  return calx_where(never, number(0), share);
}

// Of log_probs: g (exp(log_probs) - the share of the alignments with the class
// at the step), which is PyTorch's. Through log_softmax it is the derivative.
// The operands: log_probs, loss, alpha, targets, steps, labels.
static void backward(cx_ops_function *base, const cx_lazy_tape *tape)
{
  const ctc_function *f = (const ctc_function *)base;
  calx_tensor *in[6];
  for (uint32_t i = 0; i < 6; i++) in[i] = cx_lazy_tape_in(tape, i);
  ctc c = { in[0], in[3], in[4], in[5], f->blank };
  calx_tensor *classes = classes_of(&c), *loss = in[1];
  calx_tensor *share = shares(&c, classes, in[2], loss);
  calx_tensor *index =
      calx_expand(calx_unsqueeze(classes, 0), calx_tensor_shape(share));
  calx_tensor *seen =
      calx_scatter_add(cx_ops_zeros_like(in[0]), 2, index, share);
  calx_tensor *g = calx_reshape(tape->out_grads[0], CALX_SHAPE(1, -1, 1));
  g = calx_mul(cx_ops_minus(calx_exp(in[0]), seen), g);
  calx_tensor *infinite = calx_isinf(calx_reshape(loss, CALX_SHAPE(1, -1, 1)));
  double of_infinite = f->zero_infinity ? 0 : (double)NAN;
  g = calx_where(infinite, number(of_infinite), g);
  calx_tensor *step = count_up(&c, calx_tensor_dim(in[0], 0));
  calx_tensor *within = calx_lt(calx_unsqueeze(step, 1), in[4]);
  tape->in_grads[0] = calx_where(calx_unsqueeze(within, 2), g, number(0));
}

static void free_function(cx_ops_function *f)
{
  cx_free(f);
}

// The losses (N) with their gradient.
static calx_tensor *losses(const ctc *c, bool zero_infinity)
{
  ctc_function *f = cx_calloc(1, sizeof *f);
  if (f == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  *f = (ctc_function){ { backward, free_function }, c->blank, zero_infinity };
  cx_lazy_grad_region_begin(false);
  calx_tensor *classes = classes_of(c);
  calx_tensor *alpha =
      sums(at_positions(c->log_probs, classes), skips(c, classes));
  calx_tensor *operands[6] = { c->log_probs, loss_of(c, alpha), alpha,
                               c->targets,   c->steps,          c->labels },
              *out;
  cx_lazy_grad_region_end(false);
  cx_ops_function_record(&f->base, "ctc_loss", operands, 6, 1, &out, 1);
  return out;
}

// ---- the arguments ----------------------------------------------------------

// Targets of all samples one after the other as (N, all): each row begins with
// the sample's own.
static calx_tensor *rows_of(const ctc *c, int64_t samples)
{
  int64_t all = calx_tensor_dim(c->targets, 0);
  if (samples == 1 || all == 0) {
    return calx_expand(calx_unsqueeze(c->targets, 0), CALX_SHAPE(samples, all));
  }
  calx_tensor *before =
      calx_sub_with(calx_cumsum(c->labels, 0), c->labels, NULL);
  calx_tensor *at = cx_ops_plus(calx_unsqueeze(before, 1), count_up(c, all));
  at = calx_clamp_max(at, whole((all - 1)));
  at = calx_reshape(at, CALX_SHAPE(-1));
  return calx_reshape(calx_index_select(c->targets, 0, at),
                      CALX_SHAPE(samples, all));
}

static bool is_length(const cx_graph_shape *s, int64_t samples, bool single)
{
  return cx_dtype_is_int(s->dtype) &&
         ((s->rank == 1 && s->dims[0] == samples) || (single && s->rank == 0));
}

// NULL: the arguments fit, and c has them with a dimension of samples.
static calx_tensor *check(ctc *c, const calx_ctc_loss_options *o)
{
  const cx_graph_shape *x = cx_lazy_tensor_shape(c->log_probs),
                       *t = cx_lazy_tensor_shape(c->targets),
                       *steps = cx_lazy_tensor_shape(c->steps),
                       *labels = cx_lazy_tensor_shape(c->labels);
  bool single = x->rank == 2;
  int64_t samples = x->rank == 3 ? x->dims[1] : 1;
  bool empty = false;
  for (uint32_t i = 0; i < x->rank; i++) empty = empty || x->dims[i] == 0;
  bool fits = (single || x->rank == 3) && !empty && cx_dtype_is_int(t->dtype) &&
              (t->rank == 1 || (t->rank == 2 && t->dims[0] == samples)) &&
              is_length(steps, samples, single) &&
              is_length(labels, samples, single);
  if (!fits) {
    return cx_ops_invalid(
        "ctc_loss: log_probs (T, N, C) of some steps, samples and classes, "
        "integer targets (N, S) or (sum of lengths), and integer lengths (N) "
        "are wanted, or (T, C), (S) and lengths (); got %s, %s, %s and %s",
        cx_graph_shape_str(x), cx_graph_shape_str(t), cx_graph_shape_str(steps),
        cx_graph_shape_str(labels));
  }
  int64_t classes = x->dims[x->rank - 1];
  if (o->blank < 0 || o->blank >= classes) {
    return cx_ops_invalid("ctc_loss: blank %lld is none of the %lld classes",
                          (long long)o->blank, (long long)classes);
  }
  if (single) c->log_probs = calx_unsqueeze(c->log_probs, 1);
  calx_tensor **ints[3] = { &c->targets, &c->steps, &c->labels };
  for (int i = 0; i < 3; i++) *ints[i] = calx_to_dtype(*ints[i], CALX_I64);
  c->steps = calx_reshape(c->steps, CALX_SHAPE(samples));
  c->labels = calx_reshape(c->labels, CALX_SHAPE(samples));
  if (t->rank == 1) c->targets = rows_of(c, samples);
  return NULL;
}

calx_tensor *calx_ctc_loss_with(calx_tensor *log_probs, calx_tensor *targets,
                                calx_tensor *input_lengths,
                                calx_tensor *target_lengths,
                                const calx_ctc_loss_options *o)
{
  CX_OPS_COMPOSITE("ctc_loss");
  CX_OPS_AUTOCAST(CX_OPS_F32, &log_probs);
  calx_tensor *in[4] = { log_probs, targets, input_lengths, target_lengths };
  calx_tensor *bad;
  if (cx_ops_unfit("ctc_loss", in, 4, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(ctc_loss, o, bad);
  calx_dtype dtype = cx_lazy_tensor_shape(log_probs)->dtype;
  if (!cx_dtype_is_float(dtype)) {
    return cx_ops_invalid("ctc_loss: log_probs must be floating, got %s",
                          cx_graph_shape_str(cx_lazy_tensor_shape(log_probs)));
  }
  if (dtype != CALX_F64) log_probs = calx_to_dtype(log_probs, CALX_F32);
  ctc c = { log_probs, targets, input_lengths, target_lengths, o->blank };
  bool single = cx_lazy_tensor_shape(log_probs)->rank == 2;
  if ((bad = check(&c, o)) != NULL) return bad;
  calx_tensor *each = losses(&c, o->zero_infinity);
  if (o->zero_infinity) each = calx_where(calx_isinf(each), number(0), each);
  if (o->reduction == CALX_NONE) {
    return single ? calx_squeeze(each, 0) : each;
  }
  if (o->reduction != CALX_SUM) {
    each = calx_div_with(each, calx_clamp_min(c.labels, whole(1)), NULL);
  }
  return cx_ops_reduce_losses("ctc_loss", each, o->reduction);
}
