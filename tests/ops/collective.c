// Behaviours 39 to 43 and 48 of docs/behaviours.md on 2, 3, 4 and 8 ranks:
// values of every collective, every type, groups, scale and gradients.
#include <math.h>
#include <time.h>

#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/dist.h"
#include "calx/ops.h"
#include "support/ranks.h"

#define SUM_OF(n) ((n) * ((n) + 1) / 2.0)  // 1 + 2 + … + n

// ---- 39: all_reduce ---------------------------------------------------------

static calx_status *b39(ranks_one *r)
{
  double n = r->n;
  calx_scope *step = calx_scope_begin();
  calx_tensor *ones = RANK_VECTOR(1, 1), *twos = RANK_VECTOR(2, 2, 2);
  calx_all_reduce_list(((calx_tensor *[]){ ones, twos }), 2, CALX_REDUCE_SUM);
  calx_tensor *threes = calx_all_reduce(RANK_VECTOR(3, 3), CALX_REDUCE_SUM);
  calx_tensor *fours =
      calx_all_reduce(RANK_VECTOR(4), CALX_REDUCE_SUM, .scale = 0.5);
  calx_tensor *none =
      calx_all_reduce(RANK_VECTOR(4), CALX_REDUCE_SUM, .scale = CALX_ZERO);
  calx_tensor *ranks = calx_all_reduce(RANK_VECTOR(r->rank), CALX_REDUCE_MAX);
  calx_sync(ones, twos, threes, fours, none, ranks);
  RANK_VALUES(r, ones, 0, n, n);
  RANK_VALUES(r, twos, 0, 2 * n, 2 * n, 2 * n);
  RANK_VALUES(r, threes, 0, 3 * n, 3 * n);
  RANK_VALUES(r, fours, 0, 4 * n * 0.5);
  RANK_VALUES(r, none, 0, 0);
  RANK_VALUES(r, ranks, 0, n - 1);
  return calx_scope_end(step);
}

static void test_b39_all_reduce(void **state)
{
  (void)state;
  ranks_run_worlds(b39, NULL);
}

// Small whole numbers, so that every type holds every result.
static double sample(int rank, int k)
{
  if (rank >= 4) return 1;
  return (rank * 3 + k * 2) % 5 + (k % 2 == 0 ? 1 : 0);
}

static double combined(calx_reduce_type type, bool logical, int n, int k)
{
  double v = sample(0, k);
  for (int rank = 1; rank < n; rank++) {
    double x = sample(rank, k);
    switch (type) {
      case CALX_REDUCE_SUM: v += x; break;
      case CALX_REDUCE_MIN: v = fmin(v, x); break;
      case CALX_REDUCE_MAX: v = fmax(v, x); break;
      case CALX_REDUCE_MUL: v *= x; break;
      case CALX_REDUCE_AND: v = (int)v & (int)x; break;
      case CALX_REDUCE_OR: v = (int)v | (int)x; break;
    }
  }
  if (!logical) return v;
  bool all = true, any = false;
  for (int rank = 0; rank < n; rank++) {
    all &= sample(rank, k) != 0;
    any |= sample(rank, k) != 0;
  }
  return type == CALX_REDUCE_AND ? all : any;
}

static bool fits(calx_reduce_type type, calx_dtype d)
{
  if (type == CALX_REDUCE_AND || type == CALX_REDUCE_OR) {
    return !cx_dtype_is_float(d);
  }
  return d != CALX_BOOL;
}

enum { SAMPLES = 6, MOST_RESULTS = 128 };

