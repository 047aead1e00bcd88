// nn/loss_linear: the losses of torch.nn that have linear layers of their own:
// LinearCrossEntropyLoss and AdaptiveLogSoftmaxWithLoss.
#include <math.h>

#include "nn/layer.h"
#include "ops/ops.h"

// A loss that is called with one tensor.
static calx_tensor *wants_two(void *self, calx_tensor *x)
{
  (void)x;
  const calx_module *m = *(calx_module **)self;
  return cx_lazy_tensor_poison(cx_invalid(
      "forward: layer '%s' (%s) takes two tensors: call calx_forward2",
      cx_nn_module_path(m), m->kind));
}

// ---- LinearCrossEntropyLoss -------------------------------------------------

typedef struct linear_loss {
  calx_module *m, *linear;
  int64_t in, classes, out;  // out: of the linear layer
  calx_linear_cross_entropy_loss_options o;
} linear_loss;

// (C …) or (C …, in) as the loss takes it.
static calx_tensor *apart(const linear_loss *l, const char *name, bool weight)
{
  calx_tensor *t = cx_nn_tensor(l->linear, name);
  if (t == NULL) return NULL;
  calx_dims dims = { .count = 1, .values = { l->classes } };
  for (size_t i = 0; i < l->o.out_features.count; i++) {
    dims.values[dims.count++] = l->o.out_features.values[i];
  }
  if (weight) dims.values[dims.count++] = l->in;
  return calx_reshape(t, dims);
}

static calx_tensor *linear_loss_forward(void *self, calx_tensor *x,
                                        calx_tensor *target)
{
  const linear_loss *l = self;
  const calx_linear_cross_entropy_options o = {
    .size = sizeof o,
    .linear_bias = apart(l, "bias", false),
    .weight = cx_nn_tensor(l->m, "weight"),
    .reduction = l->o.reduction,
    .ignore_index = l->o.ignore_index,
    .label_smoothing = l->o.label_smoothing
  };
  return calx_linear_cross_entropy_with(x, apart(l, "weight", true), target,
                                        &o);
}

static void linear_loss_repr(const void *state, cx_text *out)
{
  const linear_loss *l = state;
  const int64_t ignored = l->o.ignore_index;
  cx_text_format(out, "in_features=%lld, num_classes=%lld, out_features=",
                 (long long)l->in, (long long)l->classes);
  cx_nn_repr_tuple(out, l->o.out_features.values, l->o.out_features.count);
  cx_text_format(
      out, ", bias=%s, reduction=%s, ignore_index=", cx_nn_repr_bool(l->o.bias),
      l->o.reduction == CALX_SUM    ? "sum"
      : l->o.reduction == CALX_NONE ? "none"
                                    : "mean");
  if (ignored == 0) {
    cx_text_append(out, "None");
  } else {
    cx_text_int(out, ignored == CALX_ZERO_INT ? 0 : ignored);
  }
  cx_text_append(out, ", label_smoothing=");
  cx_nn_repr_real(out, l->o.label_smoothing);
  cx_text_append(out, ", options=None");
}

static calx_status *check_linear_loss(
    linear_loss *l, const calx_linear_cross_entropy_loss_options *options)
{
  static const char call[] = "linear_cross_entropy_loss";
  CALX_TRY(cx_options_take(call, options, &l->o, sizeof l->o));
  double out = (double)l->classes;
  bool good = l->in >= 0 && l->classes > 0 &&
              l->o.out_features.count + 2 <= CALX_MAX_RANK;
  l->out = l->classes;
  for (size_t i = 0; good && i < l->o.out_features.count; i++) {
    const int64_t n = l->o.out_features.values[i];
    good = n > 0 && (out *= (double)n) < 0x1p52;
    l->out *= good ? n : 1;
  }
  if (!good) {
    return cx_invalid(
        "%s: in_features %lld, num_classes %lld and %zu .out_features: "
        "positive numbers are wanted, at most %d of the last",
        call, (long long)l->in, (long long)l->classes, l->o.out_features.count,
        CALX_MAX_RANK - 2);
  }
  if (!(l->o.label_smoothing >= 0 && l->o.label_smoothing <= 1)) {
    return cx_invalid("%s: .label_smoothing is %g, in [0, 1] is wanted", call,
                      l->o.label_smoothing);
  }
  return cx_nn_check_dtype(call, l->o.dtype);
}

