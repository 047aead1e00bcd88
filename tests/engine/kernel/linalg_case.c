#include "linalg_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "hlo/number.h"
#include "hlo/parse.h"
#include "hlo/verify.h"

static int64_t rows_of(const problem *p)
{
  return p->left || !p->solves ? p->n : p->others;
}

static int64_t columns_of(const problem *p)
{
  return p->left && p->solves ? p->others : p->n;
}

void problem_describe(const problem *p, cpu_kernel_desc *out)
{
  static const char *const how[] = { "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT" };
  char a[80], b[80], text[1000];
  snprintf(a, sizeof a, "tensor<%lldx%lldx%lldx%s>", (long long)p->batch,
           (long long)p->n, (long long)p->n, p->type);
  snprintf(b, sizeof b, "tensor<%lldx%lldx%lldx%s>", (long long)p->batch,
           (long long)rows_of(p), (long long)columns_of(p), p->type);
  if (p->solves) {
    snprintf(text, sizeof text,
             "func.func @main(%%a: %s, %%b: %s) -> %s {\n"
             "%%r = \"stablehlo.triangular_solve\"(%%a, %%b) <{left_side = %s, "
             "lower = %s, unit_diagonal = %s, transpose_a = #stablehlo"
             "<transpose %s>}> : (%s, %s) -> %s\nreturn %%r : %s\n}",
             a, b, b, p->left ? "true" : "false", p->lower ? "true" : "false",
             p->unit_diagonal ? "true" : "false", how[p->transpose], a, b, b,
             b);
  } else {
    snprintf(text, sizeof text,
             "func.func @main(%%a: %s) -> %s {\n%%r = stablehlo.cholesky %%a, "
             "lower = %s : %s\nreturn %%r : %s\n}",
             a, a, p->lower ? "true" : "false", a, a);
  }
  cx_hlo_module *m = NULL;
  assert_null(cx_hlo_parse(text, strlen(text), "text", &m));
  assert_null(cx_hlo_verify(m));
  memset(out, 0, sizeof *out);
  assert_true(cpu_kernel_describe(cx_hlo_entry(m)->body.first->first, out));
  cx_hlo_module_free(m);
}

void problem_store(const problem *p, unsigned char *to, int64_t i, double v)
{
  cx_hlo_store_number(p->elem, to + (size_t)i * cx_hlo_elem_bytes(p->elem), v);
}

double problem_load(const problem *p, const unsigned char *from, int64_t i)
{
  return cx_hlo_load_real(p->elem,
                          from + (size_t)i * cx_hlo_elem_bytes(p->elem));
}

void problem_allocate(problem *p)
{
  const size_t each = cx_hlo_elem_bytes(p->elem);
  const size_t n = (size_t)(p->batch * p->n * p->n);
  const size_t m = p->solves ? (size_t)(p->batch * p->n * p->others) : n;
  p->a = calloc(n + 1, sizeof *p->a);
  p->b = calloc(m + 1, sizeof *p->b);
  p->lhs = calloc(n + 1, each);
  p->rhs = calloc(m + 1, each);
  p->out = calloc(m + 1, each);
}

void problem_release(problem *p)
{
  free(p->a);
  free(p->b);
  free(p->lhs);
  free(p->rhs);
  free(p->out);
}

void problem_run(problem *p, cpu_threads *pool)
{
  cpu_kernel_desc desc;
  problem_describe(p, &desc);
  cpu_kernel *k = NULL;
  assert_null(cpu_kernel_new(&desc, pool, true, &k));
  const size_t room = (cpu_kernel_scratch(k) / 64 + 1) * 64;
  void *scratch = aligned_alloc(64, room);
  memset(scratch, 0xff, room);  // NaN: nothing there may be read
  assert_null(kernel_run(k, pool, p->lhs, p->solves ? p->rhs : p->lhs, p->out,
                         scratch));
  free(scratch);
  cpu_kernel_free(k);
}