// Every type of reduction of every dtype, in one program.
static calx_status *every_type(ranks_one *r)
{
  static const calx_dtype dtypes[] = { CALX_F32, CALX_F64, CALX_BF16, CALX_F16,
                                       CALX_I8,  CALX_I16, CALX_I32,  CALX_I64,
                                       CALX_U8,  CALX_U16, CALX_U32,  CALX_U64,
                                       CALX_BOOL };
  enum { DTYPES = sizeof dtypes / sizeof *dtypes };
  calx_tensor *results[DTYPES * 6];
  size_t n = 0;
  calx_scope *step = calx_scope_begin();
  double values[SAMPLES];
  for (int k = 0; k < SAMPLES; k++) values[k] = sample(r->rank, k);
  for (size_t d = 0; d < DTYPES; d++) {
    double mine[SAMPLES];
    for (int k = 0; k < SAMPLES; k++) {
      mine[k] = dtypes[d] == CALX_BOOL ? values[k] != 0 : values[k];
    }
    calx_tensor *x = rank_tensor(dtypes[d], CALX_SHAPE(2, 3), mine);
    for (int t = 0; t <= CALX_REDUCE_OR; t++) {
      if (!fits((calx_reduce_type)t, dtypes[d])) continue;
      results[n++] = calx_all_reduce(x, (calx_reduce_type)t);
    }
  }
  calx_sync_n(results, n);
  n = 0;
  for (size_t d = 0; d < DTYPES; d++) {
    for (int t = 0; t <= CALX_REDUCE_OR; t++) {
      if (!fits((calx_reduce_type)t, dtypes[d])) continue;
      double wanted[SAMPLES];
      for (int k = 0; k < SAMPLES; k++) {
        wanted[k] =
            combined((calx_reduce_type)t, dtypes[d] == CALX_BOOL, r->n, k);
      }
      bool before = r->wrong;
      RANK_VALUES_OF(r, results[n++], 0, wanted, SAMPLES);
      if (r->wrong && !before) {
        fprintf(stderr, "that was type %d of %s\n", t,
                calx_dtype_name(dtypes[d]));
      }
    }
  }
  return calx_scope_end(step);
}

static void test_b39_types(void **state)
{
  (void)state;
  ranks_run_worlds(every_type, NULL);
}

static calx_status *scaled_integers(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  double v[] = { r->rank + 1 };
  calx_tensor *i = calx_all_reduce(rank_tensor(CALX_I32, CALX_SHAPE(1), v),
                                   CALX_REDUCE_SUM, .scale = -2);
  calx_tensor *h = calx_all_reduce(rank_tensor(CALX_BF16, CALX_SHAPE(1), v),
                                   CALX_REDUCE_SUM, .scale = 0.5);
  RANK_CHECK(r, calx_tensor_dtype(i) == CALX_I32);
  RANK_CHECK(r, calx_tensor_dtype(h) == CALX_BF16);
  calx_sync(i, h);
  RANK_VALUES(r, i, 0, -2 * SUM_OF(r->n));
  RANK_VALUES(r, h, 0, 0.5 * SUM_OF(r->n));
  return calx_scope_end(step);
}

static void test_b39_scale(void **state)
{
  (void)state;
  ranks_run_worlds(scaled_integers, NULL);
}

// ---- groups -----------------------------------------------------------------

static const int64_t even_odd[] = { 0, 2, 1, 3 };
static const int64_t crossed[] = { 3, 0, 2, 1 };
static const int64_t turned[] = { 2, 0, 1 };
#define GROUPS(list, n_groups)                             \
  {                                                        \
    .ids = (list), .count = sizeof(list) / sizeof *(list), \
    .groups = (n_groups)                                   \
  }

static calx_status *four_in_groups(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  double me = r->rank;
  calx_tensor *x = RANK_VECTOR(me, 10 + me);
  calx_tensor *sum =
      calx_all_reduce(x, CALX_REDUCE_SUM, .groups = GROUPS(even_odd, 2));
  calx_tensor *gathered = calx_all_gather(x, 0, .groups = GROUPS(crossed, 2));
  calx_tensor *scattered =
      calx_reduce_scatter(x, CALX_REDUCE_SUM, 0, .groups = GROUPS(crossed, 2));
  calx_tensor *swapped = calx_all_to_all(x, 0, 0, .groups = GROUPS(crossed, 2));
  calx_tensor *root = RANK_VECTOR(me);
  calx_collective_broadcast((&root), 1, 1, .groups = GROUPS(crossed, 2));
  static const int64_t alone[] = { 2, 0, 3, 1 };
  calx_tensor *mine =
      calx_all_reduce(x, CALX_REDUCE_SUM, .groups = GROUPS(alone, 4));
  calx_sync(sum, gathered, scattered, swapped, root, mine);
  double even = r->rank % 2 == 0 ? 2 : 4;
  RANK_VALUES(r, sum, 0, even, 20 + even);
  bool first = r->rank == 3 || r->rank == 0;
  double a = first ? 3 : 2, b = first ? 0 : 1;
  RANK_VALUES(r, gathered, 0, a, 10 + a, b, 10 + b);
  bool leads = r->rank == 3 || r->rank == 2;
  RANK_VALUES(r, scattered, 0, leads ? a + b : 20 + a + b);
  RANK_VALUES(r, swapped, 0, leads ? a : 10 + a, leads ? b : 10 + b);
  RANK_VALUES(r, root, 0, b);
  RANK_VALUES(r, mine, 0, me, 10 + me);
  return calx_scope_end(step);
}

