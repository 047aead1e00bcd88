// Data, expected sums and comparison for the kernels' tests.
#include "case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/verify.h"

static uint64_t state = 1;

void pick_seed(uint64_t seed)
{
  state = seed * 2654435761u + 1;
}

unsigned pick(unsigned n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % n;
}

// ---- tensors ----------------------------------------------------------------

void array_init(array *a, cx_hlo_elem elem, const int64_t *dims, size_t rank)
{
  a->elem = elem;
  a->rank = rank;
  a->n = 1;
  for (size_t i = 0; i < rank; i++) {
    a->dims[i] = dims[i];
    a->n *= (size_t)dims[i];
  }
  a->data = calloc(a->n + 1, cx_hlo_elem_bytes(elem));
}

void array_free(array *a)
{
  free(a->data);
}

cx_hlo_type array_type(const array *a)
{
  return (cx_hlo_type){ a->elem, a->rank, a->dims };
}

static double half_value(uint16_t h)
{
  int exponent = (h >> 10) & 31, fraction = h & 1023;
  double v = exponent == 0 ? ldexp(fraction, -24)
                           : ldexp(1024 + fraction, exponent - 25);
  return h >> 15 ? -v : v;
}

static double part_value(cx_hlo_elem elem, const unsigned char *p)
{
  uint16_t h;
  float f;
  double d;
  memcpy(&h, p, 2);
  switch (elem) {
    case CX_HLO_F16: return half_value(h);
    case CX_HLO_BF16: {
      uint32_t u = (uint32_t)h << 16;
      memcpy(&f, &u, 4);
      return (double)f;
    }
    case CX_HLO_F32:
    case CX_HLO_C64: memcpy(&f, p, 4); return (double)f;
    default: memcpy(&d, p, 8); return d;
  }
}

number array_get(const array *a, size_t i)
{
  const size_t bytes = cx_hlo_elem_bytes(a->elem);
  const unsigned char *p = a->data + i * bytes;
  number n = { 0, 0, 0 };
  if (cx_hlo_elem_is_complex(a->elem)) {
    n.re = part_value(a->elem, p);
    n.im = part_value(a->elem, p + bytes / 2);
    return n;
  }
  if (cx_hlo_elem_is_float(a->elem)) {
    n.re = part_value(a->elem, p);
    return n;
  }
  memcpy(&n.bits, p, bytes);
  const bool is_signed =
      !cx_hlo_elem_is_unsigned(a->elem) && a->elem != CX_HLO_I1 && bytes < 8;
  if (is_signed && (n.bits >> (8 * bytes - 1)) != 0) {
    n.bits |= UINT64_MAX << (8 * bytes);
  }
  n.re = is_signed ? (double)(int64_t)n.bits : (double)n.bits;
  return n;
}

void array_fill(array *a)
{
  const size_t bytes = cx_hlo_elem_bytes(a->elem);
  for (size_t i = 0; i < a->n; i++) {
    unsigned char *p = a->data + i * bytes;
    const float f = (float)((int)pick(257) - 128) / 64.0F;
    const float g = (float)((int)pick(257) - 128) / 64.0F;
    const double two[2] = { (double)f, (double)g };
    uint32_t u;
    memcpy(&u, &f, 4);
    const uint16_t brain = (uint16_t)(u >> 16);
    const uint16_t half = f == 0
                              ? 0
                              : (uint16_t)(((u >> 16) & 0x8000) |
                                           ((((u >> 23) & 255) - 112) << 10) |
                                           ((u >> 13) & 1023));
    switch (a->elem) {
      case CX_HLO_I1: *p = (unsigned char)(pick(6) == 0); break;
      case CX_HLO_F32: memcpy(p, &f, 4); break;
      case CX_HLO_F64: memcpy(p, two, 8); break;
      case CX_HLO_BF16: memcpy(p, &brain, 2); break;
      case CX_HLO_F16: memcpy(p, &half, 2); break;
      case CX_HLO_C64: memcpy(p, (float[2]){ f, g }, 8); break;
      case CX_HLO_C128: memcpy(p, two, 16); break;
      default:
        for (size_t k = 0; k < bytes; k++) p[k] = (unsigned char)pick(256);
    }
  }
}

