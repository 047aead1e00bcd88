// nn/attention: torch.nn.MultiheadAttention.
#include "nn/attention.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "nn/layer.h"
#include "ops/ops.h"

// The sizes of one call.
typedef struct attention_call {
  calx_tensor *key, *value;
  const calx_multihead_attention_forward_options *o;
} attention_call;

typedef struct attention {
  calx_module *m;
  const attention_call *call;  // during a forward with keys; or NULL
  int64_t embed, heads, kdim, vdim;
  double dropout;
  bool batch_first, add_zero;
  calx_module *out_proj;
} attention;

// One call: q, k and v are (length, N, size), later (N, h, length, size / h).
typedef struct attention_run {
  const attention *a;
  const calx_multihead_attention_forward_options *o;
  calx_tensor *q, *k, *v;
  cx_nn_attention_sizes s;
} attention_run;

// ---- checks -----------------------------------------------------------------

// NULL: queries, keys and values agree.
static calx_tensor *check_operands(attention_run *r)
{
  calx_tensor *const in[3] = { r->q, r->k, r->v };
  static const char *const names[3] = { "query", "key", "value" };
  const int64_t sizes[3] = { r->a->embed, r->a->kdim, r->a->vdim };
  int at = r->a->batch_first ? 1 : 0;  // dimension of the lengths
  size_t rank = calx_tensor_rank(r->q);
  r->s.batched = rank == 3;
  r->s.heads = r->a->heads;
  for (int i = 0; i < 3; i++) {
    char wanted[96];
    snprintf(wanted, sizeof wanted, "(%s, %lld) or (length, %lld)%s",
             at == 1 ? "batch, length" : "length, batch", (long long)sizes[i],
             (long long)sizes[i], i > 0 ? " of the query's rank" : "");
    if ((rank != 2 && rank != 3) || calx_tensor_rank(in[i]) != rank ||
        calx_tensor_dim(in[i], -1) != sizes[i]) {
      return cx_nn_attention_refuse(r->a->m, names[i], in[i], wanted);
    }
    if (r->s.batched &&
        calx_tensor_dim(in[i], 1 - at) != calx_tensor_dim(r->q, 1 - at)) {
      return cx_nn_attention_refuse(r->a->m, names[i], in[i],
                                    "the query's batch");
    }
  }
  int dim = r->s.batched ? at : 0;
  r->s.batch = r->s.batched ? calx_tensor_dim(r->q, 1 - at) : 1;
  r->s.length = calx_tensor_dim(r->q, dim);
  r->s.keys = calx_tensor_dim(r->k, dim);
  if (calx_tensor_dim(r->v, dim) == r->s.keys) return NULL;
  return cx_nn_attention_refuse(r->a->m, "value", r->v, "the key's length");
}

// ---- the product ------------------------------------------------------------

static calx_tensor *part(calx_tensor *all, int dim, int64_t from, int64_t to,
                         int64_t size)
{
  return all == NULL ? NULL : calx_slice(all, dim, from * size, to * size, 1);
}

// q, k and v by their weights; equal operands share a product.
static void project(attention_run *r)
{
  int64_t e = r->a->embed;
  calx_tensor *bias = cx_nn_tensor(r->a->m, "in_proj_bias");
  calx_tensor *w = cx_nn_tensor(r->a->m, "in_proj_weight");
  if (w == NULL) {
    static const char *const names[3] = { "q_proj_weight", "k_proj_weight",
                                          "v_proj_weight" };
    calx_tensor **in[3] = { &r->q, &r->k, &r->v };
    for (int i = 0; i < 3; i++) {
      *in[i] = calx_linear(*in[i], cx_nn_tensor(r->a->m, names[i]),
                           part(bias, 0, i, i + 1, e));
    }
    return;
  }
  bool same = r->q == r->k, pair = r->k == r->v;
  int64_t first = same && pair ? 3 : 1;
  calx_tensor *q =
      calx_linear(r->q, part(w, 0, 0, first, e), part(bias, 0, 0, first, e));
  r->q = part(q, -1, 0, 1, e);
  if (first == 3) {
    r->k = part(q, -1, 1, 2, e);
    r->v = part(q, -1, 2, 3, e);
    return;
  }
  calx_tensor *k = calx_linear(r->k, part(w, 0, 1, pair ? 3 : 2, e),
                               part(bias, 0, 1, pair ? 3 : 2, e));
  calx_tensor *v = k;
  if (!pair) {
    v = calx_linear(r->v, part(w, 0, 2, 3, e), part(bias, 0, 2, 3, e));
  }
  r->k = part(k, -1, 0, 1, e);
  r->v = pair ? part(v, -1, 1, 2, e) : v;
}

// x (length, N, E) and the learned (1, 1, E).
static calx_tensor *with_bias(const attention_run *r, calx_tensor *x,
                              calx_tensor *bias)
{
  if (bias == NULL) return x;
  calx_tensor *both[2] = { x, calx_expand(bias, CALX_SHAPE(1, r->s.batch,
                                                           r->a->embed)) };
  return calx_cat(both, 2, 0);
}