static calx_status *three_turned(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  double me = r->rank;
  calx_tensor *x = RANK_VECTOR(me, me + 10, me + 20);
  calx_groups g = GROUPS(turned, 0);
  calx_tensor *gathered =
      calx_all_gather(RANK_VECTOR(me), 0, .groups = GROUPS(turned, 1));
  calx_tensor *scattered =
      calx_reduce_scatter(x, CALX_REDUCE_SUM, 0, .groups = g);
  calx_tensor *swapped = calx_all_to_all(x, 0, 0, .groups = g);
  calx_sync(gathered, scattered, swapped);
  RANK_VALUES(r, gathered, 0, 2, 0, 1);
  double place = r->rank == 2 ? 0 : r->rank + 1;
  RANK_VALUES(r, scattered, 0, 3 + 30 * place);
  RANK_VALUES(r, swapped, 0, 2 + 10 * place, 10 * place, 1 + 10 * place);
  return calx_scope_end(step);
}

static void test_groups(void **state)
{
  (void)state;
  ranks_run(4, four_in_groups, NULL);
  ranks_run(3, three_turned, NULL);
}

// ---- 40 to 43 ---------------------------------------------------------------

static calx_status *b40(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *ranks = calx_all_gather(RANK_VECTOR(r->rank), 0);
  double v[] = { r->rank };
  calx_tensor *scalars =
      calx_all_gather(rank_tensor(CALX_I64, CALX_SCALAR, v), 0);
  calx_tensor *lists[5];
  for (int i = 0; i < 5; i++) {
    lists[i] = calx_all_gather(RANK_VECTOR(i * 1000 + r->rank), -1);
  }
  double x[] = { r->rank, r->rank + 0.5 };
  calx_tensor *columns =
      calx_all_gather(rank_tensor(CALX_F64, CALX_SHAPE(2, 1), x), 1);
  calx_sync(ranks, scalars, lists[0], lists[1], lists[2], lists[3], lists[4],
            columns);
  double wanted[RANKS_MOST], both[2 * RANKS_MOST];
  for (int i = -1; i < 5; i++) {
    for (int k = 0; k < r->n; k++) wanted[k] = (i < 0 ? 0 : i * 1000) + k;
    RANK_VALUES_OF(r, i < 0 ? ranks : lists[i], 0, wanted, (size_t)r->n);
    if (i < 0) RANK_VALUES_OF(r, scalars, 0, wanted, (size_t)r->n);
  }
  for (int k = 0; k < r->n; k++) {
    both[k] = k;
    both[r->n + k] = k + 0.5;
  }
  RANK_VALUES_OF(r, columns, 0, both, 2 * (size_t)r->n);
  return calx_scope_end(step);
}