// ---- sums -------------------------------------------------------------------

void sum_add(sum *s, const array *x, size_t i, const array *y, size_t k,
             cx_hlo_elem out)
{
  const number a = array_get(x, i), b = array_get(y, k);
  const double re = a.re * b.re - a.im * b.im;
  const double im = a.re * b.im + a.im * b.re;
  s->value.re += re;
  s->value.im += im;
  s->size += fabs(a.re * b.re) + fabs(a.im * b.im) + fabs(a.re * b.im) +
             fabs(a.im * b.re);
  if (out == CX_HLO_I1) {
    s->value.bits |= a.bits & b.bits;
  } else {
    s->value.bits += a.bits * b.bits;
  }
}

bool sum_is(const sum *s, const array *got, size_t i)
{
  const number g = array_get(got, i);
  const bool complex = cx_hlo_elem_is_complex(got->elem);
  if (!complex && !cx_hlo_elem_is_float(got->elem)) {
    const size_t bits = 8 * cx_hlo_elem_bytes(got->elem);
    return ((g.bits ^ s->value.bits) << (64 - bits)) == 0;
  }
  // f32 may be summed in any order; Winograd's algorithm is less accurate.
  double unit = 2e-6, last = 0;
  if (got->elem == CX_HLO_F64 || got->elem == CX_HLO_C128) unit = 1e-14;
  if (got->elem == CX_HLO_BF16) last = 1.0 / 256;
  if (got->elem == CX_HLO_F16) last = 1.0 / 2048;
  double error = hypot(g.re - s->value.re, g.im - s->value.im);
  return error <= unit * s->size + last * hypot(s->value.re, s->value.im) +
                      1e-30 + (got->elem == CX_HLO_F16 ? 1e-7 : 0);
}

// ---- cases ------------------------------------------------------------------

void case_finish(kernel_case *c, cx_hlo_builder *b, cx_hlo_value *value,
                 cx_hlo_elem elem)
{
  calx_status *status = cx_hlo_builder_finish(b, &value, 1, &c->module);
  if (status != NULL) calx_status_print(stderr, status);
  assert_null(status);
  status = cx_hlo_verify(c->module);
  if (status != NULL) calx_status_print(stderr, status);
  assert_null(status);
  c->op = cx_hlo_entry(c->module)->body.first->first;
  cx_hlo_type *t = &c->op->results[0].type.tensor;
  t->elem = elem;
  array_init(&c->out, t->elem, t->dims, t->rank);
  c->want = calloc(c->out.n + 1, sizeof *c->want);
}

void case_free(kernel_case *c)
{
  cx_hlo_module_free(c->module);
  array_free(&c->lhs);
  array_free(&c->rhs);
  array_free(&c->out);
  free(c->want);
}

calx_status *kernel_run(const cpu_kernel *kernel, cpu_threads *pool,
                        const void *lhs, const void *rhs, void *out,
                        void *scratch)
{
  void *const buffers[] = { (void *)(uintptr_t)lhs, (void *)(uintptr_t)rhs, out,
                            scratch };
  return cpu_kernel_run(kernel, pool, buffers);
}

cpu_kernel_desc product_desc(int64_t m, int64_t n, int64_t k, bool lhs_turned,
                             bool rhs_turned)
{
  const int64_t l[2] = { lhs_turned ? k : m, lhs_turned ? m : k };
  const int64_t r[2] = { rhs_turned ? n : k, rhs_turned ? k : n };
  const cx_hlo_type types[2] = { { CX_HLO_F32, 2, l }, { CX_HLO_F32, 2, r } };
  const int64_t lhs = lhs_turned ? 0 : 1, rhs = rhs_turned ? 1 : 0;
  const cx_hlo_dot_dims d = { .lhs_contract = &lhs,
                              .rhs_contract = &rhs,
                              .n_contract = 1 };
  cx_hlo_builder *b;
  assert_null(cx_hlo_builder_new("m", "main", types, 2, &b));
  cx_hlo_value *v = cx_hlo_dot_general(b, cx_hlo_param(b, 0),
                                       cx_hlo_param(b, 1), &d, CX_HLO_F32);
  cx_hlo_module *module;
  assert_null(cx_hlo_builder_finish(b, &v, 1, &module));
  cpu_kernel_desc desc;
  assert_true(
      cpu_kernel_describe(cx_hlo_entry(module)->body.first->first, &desc));
  cx_hlo_module_free(module);
  return desc;
}

