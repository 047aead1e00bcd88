// loops: vectors of every width that this processor has give the same bits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coll/loops.h"
#include "hlo/number.h"

enum { COUNT = 1003, BYTES = COUNT * 16 };

static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ADD,     CX_HLO_OP_MULTIPLY,
                                        CX_HLO_OP_MAXIMUM, CX_HLO_OP_MINIMUM,
                                        CX_HLO_OP_AND,     CX_HLO_OP_OR,
                                        CX_HLO_OP_XOR };
static const cx_hlo_elem elems[] = { CX_HLO_I1,   CX_HLO_I8,   CX_HLO_I16,
                                     CX_HLO_I32,  CX_HLO_I64,  CX_HLO_UI8,
                                     CX_HLO_UI16, CX_HLO_UI32, CX_HLO_UI64,
                                     CX_HLO_BF16, CX_HLO_F16,  CX_HLO_F32,
                                     CX_HLO_F64,  CX_HLO_C64,  CX_HLO_C128 };

// Finite numbers of which products and sums are rounded.
static void fill(cx_hlo_elem e, unsigned char *to, uint64_t seed)
{
  cx_hlo_elem part = cx_hlo_elem_is_complex(e) ? cx_hlo_elem_part(e) : e;
  if (e == CX_HLO_BF16 || e == CX_HLO_F16) part = CX_HLO_F32;
  const size_t size = cx_hlo_elem_bytes(part);
  for (size_t at = 0; at < BYTES; at += size) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    if (cx_hlo_elem_is_float(part)) {
      cx_hlo_store_real(part, to + at, (double)(seed >> 40) / 3e6 - 2.5);
    } else {
      const uint64_t word = e == CX_HLO_I1 ? seed >> 40 & 1 : seed >> 13;
      memcpy(to + at, &word, size);
    }
  }
}

static size_t bytes_of(cx_hlo_elem e)
{
  const bool half = e == CX_HLO_BF16 || e == CX_HLO_F16;
  return COUNT * (half ? sizeof(float) : cx_hlo_elem_bytes(e));
}

static void check_combine(const cpu_coll_loops *loops, cx_hlo_op_kind kind,
                          cx_hlo_elem e)
{
  static _Alignas(16) unsigned char a[BYTES], x[BYTES], y[BYTES], z[BYTES];
  cpu_coll_loop *f = loops->of(kind, e);
  cpu_coll_loop *plain = cpu_coll_loops_16.of(kind, e);
  assert_true((f == NULL) == (plain == NULL));
  if (f == NULL) return;
  fill(e, a, 1);
  fill(e, x, 2);
  memcpy(z, a, BYTES);
  plain(z, z, x, COUNT);
  f(y, a, x, COUNT);
  assert_memory_equal(y, z, bytes_of(e));
  f(a, a, x, COUNT);
  assert_memory_equal(a, z, bytes_of(e));
}

enum { HALVES = 1 << 16, ROW = HALVES - 5 };

// In two rows, neither of which fills its last vector.
static void check_narrow(const cpu_coll_loops *loops, cx_hlo_elem e,
                         const float *x)
{
  static uint16_t back[2][HALVES];
  loops->narrow(e, x, ROW, back[0]);
  loops->narrow(e, x + ROW, HALVES - ROW, back[0] + ROW);
  cpu_coll_loops_16.narrow(e, x, HALVES, back[1]);
  assert_memory_equal(back[0], back[1], sizeof back[0]);
}

// Every 16-bit pattern there, and back; numbers of any size back, between two
// others, and in the middle.
static void check_halves(const cpu_coll_loops *loops, cx_hlo_elem e)
{
  static const uint32_t low[] = { 0x1000, 0x3000, 0x0fff, 0x8000, 0x4321 };
  static uint16_t all[HALVES];
  static float wide[2][HALVES];
  for (uint32_t i = 0; i < HALVES; i++) all[i] = (uint16_t)i;
  loops->widen(e, all, ROW, wide[0]);
  loops->widen(e, all + ROW, HALVES - ROW, wide[0] + ROW);
  cpu_coll_loops_16.widen(e, all, HALVES, wide[1]);
  assert_memory_equal(wide[0], wide[1], sizeof wide[0]);
  for (uint32_t i = 0; i < HALVES; i++) wide[0][i] *= 1.0009765f;
  check_narrow(loops, e, wide[0]);
  for (size_t k = 0; k < sizeof low / sizeof *low; k++) {
    for (uint32_t i = 0; i < HALVES; i++) {
      const uint32_t bits = i << 16 | low[k];
      memcpy(&wide[0][i], &bits, sizeof bits);
    }
    check_narrow(loops, e, wide[0]);
  }
}

static void check_width(const cpu_coll_loops *loops)
{
  for (size_t i = 0; i < sizeof elems / sizeof *elems; i++) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      check_combine(loops, kinds[k], elems[i]);
    }
  }
  check_halves(loops, CX_HLO_BF16);
  check_halves(loops, CX_HLO_F16);
}

static void test_widths(void **state)
{
  (void)state;
  int n = 1;
  check_width(&cpu_coll_loops_16);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    check_width(&cpu_coll_loops_32);
    n++;
  }
  if (__builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    check_width(&cpu_coll_loops_64);
    n++;
  }
#endif
  print_message("%d of 3 widths\n", n);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_widths) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