static calx_status *b41(ranks_one *r)
{
  enum { ROWS = 3, COLUMNS = 4 };
  int n = r->n;
  calx_scope *step = calx_scope_begin();
  double x[ROWS * 2 * RANKS_MOST * COLUMNS], sum[ROWS * 2 * COLUMNS];
  for (int i = 0; i < ROWS * 2 * n * COLUMNS; i++) x[i] = i * (r->rank + 1);
  calx_tensor *t = rank_tensor(CALX_F32, CALX_SHAPE(ROWS, 2 * n, COLUMNS), x);
  calx_tensor *s = calx_reduce_scatter(t, CALX_REDUCE_SUM, 1, .scale = 1.0 / n);
  calx_tensor *m = calx_reduce_scatter(t, CALX_REDUCE_MAX, 1);
  double bits[2 * RANKS_MOST];
  for (int i = 0; i < 2 * n; i++) bits[i] = 1 << (r->rank + i % 2);
  calx_tensor *o = calx_reduce_scatter(
      rank_tensor(CALX_I32, CALX_SHAPE(2 * n), bits), CALX_REDUCE_OR, 0);
  calx_sync(s, m, o);
  for (int i = 0; i < ROWS; i++) {
    for (int k = 0; k < 2 * COLUMNS; k++) {
      int at = (i * 2 * n + 2 * r->rank) * COLUMNS + k;
      sum[i * 2 * COLUMNS + k] = at * SUM_OF(n) / n;
    }
  }
  RANK_VALUES_OF(r, s, 1e-4, sum, ROWS * 2 * COLUMNS);
  for (int i = 0; i < ROWS * 2 * COLUMNS; i++) sum[i] *= n * n / SUM_OF(n);
  RANK_VALUES_OF(r, m, 1e-4, sum, ROWS * 2 * COLUMNS);
  RANK_VALUES(r, o, 0, (1 << n) - 1, ((1 << n) - 1) * 2);
  return calx_scope_end(step);
}

static calx_status *b42(ranks_one *r)
{
  int n = r->n;
  calx_scope *step = calx_scope_begin();
  double x[4 * RANKS_MOST], wanted[4 * RANKS_MOST];
  for (int i = 0; i < 4 * n; i++) {
    x[i] = r->rank;
    wanted[i] = i / 4;
  }
  calx_tensor *t =
      calx_all_to_all(rank_tensor(CALX_F32, CALX_SHAPE(4 * n), x), 0, 0);
  // (2, n) -> (2 n, 1): rank s's column r.
  for (int i = 0; i < 2 * n; i++) x[i] = 100 * r->rank + i;
  calx_tensor *u =
      calx_all_to_all(rank_tensor(CALX_I32, CALX_SHAPE(2, n), x), 1, 0);
  calx_sync(t, u);
  RANK_VALUES_OF(r, t, 0, wanted, 4 * (size_t)n);
  for (int s = 0; s < n; s++) {
    wanted[2 * s] = 100 * s + r->rank;
    wanted[2 * s + 1] = 100 * s + n + r->rank;
  }
  RANK_CHECK(r, calx_tensor_dim(u, 0) == 2 * n && calx_tensor_dim(u, 1) == 1);
  RANK_VALUES_OF(r, u, 0, wanted, 2 * (size_t)n);
  return calx_scope_end(step);
}

static calx_status *b43(ranks_one *r)
{
  int n = r->n;
  calx_scope *step = calx_scope_begin();
  int64_t ring[2 * RANKS_MOST];
  for (int i = 0; i < n; i++) {
    ring[2 * i] = i;
    ring[2 * i + 1] = (i + 1) % n;
  }
  calx_tensor *x = RANK_VECTOR(r->rank, r->rank);
  calx_tensor *t = calx_collective_permute(x, ring, (size_t)n);
  calx_tensor *u = calx_collective_permute(x, (int64_t[]){ n - 1, 0 }, 1);
  calx_tensor *none = calx_collective_permute(x, NULL, 0);
  calx_sync(t, u, none);
  double before = (r->rank + n - 1) % n;
  RANK_VALUES(r, t, 0, before, before);
  double last = r->rank == 0 ? n - 1 : 0;
  RANK_VALUES(r, u, 0, last, last);
  RANK_VALUES(r, none, 0, 0, 0);
  return calx_scope_end(step);
}

static void test_b40_all_gather(void **state)
{
  (void)state;
  ranks_run_worlds(b40, NULL);
}
static void test_b41_reduce_scatter(void **state)
{
  (void)state;
  ranks_run_worlds(b41, NULL);
}
static void test_b42_all_to_all(void **state)
{
  (void)state;
  ranks_run_worlds(b42, NULL);
}
static void test_b43_collective_permute(void **state)
{
  (void)state;
  ranks_run_worlds(b43, NULL);
}

// ---- 48: broadcast ----------------------------------------------------------

