// Products of a few rows, in vectors of each width that this processor has, in
// each type and layout, against sums in double.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "kernel/half.h"
#include "kernel/rows.h"

static cpu_kernel_rows_fn *const widths[] = { cpu_kernel_rows_16,
                                              cpu_kernel_rows_32,
                                              cpu_kernel_rows_64 };
static const cx_hlo_elem types[] = { CX_HLO_F32, CX_HLO_BF16, CX_HLO_F16,
                                     CX_HLO_I8 };

// A small integer, which all types have.
static double put(cx_hlo_elem type, void *b, int64_t at)
{
  const int v = (int)pick(255) - 127;
  const float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  switch (type) {
    case CX_HLO_F32: ((float *)b)[at] = f; break;
    case CX_HLO_BF16: ((uint16_t *)b)[at] = (uint16_t)(bits >> 16); break;
    case CX_HLO_F16:
      ((uint16_t *)b)[at] =
          v == 0 ? 0
                 : (uint16_t)((bits >> 16 & 0x8000) |
                              (((bits >> 23 & 255) - 112) << 10) |
                              (bits >> 13 & 1023));
      break;
    default: ((int8_t *)b)[at] = (int8_t)v; break;
  }
  return (double)v;
}

// `pad` elements lie between the rows or columns that are dense.
static void check(cpu_kernel_rows_fn *run, cx_hlo_elem type, int64_t m,
                  int64_t n, int64_t k, bool columns, int64_t pad)
{
  const int64_t line = (columns ? k : n) + pad, lines = columns ? n : k;
  const int64_t elements = line * lines - pad;
  float *a = malloc((size_t)(m * k) * sizeof *a);
  float *c = malloc((size_t)(m * n) * sizeof *c);
  void *b = calloc((size_t)elements, cx_hlo_elem_bytes(type));
  double *exact = calloc((size_t)elements, sizeof *exact);
  for (int64_t i = 0; i < m * k; i++) a[i] = (float)pick(1000) / 1000 - 0.5F;
  for (int64_t i = 0; i < elements; i++) exact[i] = put(type, b, i);
  const cpu_kernel_rows r = { .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .a_row = k,
                              .a_column = 1,
                              .b = b,
                              .type = type,
                              .b_row = columns ? 1 : line,
                              .b_column = columns ? line : 1,
                              .c = c,
                              .c_row = n,
                              .c_column = 1 };
  run(&r);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double total = 0, size = 0;
      for (int64_t p = 0; p < k; p++) {
        const double x =
            (double)a[i * k + p] * exact[p * r.b_row + j * r.b_column];
        total += x;
        size += fabs(x);
      }
      if (fabs((double)c[i * n + j] - total) > 3e-6 * size) {
        fail_msg("type %d, %d x %d x %d, columns %d, row %d, column %d", type,
                 (int)m, (int)k, (int)n, columns, (int)i, (int)j);
      }
    }
  }
  free(a);
  free(b);
  free(c);
  free(exact);
}

static void all_widths(void **state)
{
  (void)state;
  static const int64_t columns[] = { 1, 3, 4, 7, 16, 65, 515 };
  static const int64_t inner[] = { 1, 15, 64, 203 };
  pick_seed(3);
  for (int w = 0; w < 3 && 16 << w <= cpu_kernel_vector_bytes(); w++) {
    for (size_t t = 0; t < 4; t++) {
      for (int64_t m = 1; m <= CPU_KERNEL_ROWS_MOST; m++) {
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++) {
          const size_t p = (j + (size_t)m + t) % 4;
          const int64_t pad = (int64_t)pick(2) * 5;
          check(widths[w], types[t], m, columns[j], inner[p], true, pad);
          check(widths[w], types[t], m, columns[j], inner[p], false, pad);
        }
      }
    }
  }
}

// Sums over more products than are added up in f32.
static void long_sums(void **state)
{
  (void)state;
  pick_seed(4);
  for (int w = 0; w < 3 && 16 << w <= cpu_kernel_vector_bytes(); w++) {
    for (size_t t = 0; t < 4; t++) {
      check(widths[w], types[t], 1 + (int64_t)t * 2, 9, 5003, true, 0);
      check(widths[w], types[t], 1 + (int64_t)t * 2, 9, 5003, false, 0);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_widths),
    cmocka_unit_test(long_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