calx_module *calx_nn_linear_cross_entropy_loss_with(
    calx_module *parent, const char *name, int64_t in_features,
    int64_t num_classes, const calx_linear_cross_entropy_loss_options *options)
{
  static const cx_nn_layer layer = { .kind = "LinearCrossEntropyLoss",
                                     .call = "linear_cross_entropy_loss",
                                     .forward = wants_two,
                                     .repr = linear_loss_repr,
                                     .forward2 = linear_loss_forward };
  void *state;
  calx_module *m =
      cx_nn_make(&layer, parent, name, sizeof(linear_loss), &state);
  linear_loss *l = state;
  if (l == NULL) return m;
  l->in = in_features;
  l->classes = num_classes;
  calx_status *status = check_linear_loss(l, options);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  // The weight is a buffer, as in PyTorch, and what it is at each call.
  if (l->o.weight != NULL) calx_module_buffer(m, "weight", l->o.weight);
  l->o.weight = NULL;
  const calx_linear_options linear = { .size = sizeof linear,
                                       .no_bias = !l->o.bias,
                                       .dtype = l->o.dtype };
  l->linear = calx_nn_linear_with(m, "linear", l->in, l->out, &linear);
  return m;
}

// ---- AdaptiveLogSoftmaxWithLoss ---------------------------------------------

// Cluster i has the classes [cutoffs[i], cutoffs[i + 1]); those before
// cutoffs[0] are the head's own.
typedef struct adaptive_softmax {
  calx_module *m, *head, *clusters[CALX_MAX_RANK];
  int64_t in, cutoffs[CALX_MAX_RANK + 1];
  size_t n;  // clusters
  calx_adaptive_log_softmax_options o;
} adaptive_softmax;

static calx_tensor *whole_number(int64_t n)
{
  return calx_scalar_int(n);
}

// Of each row the element at `index`.
static calx_tensor *picked(calx_tensor *x, calx_tensor *index)
{
  return calx_squeeze(calx_gather(x, 1, calx_unsqueeze(index, 1)), 1);
}

static calx_tensor *between(calx_tensor *x, int64_t low, int64_t high)
{
  return calx_logical_and(calx_ge(x, whole_number(low)),
                          calx_lt(x, whole_number(high)));
}

static calx_tensor *log_softmax_of(calx_module *layer, calx_tensor *x)
{
  return calx_log_softmax(calx_forward(layer, x), 1);
}

// The log-probabilities of the targets, of x (N, in) and target (N).
static calx_tensor *of_targets(const adaptive_softmax *s, calx_tensor *x,
                               calx_tensor *target)
{
  const int64_t own = s->cutoffs[0];
  calx_tensor *none = whole_number(0), *sum = NULL;
  calx_tensor *index = calx_where(between(target, 0, own), target, none);
  for (size_t i = 0; i < s->n; i++) {
    const int64_t low = s->cutoffs[i];
    calx_tensor *inside = between(target, low, s->cutoffs[i + 1]);
    calx_tensor *at = calx_where(
        inside, calx_sub_with(target, whole_number(low), NULL), none);
    calx_tensor *local = picked(log_softmax_of(s->clusters[i], x), at);
    local = calx_where(inside, local, cx_ops_number(0));
    sum = sum == NULL ? local : cx_ops_plus(sum, local);
    index = calx_where(inside, whole_number(own + (int64_t)i), index);
  }
  calx_tensor *of_head = picked(log_softmax_of(s->head, x), index);
  return calx_where(between(target, 0, s->cutoffs[s->n]),
                    cx_ops_plus(of_head, sum), cx_ops_number((double)NAN));
}

