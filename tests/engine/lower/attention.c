// Attention in the ways in which it is written, with its gradient: what becomes
// a kernel gives what the interpreter gives, and so does what stays as it is.
#include "lower/compile.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef enum masking {
  NONE,
  CAUSAL,   // select(i >= j, score, -1e30)
  HIDING,   // select(an argument, -inf, score)
  PADDING,  // select(an argument of batch and key, score, -1e9)
  BIAS      // score + an argument
} masking;

typedef struct attention_case {
  const char *name;
  int batch, heads, rows, keys, width, value;
  masking mask;
  bool heads_inside;                  // q is (batch, rows, heads, width)
  bool swapped;                       // v p^T
  enum { FORWARD, JAX, PLAIN } grad;  // how the gradient is written
  enum { FINITE, NAN_IN_V, LOW_SCORES, HIDDEN_ROWS } data;
  bool escapes;  // the probabilities are a result
  size_t kernels;
} attention_case;

static const attention_case cases[] = {
  { "plain", 2, 3, 64, 64, 32, 32, NONE, false, false, FORWARD, FINITE, false,
    1 },
  { "odd sizes", 1, 5, 67, 131, 20, 36, NONE, false, false, JAX, FINITE, false,
    2 },
  { "causal", 2, 3, 200, 200, 64, 64, CAUSAL, true, false, JAX, FINITE, false,
    2 },
  { "causal, more keys", 2, 2, 70, 150, 80, 80, CAUSAL, true, true, JAX, FINITE,
    false, 2 },
  { "a gradient as a textbook has it", 2, 2, 61, 65, 128, 33, CAUSAL, false,
    false, PLAIN, FINITE, false, 2 },
  { "hiding", 1, 4, 33, 129, 32, 64, HIDING, false, true, JAX, FINITE, false,
    2 },
  { "padding", 3, 2, 40, 90, 64, 64, PADDING, true, false, PLAIN, FINITE, false,
    2 },
  { "bias", 2, 2, 50, 66, 64, 16, BIAS, false, false, JAX, FINITE, false, 2 },
  { "one head of no batch", 1, 1, 64, 64, 16, 16, NONE, false, false, FORWARD,
    FINITE, false, 1 },
  { "a NaN in v", 1, 4, 128, 128, 16, 16, CAUSAL, false, false, JAX, NAN_IN_V,
    false, 2 },
  { "scores below the masked ones", 1, 4, 96, 96, 16, 16, CAUSAL, false, false,
    JAX, LOW_SCORES, false, 2 },
  { "rows that see nothing", 1, 4, 64, 80, 16, 16, HIDING, false, false,
    FORWARD, HIDDEN_ROWS, false, 1 },
  { "the probabilities are needed", 2, 2, 64, 64, 16, 16, NONE, false, false,
    FORWARD, FINITE, true, 0 },
  { "few scores", 2, 2, 1, 64, 16, 16, NONE, false, false, FORWARD, FINITE,
    false, 0 },
  { "heads too few for the gradient", 1, 2, 64, 64, 16, 16, NONE, false, false,
    JAX, FINITE, false, 0 },
};

// ---- texts ------------------------------------------------------------------

typedef struct shapes {
  char q[64], k[64], v[64], o[64], s[64], row[64], mask[64];
} shapes;

static void shape4(char *out, const attention_case *c, bool inside, int n,
                   int m)
{
  if (inside) {
    snprintf(out, 64, "tensor<%dx%dx%dx%dxf32>", c->batch, n, c->heads, m);
  } else {
    snprintf(out, 64, "tensor<%dx%dx%dx%dxf32>", c->batch, c->heads, n, m);
  }
}

static shapes shapes_of(const attention_case *c)
{
  shapes s;
  shape4(s.q, c, c->heads_inside, c->rows, c->width);
  shape4(s.k, c, c->heads_inside, c->keys, c->width);
  shape4(s.v, c, c->heads_inside, c->keys, c->value);
  shape4(s.o, c, false, c->swapped ? c->value : c->rows,
         c->swapped ? c->rows : c->value);
  shape4(s.s, c, false, c->rows, c->keys);
  snprintf(s.row, 64, "tensor<%dx%dx%dxf32>", c->batch, c->heads, c->rows);
  if (c->mask == PADDING) {
    snprintf(s.mask, 64, "tensor<%dx%dxi1>", c->batch, c->keys);
  } else {
    snprintf(s.mask, 64, "tensor<%dx%dx%s>", c->rows, c->keys,
             c->mask == BIAS ? "f32" : "i1");
  }
  return s;
}