// The root's bits arrive, whatever the others hold; and what they held does not
// come back in the next collective.
static calx_status *b48(ranks_one *r)
{
  static const calx_dtype dtypes[] = {
    CALX_F32, CALX_F64, CALX_BF16, CALX_F16,
    CALX_I8,  CALX_I64, CALX_U16,  CALX_BOOL
  };
  enum { DTYPES = sizeof dtypes / sizeof *dtypes };
  calx_tensor *t[2 * DTYPES];
  int root = r->n - 1;
  calx_scope *step = calx_scope_begin();
  for (size_t d = 0; d < DTYPES; d++) {
    bool real = cx_dtype_is_float(dtypes[d]);
    double other = real ? (double)NAN : 1, low = real ? -0.0 : 0;
    double a[] = { 3, low, 1 }, b[] = { other, other, other };
    t[2 * d] = rank_tensor(dtypes[d], CALX_SHAPE(3), r->rank == root ? a : b);
    t[2 * d + 1] =
        rank_tensor(dtypes[d], CALX_SHAPE(1, 1), r->rank == root ? a : b);
  }
  calx_collective_broadcast(t, 2 * DTYPES, root);
  calx_tensor *after = calx_all_reduce(t[0], CALX_REDUCE_SUM);
  calx_tensor *all[2 * DTYPES + 1] = { after };
  memcpy(all + 1, t, sizeof t);
  calx_sync_n(all, 2 * DTYPES + 1);
  for (size_t d = 0; d < DTYPES; d++) {
    double three = dtypes[d] == CALX_BOOL ? 1 : 3;
    RANK_VALUES(r, t[2 * d], 0, three, 0, 1);
    RANK_VALUES(r, t[2 * d + 1], 0, three);
  }
  float f[3];
  calx_status_free(calx_tensor_read(t[0], f, sizeof f));
  RANK_CHECK(r, signbit(f[1]));
  RANK_VALUES(r, after, 0, 3 * r->n, 0, r->n);
  return calx_scope_end(step);
}

static void test_b48_broadcast(void **state)
{
  (void)state;
  ranks_run_worlds(b48, NULL);
}

// ---- gradients --------------------------------------------------------------

typedef calx_tensor *subject(calx_tensor *x);

static calx_tensor *f_reduce(calx_tensor *x)
{
  return calx_all_reduce(x, CALX_REDUCE_SUM, .scale = 0.25);
}
static calx_tensor *f_gather(calx_tensor *x)
{
  return calx_all_gather(x, 1);
}
static calx_tensor *f_scatter(calx_tensor *x)
{
  return calx_reduce_scatter(x, CALX_REDUCE_SUM, 0, .scale = 3);
}
static calx_tensor *f_all_to_all(calx_tensor *x)
{
  return calx_all_to_all(x, 0, 1);
}
static calx_tensor *f_permute(calx_tensor *x)
{
  return calx_collective_permute(x, (int64_t[]){ 0, 1, 1, 0 }, 2);
}

enum { ROWS = 24, COLUMNS = 2, ELEMENTS = ROWS * COLUMNS };

// The ranks' losses, sum(sin(f(x) + rank)), added up.
static calx_tensor *loss_of(ranks_one *r, subject *f, calx_tensor *x)
{
  return calx_sum(calx_sin(calx_add(calx_mul(f(x), 0.1), r->rank)));
}

static double total_at(ranks_one *r, subject *f, const double *x)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *t = rank_tensor(CALX_F64, CALX_SHAPE(ROWS, COLUMNS), x);
  calx_tensor *loss = calx_all_reduce(loss_of(r, f, t), CALX_REDUCE_SUM);
  calx_sync(loss);
  double total = calx_item(loss);
  calx_status *status = calx_scope_end(step);
  RANK_OK(r, status);
  return total;
}