void desc_run(cpu_kernel_desc *desc, cpu_threads *pool, const void *lhs,
              const void *rhs, void *out)
{
  cpu_kernel *kernel;
  assert_null(cpu_kernel_new(desc, pool, false, &kernel));
  const size_t bytes = (cpu_kernel_scratch(kernel) + 64) / 64 * 64;
  void *scratch = aligned_alloc(64, bytes);
  assert_null(kernel_run(kernel, pool, lhs, rhs, out, scratch));
  free(scratch);
  cpu_kernel_free(kernel);
}

bool desc_run_zeros(cpu_kernel_desc *desc, cpu_threads *pool, calx_status **out)
{
  *out = NULL;
  cpu_kernel *kernel = NULL;
  bool small = cpu_kernel_flops(desc) < 1e7;
  calx_status *status = cpu_kernel_new(desc, pool, false, &kernel);
  if (status != NULL) {
    assert_null(kernel);
    calx_status_free(status);
    return false;
  }
  size_t bytes[CPU_KERNEL_BUFFERS + 1];
  void *memory[CPU_KERNEL_BUFFERS + 1] = { NULL };
  const size_t n = cpu_kernel_buffers(kernel, bytes);
  bytes[n] = cpu_kernel_scratch(kernel);
  for (size_t i = 0; i <= n; i++) small = small && bytes[i] < 1 << 22;
  for (size_t i = 0; small && i <= n; i++) {
    // Exactly its size, so that sanitizers see overruns.
    assert_int_equal(posix_memalign(&memory[i], 64, bytes[i] + 1), 0);
    memset(memory[i], 0, bytes[i]);
  }
  if (small) *out = cpu_kernel_run(kernel, pool, memory);
  for (size_t i = 0; i <= n; i++) free(memory[i]);
  cpu_kernel_free(kernel);
  return true;
}

size_t case_run(kernel_case *c, cpu_threads *pool, bool tune)
{
  cpu_kernel_desc desc, copy;
  assert_true(cpu_kernel_describe(c->op, &desc));
  if (c->choice != 0) desc.words[1] = c->choice;
  copy = desc;
  cpu_kernel *kernel;
  calx_status *status = cpu_kernel_new(&desc, pool, tune, &kernel);
  if (status != NULL) calx_status_print(stderr, status);
  assert_null(status);
  if (c->choice != 0) {
    assert_non_null(strstr(cpu_kernel_name(kernel), c->name));
  }
  if (!tune) assert_memory_equal(&desc, &copy, sizeof desc);
  size_t bytes[CPU_KERNEL_BUFFERS];
  assert_int_equal(cpu_kernel_buffers(kernel, bytes), 3);
  assert_int_equal(bytes[0], c->lhs.n * cx_hlo_elem_bytes(c->lhs.elem));
  assert_int_equal(bytes[1], c->rhs.n * cx_hlo_elem_bytes(c->rhs.elem));
  assert_int_equal(bytes[2], c->out.n * cx_hlo_elem_bytes(c->out.elem));
  // Exactly the size that the kernel asks for, so that sanitizers see overruns.
  size_t scratch_bytes = cpu_kernel_scratch(kernel);
  void *scratch = NULL;
  assert_int_equal(posix_memalign(&scratch, 64, scratch_bytes + 1), 0);
  memset(scratch, 0xff, scratch_bytes);
  memset(c->out.data, 0xee, bytes[2]);
  status =
      kernel_run(kernel, pool, c->lhs.data, c->rhs.data, c->out.data, scratch);
  if (status != NULL) calx_status_print(stderr, status);
  assert_null(status);
  size_t wrong = 0;
  for (size_t i = 0; i < c->out.n; i++)
    wrong += !sum_is(&c->want[i], &c->out, i);
  if (wrong != 0) {
    for (size_t i = 0, n = 0; i < c->out.n && n < 3; i++) {
      if (sum_is(&c->want[i], &c->out, i)) continue;
      const number g = array_get(&c->out, i);
      print_message("[%zu]: %g%+gi, wanted %g%+gi (%llx, %llx)\n", i, g.re,
                    g.im, c->want[i].value.re, c->want[i].value.im,
                    (unsigned long long)g.bits,
                    (unsigned long long)c->want[i].value.bits);
      n++;
    }
    print_message("%s: %zu of %zu are wrong; %s x %s -> %s\n",
                  cpu_kernel_name(kernel), wrong, c->out.n,
                  cx_hlo_elem_name(c->lhs.elem), cx_hlo_elem_name(c->rhs.elem),
                  cx_hlo_elem_name(c->out.elem));
  }
  free(scratch);
  cpu_kernel_free(kernel);
  return wrong;
}