static void put_mask(cx_text *t, const attention_case *c, const shapes *s)
{
  char bits[64];
  snprintf(bits, sizeof bits, "tensor<%dx%dx%dx%dxi1>", c->batch, c->heads,
           c->rows, c->keys);
  if (c->mask == NONE) {
    cx_text_format(t, "%%x = stablehlo.reshape %%scaled : (%s) -> %s\n", s->s,
                   s->s);
    return;
  }
  if (c->mask == BIAS) {
    cx_text_format(t,
                   "%%m = stablehlo.broadcast_in_dim %%mask, dims = [2, 3] : "
                   "(%s) -> %s\n%%x = stablehlo.add %%scaled, %%m : %s\n",
                   s->mask, s->s, s->s);
    return;
  }
  if (c->mask == CAUSAL) {
    cx_text_format(
        t,
        "%%i = stablehlo.iota dim = 0 : tensor<%dx%dxi32>\n"
        "%%j = stablehlo.iota dim = 1 : tensor<%dx%dxi32>\n"
        "%%mask = stablehlo.compare GE, %%i, %%j : (tensor<%dx%dxi32>, "
        "tensor<%dx%dxi32>) -> %s\n",
        c->rows, c->keys, c->rows, c->keys, c->rows, c->keys, c->rows, c->keys,
        s->mask);
  }
  cx_text_format(t,
                 "%%m = stablehlo.broadcast_in_dim %%mask, dims = [%s] : (%s) "
                 "-> %s\n%%c = stablehlo.constant dense<%s> : %s\n"
                 "%%x = stablehlo.select %%m, %s : %s, %s\n",
                 c->mask == PADDING ? "0, 3" : "2, 3", s->mask, bits,
                 c->mask == CAUSAL   ? "-1.0e30"
                 : c->mask == HIDING ? "0xFF800000"
                                     : "-1.0e9",
                 s->s, c->mask == HIDING ? "%c, %scaled" : "%scaled, %c", bits,
                 s->s);
}

static void put_row(cx_text *t, const shapes *s, const char *to,
                    const char *from)
{
  cx_text_format(t,
                 "%%%s = stablehlo.broadcast_in_dim %%%s, dims = [0, 1, 2] : "
                 "(%s) -> %s\n",
                 to, from, s->row, s->s);
}

static void put_forward(cx_text *t, const attention_case *c, const shapes *s)
{
  const char *heads = c->heads_inside ? "[0, 2]" : "[0, 1]";
  cx_text_format(t,
                 "%%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                 "%%none = stablehlo.constant dense<0.0> : tensor<f32>\n"
                 "%%zero = stablehlo.constant dense<0.0> : %s\n"
                 "%%by = stablehlo.constant dense<0.25> : %s\n"
                 "%%raw = stablehlo.dot_general %%q, %%k, batching_dims = %s x "
                 "%s, contracting_dims = [3] x [3] : (%s, %s) -> %s\n"
                 "%%scaled = stablehlo.multiply %%raw, %%by : %s\n",
                 s->s, s->s, heads, heads, s->q, s->k, s->s, s->s);
  put_mask(t, c, s);
  cx_text_format(t,
                 "%%most = stablehlo.reduce(%%x init: %%low) applies "
                 "stablehlo.maximum across dimensions = [3] : (%s, "
                 "tensor<f32>) -> %s\n",
                 s->s, s->row);
  put_row(t, s, "mostb", "most");
  cx_text_format(t,
                 "%%shifted = stablehlo.subtract %%x, %%mostb : %s\n"
                 "%%e = stablehlo.exponential %%shifted : %s\n"
                 "%%l = stablehlo.reduce(%%e init: %%none) applies "
                 "stablehlo.add across dimensions = [3] : (%s, tensor<f32>) "
                 "-> %s\n",
                 s->s, s->s, s->s, s->row);
  put_row(t, s, "lb", "l");
  cx_text_format(t, "%%p = stablehlo.divide %%e, %%lb : %s\n", s->s);
  const char *keys = c->heads_inside ? "[1]" : "[2]";
  if (c->swapped) {
    cx_text_format(t,
                   "%%o = stablehlo.dot_general %%v, %%p, batching_dims = %s x "
                   "[0, 1], contracting_dims = %s x [3] : (%s, %s) -> %s\n",
                   heads, keys, s->v, s->s, s->o);
  } else {
    cx_text_format(t,
                   "%%o = stablehlo.dot_general %%p, %%v, batching_dims = [0, "
                   "1] x %s, contracting_dims = [3] x %s : (%s, %s) -> %s\n",
                   heads, keys, s->s, s->v, s->o);
  }
}