// (length, N, E) -> (N, h, length, E / h).
static calx_tensor *to_heads(const attention_run *r, calx_tensor *x)
{
  int64_t size = r->a->embed / r->a->heads;
  calx_tensor *y = calx_reshape(
      x, CALX_SHAPE(calx_tensor_dim(x, 0), r->s.batch, r->a->heads, size));
  return calx_permute(y, CALX_DIMS(1, 2, 0, 3));
}

static calx_tensor *with_zeros(const attention_run *r, calx_tensor *x)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = cx_lazy_tensor_shape(x)->dtype,
                            .device = calx_tensor_device(x) };
  calx_dims shape =
      CALX_SHAPE(r->s.batch, r->a->heads, 1, r->a->embed / r->a->heads);
  calx_tensor *both[2] = { x, calx_zeros_with(shape, &o) };
  return calx_cat(both, 2, 2);
}

// The result (N, h, L, E / h), with the weights where they are wanted.
static calx_tensor *attend(const attention_run *r, calx_tensor *mask)
{
  bool training = calx_module_is_training(r->a->m);
  double p = training ? r->a->dropout : 0;
  if (r->o->out_attn_weights == NULL) {
    calx_attention_options o = { .size = sizeof o,
                                 .attn_mask = mask,
                                 .dropout_p = p };
    return calx_scaled_dot_product_attention_with(r->q, r->k, r->v, &o);
  }
  double scale = 1 / sqrt((double)(r->a->embed / r->a->heads));
  calx_tensor *scores = calx_matmul(calx_mul(r->q, cx_ops_number(scale)),
                                    calx_transpose(r->k, -2, -1));
  if (mask != NULL) scores = calx_add_with(scores, mask, NULL);
  calx_tensor *weights = calx_softmax(scores, -1);
  if (p > 0) {
    calx_dropout_options o = { .size = sizeof o, .p = p };
    weights = calx_dropout_with(weights, &o);
  }
  calx_tensor *shown = weights;
  if (!r->o->no_average_attn_weights) {
    static const int64_t heads = 1;
    calx_reduce_options o = { .size = sizeof o,
                              .dims = calx_dims_of(&heads, 1) };
    shown = calx_mean_with(weights, &o);
  }
  *r->o->out_attn_weights = r->s.batched ? shown : calx_squeeze(shown, 0);
  return calx_matmul(weights, r->v);
}

static calx_tensor *run(attention_run *r)
{
  calx_tensor *in[3] = { r->q, r->k, r->v }, *bad;
  if (cx_ops_unfit("multihead_attention", in, 3, &bad)) return bad;
  bad = check_operands(r);
  if (bad == NULL) bad = cx_nn_attention_check_masks(r->a->m, &r->s, r->o);
  if (bad != NULL) return bad;
  project(r);
  calx_tensor **all[3] = { &r->q, &r->k, &r->v };
  for (int i = 0; i < 3; i++) {
    if (!r->s.batched) *all[i] = calx_unsqueeze(*all[i], 1);
    if (r->s.batched && r->a->batch_first)
      *all[i] = calx_transpose(*all[i], 0, 1);
  }
  calx_tensor *bias_k = cx_nn_tensor(r->a->m, "bias_k");
  r->k = with_bias(r, r->k, bias_k);
  r->v = with_bias(r, r->v, cx_nn_tensor(r->a->m, "bias_v"));
  for (int i = 0; i < 3; i++) *all[i] = to_heads(r, *all[i]);
  if (r->a->add_zero) {
    r->k = with_zeros(r, r->k);
    r->v = with_zeros(r, r->v);
  }
  int64_t more = (bias_k != NULL) + r->a->add_zero;
  calx_tensor *y = attend(r, cx_nn_attention_mask(&r->s, r->o, r->q, more));
  y = calx_permute(
      y, r->a->batch_first ? CALX_DIMS(0, 2, 1, 3) : CALX_DIMS(2, 0, 1, 3));
  int64_t n = r->s.batch, l = r->s.length, e = r->a->embed;
  y = calx_reshape(y, !r->s.batched       ? CALX_SHAPE(l, e)
                      : r->a->batch_first ? CALX_SHAPE(n, l, e)
                                          : CALX_SHAPE(l, n, e));
  return calx_forward(r->a->out_proj, y);
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  static const calx_multihead_attention_forward_options none = {
    .size = sizeof none
  };
  const attention *a = self;
  attention_run r = { .a = a, .o = &none, .q = x, .k = x, .v = x };
  if (a->call != NULL) {
    r.k = a->call->key;
    r.v = a->call->value;
    r.o = a->call->o;
  }
  return run(&r);
}