// Whether x is a batch of rows and the target fits. False: *out is what the
// function returns.
static bool adaptive_fits(const adaptive_softmax *s, calx_tensor *x,
                          calx_tensor *target, calx_tensor **out)
{
  static const char call[] = "adaptive_log_softmax_with_loss";
  calx_tensor *in[2] = { x, target };
  if (cx_ops_unfit(call, in, target != NULL ? 2 : 1, out)) return false;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *t = target != NULL ? cx_lazy_tensor_shape(target) : a;
  bool fits = a->rank >= 1 && a->rank <= 2 && a->dims[a->rank - 1] == s->in &&
              (target != NULL || a->rank == 2);
  if (target != NULL) {
    fits = fits && t->dtype == CALX_I64 && t->rank + 1 == a->rank &&
           (t->rank == 0 || t->dims[0] == a->dims[0]);
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "%s: layer '%s' wants x (N, %lld) and an i64 target (N)%s, got %s%s%s",
      call, cx_nn_module_path(s->m), (long long)s->in,
      target != NULL ? ", or both without N" : "", cx_graph_shape_str(a),
      target != NULL ? " and " : "",
      target != NULL ? cx_graph_shape_str(t) : "");
  return false;
}

static calx_tensor *adaptive_output(const adaptive_softmax *s, calx_tensor *x,
                                    calx_tensor *target)
{
  calx_tensor *bad;
  if (target == NULL) return cx_ops_unfit("forward", &target, 1, &bad), bad;
  if (!adaptive_fits(s, x, target, &bad)) return bad;
  if (cx_lazy_tensor_shape(target)->rank == 1) return of_targets(s, x, target);
  return calx_squeeze(
      of_targets(s, calx_unsqueeze(x, 0), calx_unsqueeze(target, 0)), 0);
}

static calx_tensor *loss_of(calx_tensor *output)
{
  return calx_neg(calx_mean_with(output, NULL));
}

static calx_tensor *adaptive_forward(void *self, calx_tensor *x,
                                     calx_tensor *target)
{
  return loss_of(adaptive_output(self, x, target));
}

static const cx_nn_layer adaptive_layer = {
  .kind = "AdaptiveLogSoftmaxWithLoss",
  .call = "adaptive_log_softmax_with_loss",
  .forward = wants_two,
  .forward2 = adaptive_forward
};

// The layer's state; NULL: *out is what the function returns.
static const adaptive_softmax *state_of(calx_module *m, calx_tensor **out)
{
  if (m != NULL && !cx_nn_module_is_nil(m) && m->layer == &adaptive_layer) {
    const adaptive_softmax *s = m->state;
    if (s->head != NULL) return s;
  }
  *out = cx_lazy_tensor_poison(
      cx_invalid("adaptive_log_softmax: %s is no AdaptiveLogSoftmaxWithLoss",
                 m == NULL ? "NULL" : cx_nn_module_path(m)));
  return NULL;
}

calx_tensor *calx_adaptive_log_softmax_forward(calx_module *m, calx_tensor *x,
                                               calx_tensor *target,
                                               calx_tensor **out_loss)
{
  calx_tensor *output;
  const adaptive_softmax *s = state_of(m, &output);
  if (s != NULL) output = adaptive_output(s, x, target);
  if (out_loss != NULL) *out_loss = s != NULL ? loss_of(output) : output;
  return output;
}

