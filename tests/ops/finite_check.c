// finite_check: see finite.h.
#include "finite.h"

#include "support/long.h"

// ---- points -----------------------------------------------------------------

enum { MOST = 128 };

typedef struct point {
  double values[3][MOST];
  size_t counts[3];
} point;

// A fixed sequence of numbers, spread so that no two are equal: kinks and ties
// of maxima lie far from the steps.
static double next_number(uint64_t *state, double low, double high)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  double u = (double)(*state >> 40) / (double)(1 << 24);
  return low + (high - low) * u;
}

static point make_point(const subject *s, uint64_t *state)
{
  point p = { .counts = { 0, 0, 0 } };
  for (size_t k = 0; k < s->n_in; k++) {
    p.counts[k] = 1;
    for (size_t i = 0; i < s->ranks[k]; i++) {
      p.counts[k] *= (size_t)s->dims[k][i];
    }
    assert_true(p.counts[k] <= MOST);
    for (size_t i = 0; i < p.counts[k]; i++) {
      p.values[k][i] = next_number(state, s->low, s->high);
    }
  }
  return p;
}

// An alternating weight of the elements, different for each.
static calx_tensor *weights(const calx_tensor *like, double first)
{
  double w[4 * MOST];
  size_t n = (size_t)calx_tensor_numel(like);
  assert_true(n <= 4 * MOST);
  for (size_t i = 0; i < n; i++) w[i] = first + 0.37 * sin(1.7 * (double)i + 1);
  return calx_tensor_from(w, CALX_F64, calx_tensor_shape(like));
}

typedef struct result {
  double f, vg;  // the objective; v . its gradient
  double first[3][MOST], second[3][MOST];
} result;

static void read_all(calx_tensor *t, double *out)
{
  size_t n;
  double *values = support_read(t, &n);
  for (size_t i = 0; i < n; i++) out[i] = values[i];
  test_free(values);
}

static void evaluate(const subject *s, const point *p, result *r)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *in[3] = { NULL }, *first[3], *second[3];
  for (size_t k = 0; k < s->n_in; k++) {
    in[k] = calx_tensor_from(p->values[k], CALX_F64,
                             calx_dims_of(s->dims[k], s->ranks[k]));
    calx_requires_grad(in[k], true);
  }
  calx_tensor *y = s->fn(in);
  calx_tensor *f = calx_sum(calx_mul(y, weights(y, 0.9)));
  calx_grad_of_options o = { .size = sizeof o, .create_graph = true };
  calx_grad_of_with(f, in, s->n_in, first, &o);
  r->f = calx_item(f);
  calx_tensor *vg = NULL;
  for (size_t k = 0; k < s->n_in; k++) {
    if (first[k] == NULL) fail_msg("%s: no gradient of input %zu", s->name, k);
    calx_tensor *part =
        calx_sum(calx_mul(first[k], weights(first[k], -0.4 - (double)k)));
    vg = vg == NULL ? part : calx_add(vg, part);
    read_all(first[k], r->first[k]);
  }
  if (!s->flat) {
    r->vg = calx_item(vg);
    calx_grad_of(vg, in, s->n_in, second, .allow_unused = true);
    for (size_t k = 0; k < s->n_in; k++) {
      for (size_t i = 0; i < MOST; i++) r->second[k][i] = 0;
      if (second[k] != NULL) read_all(second[k], r->second[k]);
    }
  }
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static bool agree(const subject *s, const char *which, size_t k, size_t i,
                  double got, double want)
{
  double tolerance = 2e-6 * (1 + fabs(want));
  if (fabs(got - want) <= tolerance) return true;
  print_message(
      "%s: %s derivative, input %zu element %zu: %.9g, differences "
      "say %.9g\n",
      s->name, which, k, i, got, want);
  return false;
}

static bool check(const subject *s)
{
  static const double h = 1e-5;
  uint64_t state = 7;
  point p = make_point(s, &state);
  result at, above, below;
  evaluate(s, &p, &at);
  bool good = true;
  for (size_t k = 0; k < s->n_in; k++) {
    // Every third element of the large ones: all ops are uniform in them.
    size_t stride = p.counts[k] > 16 ? 5 : 1;
    for (size_t i = 0; i < p.counts[k]; i += stride) {
      double x = p.values[k][i];
      p.values[k][i] = x + h;
      evaluate(s, &p, &above);
      p.values[k][i] = x - h;
      evaluate(s, &p, &below);
      p.values[k][i] = x;
      good &= agree(s, "first", k, i, at.first[k][i],
                    (above.f - below.f) / (2 * h));
      if (s->flat) continue;
      good &= agree(s, "second", k, i, at.second[k][i],
                    (above.vg - below.vg) / (2 * h));
    }
  }
  return good;
}

void finite_check(const subject *all, size_t n, size_t second_every)
{
  size_t good = 0, ran = 0;
  const char *only = getenv("CALX_TEST_CASE");
  const size_t every = only != NULL ? 1 : (size_t)all_or_sample(1, 4);
  for (size_t i = 0; i < n; i += every) {
    subject s = all[i];
    if (only != NULL && strcmp(only, s.name) != 0) continue;
    s.flat |= only == NULL && i % second_every != 0;
    good += check(&s);
    ran++;
  }
  print_message("finite differences: %zu of %zu ops agree\n", good, ran);
  assert_int_equal(good, ran);
}
