// torch_cases: layers compared with PyTorch's, from a file of cases that a
// Python with torch writes: options, state dict, inputs, outputs, factors of
// the outputs in the loss, gradients.
#ifndef CX_TESTS_NN_TORCH_CASES_H
#define CX_TESTS_NN_TORCH_CASES_H

#include "calx/autograd.h"
#include "calx/io.h"
#include "calx/nn.h"
#include "support/torch.h"

enum { CASE_MOST = 64 };

typedef struct torch_case {
  const calx_value *all;
  calx_module *layer;
  double tolerance;
} torch_case;

static inline const calx_value *case_get(const torch_case *c, const char *part,
                                         const char *name)
{
  return calx_value_get(calx_value_get(c->all, part), name);
}

static inline int64_t case_int(const torch_case *c, const char *option)
{
  const calx_value *v = case_get(c, "options", option);
  if (calx_value_kind(v) == CALX_KIND_BOOL) return calx_value_as_bool(v);
  return calx_value_as_int(v);
}

static inline const char *case_text(const torch_case *c, const char *option)
{
  return calx_value_as_string(case_get(c, "options", option));
}

// An input of the case, which collects its gradient; NULL: it has none.
static inline calx_tensor *case_in(const torch_case *c, const char *name)
{
  calx_tensor *t = calx_value_as_tensor(case_get(c, "in", name));
  if (t == NULL) return NULL;
  calx_tensor *on_device = calx_to(t, calx_device_current());
  if (cx_dtype_is_float(calx_tensor_dtype(on_device))) {
    calx_requires_grad(on_device, true);
  }
  return on_device;
}

static inline calx_dtype case_dtype(const torch_case *c)
{
  const char *name = calx_value_as_string(calx_value_get(c->all, "dtype"));
  if (strcmp(name, "torch.float64") == 0) return CALX_F64;
  return strcmp(name, "torch.float32") == 0 ? CALX_F32 : CALX_BF16;
}

static inline void case_check(const torch_case *c, const char *part,
                              const char *name, calx_tensor *got)
{
  calx_tensor *want = calx_value_as_tensor(case_get(c, part, name));
  assert_non_null(want);
  assert_non_null(got);
  size_t n;
  calx_dims a = calx_tensor_shape(want), b = calx_tensor_shape(got);
  bool same = a.count == b.count;
  for (size_t i = 0; same && i < a.count; i++) {
    same = a.values[i] == b.values[i];
  }
  if (!same) print_error("%s %s: another shape\n", part, name);
  assert_true(same);
  double *w = support_read(want, &n), *g = support_read(got, &n);
  for (size_t i = 0; i < n; i++) {
    double allowed = c->tolerance * (1 + fabs(w[i]));
    if (support_is_close(g[i], w[i], allowed)) continue;
    print_error("%s %s, element %zu: got %.12g, wanted %.12g\n", part, name, i,
                g[i], w[i]);
    fail();
  }
  test_free(w);
  test_free(g);
}

// It prints as PyTorch's, and the state dict has PyTorch's names in PyTorch's
// order; then it is loaded.
static inline void case_load(const torch_case *c)
{
  const calx_value *want = calx_value_get(c->all, "state");
  calx_value *have;
  char *text = calx_module_str(c->layer);
  assert_string_equal(text,
                      calx_value_as_string(calx_value_get(c->all, "repr")));
  calx_string_free(text);
  CHECK_STATUS_OK(calx_module_state_dict(c->layer, &have));
  assert_int_equal(calx_value_count(have), calx_value_count(want));
  for (size_t i = 0; i < calx_value_count(want); i++) {
    assert_string_equal(calx_value_key(have, i), calx_value_key(want, i));
  }
  calx_value_free(have);
  CHECK_STATUS_OK(calx_module_load_state_dict(c->layer, want));
}

static inline calx_tensor *case_term(const torch_case *c, const char *name,
                                     calx_tensor *out)
{
  calx_tensor *factor = calx_value_as_tensor(case_get(c, "factors", name));
  return calx_sum(calx_mul(out, calx_to(factor, calx_device_current())));
}

// Every gradient of the case: of the inputs by their names, of the parameters.
static inline void case_check_grads(const torch_case *c, calx_tensor **in,
                                    const char *const *names, size_t n)
{
  const calx_value *grads = calx_value_get(c->all, "grads");
  for (size_t i = 0; i < calx_value_count(grads); i++) {
    const char *name = calx_value_key(grads, i);
    calx_tensor *t = calx_module_find(c->layer, name);
    for (size_t k = 0; k < n; k++) {
      if (strcmp(names[k], name) == 0) t = in[k];
    }
    assert_non_null(t);
    case_check(c, "grads", name, calx_grad(t));
  }
}

// The engine counts what it compiled, and none of it may be interpreted.
static inline void check_stats(const char *path)
{
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  char name[64];
  int compiled, kernels, interpreted, lines = 0;
  while (fscanf(f, "%63s %d %d %d", name, &compiled, &kernels, &interpreted) ==
         4) {
    assert_int_equal(interpreted, 0);
    lines++;
  }
  fclose(f);
  remove(path);
  assert_true(lines > 0);
}

typedef void case_fn(torch_case *c);

// Calls `run` for each case of the file that the script writes.
static inline void run_cases(const char *script, case_fn *run)
{
  char path[128];
  snprintf(path, sizeof path, "/tmp/calx_torch_cases_%ld.pt", (long)getpid());
  torch_run(script, path, "");
  char stats[sizeof path + 8];
  snprintf(stats, sizeof stats, "%s.stats", path);
  setenv("CALX_CPU_STATS", stats, 1);
  calx_value *all;
  CHECK_STATUS_OK(calx_load(path, &all));
  remove(path);
  size_t n = calx_value_count(all);
  assert_true(n > 10);
  const size_t stride = (size_t)all_or_sample(1, 7);
  for (size_t i = 0; i < n; i += stride) {
    torch_case c = { .all = calx_value_item(all, i) };
    calx_dtype d = case_dtype(&c);
    c.tolerance = d == CALX_F64 ? 1e-11 : d == CALX_F32 ? 2e-5 : 4e-2;
    calx_scope *s = calx_scope_begin();
    run(&c);
    calx_status *status = calx_scope_end(s);
    if (status != NULL) print_error("case %zu\n", i);
    CHECK_STATUS_OK(status);
  }
  calx_value_free(all);
  unsetenv("CALX_CPU_STATS");
  if (support_own_engine()) check_stats(stats);
}

#endif