calx_tensor *calx_adaptive_log_softmax_log_prob(calx_module *m, calx_tensor *x)
{
  calx_tensor *bad, *parts[CALX_MAX_RANK + 1];
  const adaptive_softmax *s = state_of(m, &bad);
  if (s == NULL || !adaptive_fits(s, x, NULL, &bad)) return bad;
  calx_tensor *head = log_softmax_of(s->head, x);
  parts[0] = calx_narrow(head, 1, 0, s->cutoffs[0]);
  for (size_t i = 0; i < s->n; i++) {
    calx_tensor *of_cluster =
        calx_narrow(head, 1, s->cutoffs[0] + (int64_t)i, 1);
    parts[i + 1] = cx_ops_plus(log_softmax_of(s->clusters[i], x), of_cluster);
  }
  return calx_cat(parts, s->n + 1, 1);
}

calx_tensor *calx_adaptive_log_softmax_predict(calx_module *m, calx_tensor *x)
{
  const calx_reduce_options o = { .size = sizeof o, .dims = CALX_DIMS(1) };
  return calx_argmax_with(calx_adaptive_log_softmax_log_prob(m, x), &o);
}

// ---- making -----------------------------------------------------------------

static calx_status *check_adaptive(
    adaptive_softmax *s, int64_t n_classes, const calx_dims *cutoffs,
    const calx_adaptive_log_softmax_options *options)
{
  const char *call = adaptive_layer.call;
  CALX_TRY(cx_options_take(call, options, &s->o, sizeof s->o));
  bool good = cutoffs->count >= 1 && cutoffs->count <= CALX_MAX_RANK;
  for (size_t i = 0; good && i < cutoffs->count; i++) {
    s->cutoffs[i] = cutoffs->values[i];
    good = s->cutoffs[i] > (i == 0 ? 0 : s->cutoffs[i - 1]) &&
           s->cutoffs[i] < n_classes;
  }
  if (!good) {
    return cx_invalid(
        "%s: %zu cutoffs of %lld classes: 1 to %d ascending numbers between 1 "
        "and the last class are wanted",
        call, cutoffs->count, (long long)n_classes, CALX_MAX_RANK);
  }
  s->n = cutoffs->count;
  s->cutoffs[s->n] = n_classes;
  if (s->in < 1 || !(s->o.div_value >= 0) || isinf(s->o.div_value)) {
    return cx_invalid(
        "%s: in_features %lld, .div_value %g: positive numbers are wanted",
        call, (long long)s->in, s->o.div_value);
  }
  return cx_nn_check_dtype(call, s->o.dtype);
}

calx_module *calx_nn_adaptive_log_softmax_with_loss_with(
    calx_module *parent, const char *name, int64_t in_features,
    int64_t n_classes, calx_dims cutoffs,
    const calx_adaptive_log_softmax_options *options)
{
  void *state;
  calx_module *m = cx_nn_make(&adaptive_layer, parent, name,
                              sizeof(adaptive_softmax), &state);
  adaptive_softmax *s = state;
  if (s == NULL) return m;
  s->in = in_features;
  calx_status *status = check_adaptive(s, n_classes, &cutoffs, options);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  calx_linear_options linear = { .size = sizeof linear,
                                 .no_bias = !s->o.head_bias,
                                 .dtype = s->o.dtype };
  s->head = calx_nn_linear_with(m, "head", s->in, s->cutoffs[0] + (int64_t)s->n,
                                &linear);
  linear.no_bias = true;
  calx_module *tail = calx_nn_module_list(m, "tail");
  const double by = s->o.div_value == 0 ? 4 : s->o.div_value;
  for (size_t i = 0; i < s->n; i++) {
    const double wide = floor((double)s->in / pow(by, (double)i + 1));
    const int64_t inner = wide < 0x1p52 ? (int64_t)wide : -1;
    calx_module *both = s->clusters[i] = calx_nn_sequential(tail, NULL);
    calx_nn_linear_with(both, NULL, s->in, inner, &linear);
    calx_nn_linear_with(both, NULL, inner, s->cutoffs[i + 1] - s->cutoffs[i],
                        &linear);
  }
  return m;
}