// A rank's gradient is that of all losses together.
static calx_status *differences(ranks_one *r)
{
  subject *f = *(subject **)r->user;
  double x[ELEMENTS], grad[ELEMENTS] = { 0 };
  for (int i = 0; i < ELEMENTS; i++) x[i] = sin(i + 7.0 * r->rank);
  calx_scope *step = calx_scope_begin();
  calx_tensor *t = rank_tensor(CALX_F64, CALX_SHAPE(ROWS, COLUMNS), x);
  calx_requires_grad(t, true);
  calx_backward(loss_of(r, f, t));
  calx_sync(calx_grad(t));
  calx_status *status = calx_tensor_read(calx_grad(t), grad, sizeof grad);
  RANK_OK(r, status);
  for (int q = 0; q < r->n; q++) {
    for (int i = 0; i < ELEMENTS; i += 5) {
      double h = 1e-4, kept = x[i];
      if (q == r->rank) x[i] = kept + h;
      double up = total_at(r, f, x);
      if (q == r->rank) x[i] = kept - h;
      double down = total_at(r, f, x);
      x[i] = kept;
      if (q != r->rank) continue;
      RANK_CHECK(r, fabs((up - down) / (2 * h) - grad[i]) < 1e-7);
    }
  }
  return calx_scope_end(step);
}

static void test_gradients(void **state)
{
  (void)state;
  subject *all[] = { f_reduce, f_gather, f_scatter, f_all_to_all, f_permute };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    ranks_run_worlds(differences, &all[i]);
  }
}

// The hand's: y = sum_r x_r, L = sum_r (r + 1) y, so dL/dx_r = 1 + 2 + … + n.
static calx_status *by_hand(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(5, 6);
  calx_requires_grad(x, true);
  calx_tensor *y = calx_all_reduce(x, CALX_REDUCE_SUM, .scale = 0.5);
  calx_backward(calx_sum(calx_mul(y, r->rank + 1)));
  calx_sync(calx_grad(x));
  double g = 0.5 * SUM_OF(r->n);
  RANK_VALUES(r, calx_grad(x), 1e-6, g, g);
  return calx_scope_end(step);
}

static calx_status *no_gradient(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(5, 6);
  calx_requires_grad(x, true);
  calx_backward(calx_sum(calx_all_reduce(x, CALX_REDUCE_MAX)));
  RANK_STATUS(r, CALX_UNIMPLEMENTED, calx_scope_end(step),
              "all_reduce: only a sum over the ranks has a gradient");
  step = calx_scope_begin();
  // In place: a value without a history, on a handle that still collects.
  calx_tensor *w = calx_take(calx_mul(RANK_VECTOR(1, 2), r->rank + 1));
  calx_requires_grad(w, true);
  calx_all_reduce_list((&w), 1, CALX_REDUCE_SUM);
  calx_backward(calx_sum(calx_mul(w, w)));
  calx_sync(w);
  double n = SUM_OF(r->n);
  RANK_VALUES(r, w, 0, n, 2 * n);
  RANK_VALUES(r, calx_grad(w), 0, 2 * n, 4 * n);
  calx_release(w);
  return calx_scope_end(step);
}

static void test_gradients_by_hand(void **state)
{
  (void)state;
  ranks_run_worlds(by_hand, NULL);
  ranks_run(2, no_gradient, NULL);
}

// ---- what does not fit ------------------------------------------------------

#define REFUSED(r, expression, ...)                                 \
  do {                                                              \
    calx_scope *scope_ = calx_scope_begin();                        \
    expression;                                                     \
    RANK_STATUS((r), CALX_INVALID_ARGUMENT, calx_scope_end(scope_), \
                __VA_ARGS__);                                       \
  } while (0)