// The gradient of the sum of o * w.
static void put_backward(cx_text *t, const attention_case *c, const shapes *s)
{
  const char *heads = c->heads_inside ? "[0, 2]" : "[0, 1]";
  const char *keys = c->heads_inside ? "[1]" : "[2]";
  const char *o_row = c->swapped ? "[3]" : "[2]";
  const char *o_value = c->swapped ? "[2]" : "[3]";
  char dv[64], dk[64], dq[64];
  shape4(dv, c, false, c->keys, c->value);
  shape4(dk, c, false, c->keys, c->width);
  shape4(dq, c, false, c->rows, c->width);
  cx_text_format(
      t,
      "%%dv = stablehlo.dot_general %%p, %%w, batching_dims = [0, 1] "
      "x [0, 1], contracting_dims = [2] x %s : (%s, %s) -> %s\n"
      "%%g = stablehlo.dot_general %%w, %%v, batching_dims = [0, 1] "
      "x %s, contracting_dims = %s x [3] : (%s, %s) -> %s\n",
      o_row, s->s, s->o, dv, heads, o_value, s->o, s->v, s->s);
  if (c->grad == JAX) {
    cx_text_format(t,
                   "%%ll = stablehlo.multiply %%l, %%l : %s\n"
                   "%%ones = stablehlo.constant dense<1.0> : %s\n"
                   "%%r2 = stablehlo.divide %%ones, %%ll : %s\n",
                   s->row, s->row, s->row);
    put_row(t, s, "r2b", "r2");
    cx_text_format(t,
                   "%%t0 = stablehlo.multiply %%g, %%r2b : %s\n"
                   "%%t1 = stablehlo.multiply %%t0, %%e : %s\n"
                   "%%t2 = stablehlo.reduce(%%t1 init: %%none) applies "
                   "stablehlo.add across dimensions = [3] : (%s, tensor<f32>) "
                   "-> %s\n%%t3 = stablehlo.negate %%t2 : %s\n",
                   s->s, s->s, s->s, s->row, s->row);
    put_row(t, s, "t3b", "t3");
    cx_text_format(t,
                   "%%t4 = stablehlo.divide %%g, %%lb : %s\n"
                   "%%t5 = stablehlo.add %%t4, %%t3b : %s\n"
                   "%%t6 = stablehlo.multiply %%t5, %%e : %s\n",
                   s->s, s->s, s->s);
  } else {
    cx_text_format(t,
                   "%%t0 = stablehlo.multiply %%g, %%p : %s\n"
                   "%%t2 = stablehlo.reduce(%%t0 init: %%none) applies "
                   "stablehlo.add across dimensions = [3] : (%s, tensor<f32>) "
                   "-> %s\n",
                   s->s, s->s, s->row);
    put_row(t, s, "t2b", "t2");
    cx_text_format(t,
                   "%%t5 = stablehlo.subtract %%g, %%t2b : %s\n"
                   "%%t6 = stablehlo.multiply %%t5, %%p : %s\n",
                   s->s, s->s);
  }
  if (c->mask == NONE || c->mask == BIAS) {
    cx_text_format(t, "%%t7 = stablehlo.reshape %%t6 : (%s) -> %s\n", s->s,
                   s->s);
  } else {
    cx_text_format(t,
                   "%%t7 = stablehlo.select %%m, %s : tensor<%dx%dx%dx%dxi1>, "
                   "%s\n",
                   c->mask == HIDING ? "%zero, %t6" : "%t6, %zero", c->batch,
                   c->heads, c->rows, c->keys, s->s);
  }
  cx_text_format(t,
                 "%%ds = stablehlo.multiply %%t7, %%by : %s\n"
                 "%%dk = stablehlo.dot_general %%ds, %%q, batching_dims = [0, "
                 "1] x %s, contracting_dims = [2] x %s : (%s, %s) -> %s\n"
                 "%%dq = stablehlo.dot_general %%ds, %%k, batching_dims = [0, "
                 "1] x %s, contracting_dims = [3] x %s : (%s, %s) -> %s\n"
                 "return %%o, %%dq, %%dk, %%dv : %s, %s, %s, %s }\n",
                 s->s, heads, keys, s->s, s->q, dk, heads, keys, s->s, s->k, dq,
                 s->o, dq, dk, dv);
}

static void put_program(cx_text *t, const attention_case *c)
{
  const shapes s = shapes_of(c);
  const bool argument = c->mask != NONE && c->mask != CAUSAL;
  char dv[64], dk[64], dq[64], results[300];
  shape4(dv, c, false, c->keys, c->value);
  shape4(dk, c, false, c->keys, c->width);
  shape4(dq, c, false, c->rows, c->width);
  if (c->grad != FORWARD) {
    snprintf(results, sizeof results, "%s, %s, %s, %s", s.o, dq, dk, dv);
  } else {
    snprintf(results, sizeof results, "%s%s%s", s.o, c->escapes ? ", " : "",
             c->escapes ? s.s : "");
  }
  cx_text_format(t,
                 "func.func @main(%%q: %s, %%k: %s, %%v: %s, %%w: %s%s%s) -> "
                 "(%s) {\n",
                 s.q, s.k, s.v, s.o, argument ? ", %mask: " : "",
                 argument ? s.mask : "", results);
  put_forward(t, c, &s);
  if (c->grad != FORWARD) {
    put_backward(t, c, &s);
  } else {
    cx_text_format(t, "return %%o%s : %s }\n", c->escapes ? ", %p" : "",
                   results);
  }
}