calx_tensor *calx_multihead_attention_forward_with(
    calx_module *m, calx_tensor *query, calx_tensor *key, calx_tensor *value,
    const calx_multihead_attention_forward_options *o)
{
  static const calx_multihead_attention_forward_options none = {
    .size = sizeof none
  };
  if (o == NULL) o = &none;
  calx_status *status =
      cx_options_check("multihead_attention_forward", o->size, sizeof *o);
  bool mine = m != NULL && m->forward == forward;
  if (status == NULL && m != NULL && !cx_nn_module_is_nil(m) && !mine) {
    status = cx_invalid(
        "multihead_attention_forward: module '%s' (%s) is no "
        "MultiheadAttention",
        cx_nn_module_path(m), m->kind);
  }
  calx_tensor *y;
  attention_call call = { key, value, o };
  if (status != NULL) {
    y = cx_lazy_tensor_poison(status);
  } else if (!mine || m->state == NULL) {
    y = calx_forward(m, query);  // says what is wrong
  } else {
    attention *a = m->state;
    a->call = &call;
    y = calx_forward(m, query);
    a->call = NULL;
  }
  if (o->out_attn_weights != NULL && cx_lazy_tensor_poisoned(y)) {
    *o->out_attn_weights = y;
  }
  return y;
}

// ---- making -----------------------------------------------------------------

calx_status *cx_nn_check_probability(const char *call, double p)
{
  if (p >= 0 && p <= 1) return NULL;
  return cx_invalid("%s: the probability of dropout %g is not in [0, 1]", call,
                    p);
}

static calx_status *check(int64_t embed, int64_t heads,
                          const calx_nn_multihead_attention_options *o)
{
  static const char call[] = "multihead_attention";
  CALX_TRY(cx_options_check(call, o->size, sizeof *o));
  if (embed <= 0 || heads <= 0 || embed % heads != 0) {
    return cx_invalid(
        "%s: embed_dim %lld and num_heads %lld: positive numbers are wanted, "
        "the first a multiple of the second",
        call, (long long)embed, (long long)heads);
  }
  if (o->kdim < 0 || o->vdim < 0) {
    return cx_invalid("%s: kdim %lld and vdim %lld are not to be negative",
                      call, (long long)o->kdim, (long long)o->vdim);
  }
  CALX_TRY(cx_nn_check_probability(call, o->dropout));
  return cx_nn_check_dtype(call, o->dtype);
}

// Uniform in +-sqrt(6 / (in + out)): Xavier's.
static void xavier_param(const attention *a, const char *name, int64_t out,
                         int64_t in, calx_dtype dtype)
{
  calx_module_param(a->m, name,
                    cx_nn_uniform(CALX_SHAPE(out, in),
                                  ((double)in + (double)out) / 6, dtype));
}

// As PyTorch: the output's weight begins as that of a linear layer.
static void register_all(attention *a,
                         const calx_nn_multihead_attention_options *o)
{
  int64_t e = a->embed;
  if (a->kdim == e && a->vdim == e) {
    xavier_param(a, "in_proj_weight", 3 * e, e, o->dtype);
  } else {
    xavier_param(a, "q_proj_weight", e, e, o->dtype);
    xavier_param(a, "k_proj_weight", e, a->kdim, o->dtype);
    xavier_param(a, "v_proj_weight", e, a->vdim, o->dtype);
  }
  if (!o->no_bias) {
    cx_nn_filled_param(a->m, "in_proj_bias", CALX_SHAPE(3 * e), false,
                       o->dtype);
  }
  for (int i = 0; i < 2 && o->add_bias_kv; i++) {
    calx_init_xavier_normal(
        cx_nn_filled_param(a->m, i == 0 ? "bias_k" : "bias_v",
                           CALX_SHAPE(1, 1, e), false, o->dtype),
        1);
  }
  calx_linear_options linear = { .size = sizeof linear,
                                 .no_bias = o->no_bias,
                                 .dtype = o->dtype };
  a->out_proj = calx_nn_linear_with(a->m, "out_proj", e, e, &linear);
  if (cx_nn_module_is_nil(a->out_proj)) return;
  char *kind = cx_strdup("NonDynamicallyQuantizableLinear");
  if (kind != NULL) {  // the name that PyTorch prints
    cx_free(a->out_proj->kind);
    a->out_proj->kind = kind;
  }
  if (!o->no_bias) calx_init_zeros(cx_nn_tensor(a->out_proj, "bias"));
}

calx_module *calx_nn_multihead_attention_with(
    calx_module *parent, const char *name, int64_t embed_dim, int64_t num_heads,
    const calx_nn_multihead_attention_options *options)
{
  static const calx_nn_multihead_attention_options none = { .size =
                                                                sizeof none };
  static const cx_nn_layer layer = { .kind = "MultiheadAttention",
                                     .call = "multihead_attention",
                                     .forward = forward };
  const calx_nn_multihead_attention_options *o =
      options != NULL ? options : &none;
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(attention), &state);
  attention *a = state;
  if (a == NULL) return m;
  calx_status *status = check(embed_dim, num_heads, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  a->embed = embed_dim;
  a->heads = num_heads;
  a->kdim = o->kdim != 0 ? o->kdim : embed_dim;
  a->vdim = o->vdim != 0 ? o->vdim : embed_dim;
  a->dropout = o->dropout;
  a->batch_first = o->batch_first;
  a->add_zero = o->add_zero_attn;
  calx_scope *scope = calx_scope_begin();
  register_all(a, o);
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}