// ---- dots -------------------------------------------------------------------

typedef struct dot_dims {
  size_t n_batch, n_contract;
  int64_t batch[2][2], contract[2][2];  // by operand
} dot_dims;

static size_t offset(const array *a, const int64_t *index)
{
  size_t at = 0;
  for (size_t i = 0; i < a->rank; i++) {
    at = at * (size_t)a->dims[i] + (size_t)index[i];
  }
  return at;
}

static bool step(int64_t *index, const int64_t *sizes, size_t n)
{
  for (size_t i = n; i-- > 0;) {
    if (++index[i] < sizes[i]) return true;
    index[i] = 0;
  }
  return false;
}

static void dot_sums(kernel_case *c, const dot_dims *d)
{
  // Where the operands' dimensions are in the result and the sum.
  size_t free_of[2][8], n_free[2] = { 0, 0 };
  const array *x[2] = { &c->lhs, &c->rhs };
  for (size_t s = 0; s < 2; s++) {
    for (size_t i = 0; i < x[s]->rank; i++) {
      bool used = false;
      for (size_t k = 0; k < d->n_batch; k++) {
        used = used || d->batch[s][k] == (int64_t)i;
      }
      for (size_t k = 0; k < d->n_contract; k++) {
        used = used || d->contract[s][k] == (int64_t)i;
      }
      if (!used) free_of[s][n_free[s]++] = i;
    }
  }
  int64_t inner[2] = { 1, 1 };
  for (size_t k = 0; k < d->n_contract; k++) {
    inner[k] = c->lhs.dims[d->contract[0][k]];
  }
  if (c->out.n == 0 || inner[0] == 0 || inner[1] == 0) return;
  int64_t at[8] = { 0 };
  for (size_t o = 0; o < c->out.n; o++) {
    int64_t index[2][8] = { { 0 } }, in[2] = { 0, 0 };
    size_t r = 0;
    for (size_t k = 0; k < d->n_batch; k++, r++) {
      index[0][d->batch[0][k]] = index[1][d->batch[1][k]] = at[r];
    }
    for (size_t s = 0; s < 2; s++) {
      for (size_t k = 0; k < n_free[s]; k++) index[s][free_of[s][k]] = at[r++];
    }
    do {
      for (size_t k = 0; k < d->n_contract; k++) {
        index[0][d->contract[0][k]] = index[1][d->contract[1][k]] = in[k];
      }
      sum_add(&c->want[o], x[0], offset(x[0], index[0]), x[1],
              offset(x[1], index[1]), c->out.elem);
    } while (step(in, inner, 2));
    step(at, c->out.dims, c->out.rank);
  }
}

// n different numbers below `rank` that are not yet in `used`.
static void place(int64_t *out, size_t n, size_t rank, unsigned *used)
{
  for (size_t i = 0; i < n; i++) {
    unsigned at;
    do at = pick((unsigned)rank);
    while ((*used >> at & 1) != 0);
    *used |= 1u << at;
    out[i] = at;
  }
}