// ---- values -----------------------------------------------------------------

static cpu_threads *pool;

static void fill(const attention_case *c, size_t param, const cx_hlo_type *t,
                 void *to)
{
  const size_t n = (size_t)cx_hlo_type_elements(t);
  for (size_t i = 0; i < n; i++) {
    const int x = (int)((i * 7919 + param * 104729) % 1009);
    if (t->elem == CX_HLO_F32) {
      float *f = to;
      f[i] = (float)x / 504.0F - 1.0F;
      if (param == 0 && c->data == LOW_SCORES) f[i] = i % 2 ? -3e30F : 0;
      if (param == 1 && c->data == LOW_SCORES) f[i] = i % 2 ? 1 : 2;
    } else if (c->data == HIDDEN_ROWS) {
      ((unsigned char *)to)[i] = i / (size_t)c->keys % 3 == 0 || x % 3 == 0;
    } else {
      // Every row and every batch shows some.
      ((unsigned char *)to)[i] = c->mask == PADDING
                                     ? i % (size_t)c->keys < 20 + (size_t)x % 9
                                     : x % 5 != 0;
    }
  }
  if (param == 2 && c->data == NAN_IN_V) ((float *)to)[n - 5] = NAN;
}

typedef struct values {
  float *items[4];
  size_t count[4], n;
} values;

static void run_text(const attention_case *c, const char *text, bool interpret,
                     values *out)
{
  setenv("CALX_CPU_REF", interpret ? "1" : "0", 1);
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(text, strlen(text), &options, &p));
  cx_text bytes = { 0 };
  CHECK_STATUS_OK(cpu_run_program_save(p, &bytes));
  cpu_run_program_free(p);
  CHECK_STATUS_OK(cpu_run_program_load(bytes.data, bytes.size, pool, &p));
  cx_text_free(&bytes);
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  if (!interpret && info->n_attention != c->kernels) {
    fail_msg("%s: %zu kernels, %zu are wanted", c->name, info->n_attention,
             c->kernels);
  }
  void *args[5], *results[4];
  for (size_t i = 0; i < info->n_params; i++) {
    const size_t size = (size_t)cx_hlo_type_bytes(&info->params[i]);
    args[i] = aligned_alloc(64, (size + 64) / 64 * 64);
    fill(c, i, &info->params[i], args[i]);
  }
  out->n = info->n_results;
  for (size_t i = 0; i < info->n_results; i++) {
    const size_t size = (size_t)cx_hlo_type_bytes(&info->results[i]);
    results[i] = aligned_alloc(64, (size + 64) / 64 * 64);
    memset(results[i], 0x55, size);
    out->items[i] = results[i];
    out->count[i] = size / sizeof(float);
  }
  cpu_run_context *context = NULL;
  CHECK_STATUS_OK(cpu_run_context_new(pool, &context));
  CHECK_STATUS_OK(cpu_run_program_run(p, context, NULL, args, results));
  cpu_run_context_free(context);
  for (size_t i = 0; i < info->n_params; i++) free(args[i]);
  cpu_run_program_free(p);
}

static void agree(const char *name, const values *a, const values *b)
{
  for (size_t i = 0; i < a->n; i++) {
    double most = 0;
    for (size_t k = 0; k < b->count[i]; k++) {
      if (isfinite(b->items[i][k]))
        most = fmax(most, fabs((double)b->items[i][k]));
    }
    for (size_t k = 0; k < a->count[i]; k++) {
      const double x = (double)a->items[i][k], y = (double)b->items[i][k];
      if (x == y || (isnan(x) && isnan(y))) continue;
      if (fabs(x - y) <= 1e-7 + 2e-6 * most + 2e-5 * fabs(y)) continue;
      fail_msg("%s: result %zu, element %zu: compiled %g, interpreted %g", name,
               i, k, x, y);
    }
  }
}

static void as_interpreted(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const attention_case *c = &cases[i];
    cx_text text = { 0 };
    put_program(&text, c);
    values compiled, interpreted;
    run_text(c, text.data, true, &interpreted);
    run_text(c, text.data, false, &compiled);
    agree(c->name, &compiled, &interpreted);
    for (size_t k = 0; k < compiled.n; k++) {
      free(compiled.items[k]);
      free(interpreted.items[k]);
    }
    cx_text_free(&text);
  }
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(as_interpreted),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