static calx_status *refused(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(1, 2, 3), *b = calx_gt(x, 1);
  static const int64_t twice[] = { 0, 0 }, none[] = { 0, 7 }, few[] = { 1 };
  REFUSED(r, calx_all_reduce(x, CALX_REDUCE_AND),
          "all_reduce: AND of f32: it combines bool and integers");
  REFUSED(r, calx_all_reduce(b, CALX_REDUCE_SUM),
          "all_reduce: SUM of bool: it combines numbers");
  REFUSED(r, calx_all_reduce(b, CALX_REDUCE_OR, .scale = 2),
          "all_reduce: bool is not scaled by 2");
  REFUSED(r,
          calx_all_reduce(calx_to_dtype(x, CALX_I32), CALX_REDUCE_SUM,
                          .scale = 0.5),
          "all_reduce: i32 is not scaled by 0.5");
  REFUSED(r, calx_all_reduce(x, (calx_reduce_type)9),
          "all_reduce: 9 is no type of reduction");
  REFUSED(r, calx_all_gather(x, 1),
          "all_gather: dim 1 is out of range: f32[3] has dims -1 to 0");
  REFUSED(r, calx_reduce_scatter(x, CALX_REDUCE_SUM, 0),
          "reduce_scatter: dimension 0 cannot be split into 2 equal parts");
  REFUSED(r, calx_all_to_all(x, 0, 2),
          "all_to_all: concat_dim 2 is out of range: ");
  REFUSED(r, calx_all_gather(x, 0, .groups = GROUPS(twice, 1)),
          "all_gather: groups: rank 0 is named twice");
  REFUSED(r, calx_all_gather(x, 0, .groups = GROUPS(none, 1)),
          "groups: rank 7 is none of the world's 2");
  REFUSED(r, calx_all_gather(x, 0, .groups = GROUPS(few, 1)),
          "groups: rank 0 is in none");
  REFUSED(r, calx_all_gather(x, 0, .groups = GROUPS(twice, 4)),
          "groups: 2 ids do not make 4 groups of equal size");
  REFUSED(r, calx_collective_permute(x, (int64_t[]){ 0, 2 }, 1),
          "collective_permute: pair 0: rank 2 is none of the world's 2");
  REFUSED(r, calx_collective_permute(x, (int64_t[]){ 0, 1, 0, 0 }, 2),
          "pair 1: rank 0 is source twice");
  REFUSED(r, calx_collective_permute(x, (int64_t[]){ 0, 1, 1, 1 }, 2),
          "pair 1: rank 1 is target twice");
  REFUSED(r, calx_collective_broadcast((&x), 1, 2),
          "collective_broadcast: root 2 is no index in a group of 2");
  calx_tensor *host = calx_host_tensor(&(float){ 1 }, CALX_F32, CALX_SHAPE(1));
  REFUSED(r, calx_all_reduce(host, CALX_REDUCE_SUM), "all_reduce");
  // None of the list is replaced when one does not fit.
  calx_tensor *list[] = { x, b };
  REFUSED(r, calx_all_reduce_list(list, 2, CALX_REDUCE_SUM), "SUM of bool");
  calx_sync(x);
  RANK_VALUES(r, x, 0, 1, 2, 3);
  return calx_scope_end(step);
}

static void test_refused(void **state)
{
  (void)state;
  ranks_run(2, refused, NULL);
}

// ---- a world of one ---------------------------------------------------------

static void test_alone(void **state)
{
  (void)state;
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(1, 2);
  calx_tensor *t = calx_all_reduce(x, CALX_REDUCE_MUL);
  calx_tensor *half = calx_all_reduce(x, CALX_REDUCE_SUM, .scale = 0.5);
  calx_tensor *g = calx_all_gather(calx_select(x, 0, 1), 0);
  calx_tensor *s = calx_reduce_scatter(x, CALX_REDUCE_MAX, 0);
  calx_tensor *a = calx_all_to_all(x, 0, 0);
  calx_tensor *p = calx_collective_permute(x, (int64_t[]){ 0, 0 }, 1);
  calx_tensor *z = calx_collective_permute(x, NULL, 0);
  calx_collective_broadcast((&x), 1, 0);
  char *text = calx_graph_str(half);
  assert_null(strstr(text, "all_reduce"));
  calx_string_free(text);
  calx_sync(t, half, g, s, a, p, z);
  CHECK_VALUES(t, 0, 1, 2);
  CHECK_VALUES(half, 0, 0.5, 1);
  CHECK_VALUES(g, 0, 2);
  CHECK_VALUES(s, 0, 1, 2);
  CHECK_VALUES(a, 0, 1, 2);
  CHECK_VALUES(p, 0, 1, 2);
  CHECK_VALUES(z, 0, 0, 0);
  CHECK_STATUS_OK(calx_scope_end(step));
}