static int64_t pick_size(unsigned of)
{
  if (of == 0) return 0;
  return pick(12) == 0 ? 1 + (int64_t)pick(70) : 1 + (int64_t)pick(9);
}

// `large`: with one row, column and contracted dimension each; sometimes with
// few rows, for which oneDNN's product is used from a smaller size on. `tiny`:
// many batches of few rows, columns and contracted elements.
typedef enum dot_size { SMALL, LARGE, THIN, TINY } dot_size;

// The size of a dimension that only one operand has.
static int64_t pick_free(dot_size of, bool few, bool thin_side)
{
  if (of == TINY) return 1 + (int64_t)pick(5);
  if (of == THIN) return thin_side ? 1 + (int64_t)pick(8) : 16 + pick(600);
  return few ? (thin_side ? 16 : 480) + (int64_t)pick(15) : 45 + pick(60);
}

static void make_dot(kernel_case *c, const cx_hlo_elem elems[3], dot_size of)
{
  const bool large = of != SMALL;
  const bool few = of == LARGE && pick(3) == 0;
  const size_t thin = of == THIN ? pick(2) : 0;
  dot_dims d = { .n_batch = of == TINY ? 1
                            : few      ? 0
                                       : pick(large ? 2 : 3),
                 .n_contract = large ? 1 : pick(3) };
  const size_t rank[2] = { d.n_batch + d.n_contract + (large ? 1 : pick(3)),
                           d.n_batch + d.n_contract + (large ? 1 : pick(3)) };
  int64_t dims[2][8];
  const unsigned empty = large ? 2 : pick(25);
  for (size_t s = 0; s < 2; s++) {
    unsigned used = 0;
    if (rank[s] != 0) {
      place(d.batch[s], d.n_batch, rank[s], &used);
      place(d.contract[s], d.n_contract, rank[s], &used);
    }
    for (size_t i = 0; i < rank[s]; i++) {
      dims[s][i] = large ? pick_free(of, few, s == thin) : pick_size(empty + 1);
    }
  }
  for (size_t k = 0; k < d.n_batch; k++) {
    dims[1][d.batch[1][k]] = dims[0][d.batch[0][k]] =
        of == TINY ? 14 + (int64_t)pick(300) : pick_size(empty);
  }
  for (size_t k = 0; k < d.n_contract; k++) {
    dims[1][d.contract[1][k]] = dims[0][d.contract[0][k]] =
        few          ? 560 + (int64_t)pick(15)
        : of == THIN ? 8 + (int64_t)pick(200)
        : of == TINY ? 1 + (int64_t)pick(5)
        : large      ? 50 + (int64_t)pick(60)
                     : pick_size(empty == 1 ? 0 : 1);
  }
  memset(c, 0, sizeof *c);
  array_init(&c->lhs, elems[0], dims[0], rank[0]);
  array_init(&c->rhs, elems[1], dims[1], rank[1]);
  array_fill(&c->lhs);
  array_fill(&c->rhs);
  const cx_hlo_type params[2] = { array_type(&c->lhs), array_type(&c->rhs) };
  const cx_hlo_dot_dims numbers = { .lhs_batch = d.batch[0],
                                    .rhs_batch = d.batch[1],
                                    .n_batch = d.n_batch,
                                    .lhs_contract = d.contract[0],
                                    .rhs_contract = d.contract[1],
                                    .n_contract = d.n_contract };
  cx_hlo_builder *b;
  assert_null(cx_hlo_builder_new("m", "main", params, 2, &b));
  case_finish(c, b,
              cx_hlo_dot_general(b, cx_hlo_param(b, 0), cx_hlo_param(b, 1),
                                 &numbers, elems[2]),
              elems[2]);
  dot_sums(c, &d);
}

void dot_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  make_dot(c, elems, SMALL);
}

void large_dot_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  make_dot(c, elems, LARGE);
}

void thin_dot_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  make_dot(c, elems, THIN);
}

void tiny_dot_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  make_dot(c, elems, TINY);
}