// What is changed in place later does not show in the result, as among several;
// gradients flow through it as through several's.
static void test_alone_is_its_own(void **state)
{
  (void)state;
  calx_scope *step = calx_scope_begin();
  for (int leaf = 0; leaf < 2; leaf++) {
    calx_tensor *x = RANK_VECTOR(1, 2);
    if (leaf != 0) calx_requires_grad(x, true);
    calx_tensor *all[] = {
      calx_all_reduce(x, CALX_REDUCE_SUM),
      calx_all_gather(x, 0),
      calx_reduce_scatter(x, CALX_REDUCE_SUM, 0),
      calx_all_to_all(x, 0, 0),
      calx_collective_permute(x, (int64_t[]){ 0, 0 }, 1),
    };
    enum { N = sizeof all / sizeof *all };
    if (leaf != 0) {
      calx_tensor *y = all[0], *w = RANK_VECTOR(3, 5);
      for (int i = 1; i < N; i++) y = calx_add(y, all[i]);
      calx_backward(calx_sum(calx_mul(y, w)));
      calx_tensor *grad = calx_grad(x);
      calx_sync(grad);
      CHECK_VALUES(grad, 0, 3 * N, 5 * N);
    } else {
      calx_assign(x, calx_neg(x));
      calx_sync_n(all, N);
      for (int i = 0; i < N; i++) CHECK_VALUES(all[i], 0, 1, 2);
    }
  }
  CHECK_STATUS_OK(calx_scope_end(step));
}

// ---- processes --------------------------------------------------------------

// One rank's part of all of the above.
static calx_status *every_value(int index, void *user)
{
  (void)user;
  static subject *f[] = { f_reduce, f_gather, f_scatter, f_all_to_all,
                          f_permute };
  static const struct {
    ranks_fn *fn;
    void *user;
  } parts[] = {
    { b39, NULL },          { every_type, NULL },   { scaled_integers, NULL },
    { b40, NULL },          { b41, NULL },          { b42, NULL },
    { b43, NULL },          { b48, NULL },          { differences, &f[0] },
    { differences, &f[1] }, { differences, &f[2] }, { differences, &f[3] },
    { differences, &f[4] }, { by_hand, NULL }
  };
  ranks_one r = { .rank = index, .n = calx_world_size() };
  if (r.n == 4) CALX_TRY(four_in_groups(&r));
  if (r.n == 3) CALX_TRY(three_turned(&r));
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    r.user = parts[i].user;
    CALX_TRY(parts[i].fn(&r));
  }
  if (!r.wrong) return NULL;
  return calx_status_new(CALX_INTERNAL, "a value is wrong, see above");
}

static void test_processes(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof ranks_worlds / sizeof *ranks_worlds; i++) {
    setenv("CPU_NUM_DEVICES", "1", 1);
    CHECK_STATUS_OK(
        calx_launch(every_value, NULL, .processes = ranks_worlds[i]));
  }
  setenv("CPU_NUM_DEVICES", "2", 1);
  CHECK_STATUS_OK(calx_launch(every_value, NULL, .processes = 2));
}

static int setup_processes(void **state)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  if (getenv("CALX_PLUGIN") == NULL) setenv("CALX_PLUGIN", "calx", 1);
  return support_setup(state);
}

int main(void)
{
  // First, because a process with threads launches no others.
  const struct CMUnitTest processes[] = { RANKS_TEST(test_processes) };
  const struct CMUnitTest tests[] = {
    RANKS_TEST(test_b39_all_reduce),
    RANKS_TEST(test_b39_types),
    RANKS_TEST(test_b39_scale),
    RANKS_TEST(test_groups),
    RANKS_TEST(test_b40_all_gather),
    RANKS_TEST(test_b41_reduce_scatter),
    RANKS_TEST(test_b42_all_to_all),
    RANKS_TEST(test_b43_collective_permute),
    RANKS_TEST(test_b48_broadcast),
    RANKS_TEST(test_gradients),
    RANKS_TEST(test_gradients_by_hand),
    RANKS_TEST(test_refused),
    RANKS_TEST(test_alone),
    RANKS_TEST(test_alone_is_its_own),
  };
  // Processes work together on our engine only: on others this is no case.
  const char *plugin = getenv("CALX_PLUGIN");
  int failed = 0;
  if (plugin == NULL || strcmp(plugin, "calx") == 0) {
    failed = cmocka_run_group_tests(processes, setup_processes, NULL);
  }
  return failed + cmocka_run_group_tests(tests, ranks_setup, NULL);
}
