// crc: the checksum of any bytes is zlib's.
#include "io/crc.h"

#include <zlib.h>

#include "support/support.h"

// By its definition: the remainder, bit by bit, lowest first.
static uint32_t bit_by_bit(uint32_t crc, const unsigned char *p, size_t size)
{
  crc = ~crc;
  for (size_t i = 0; i < size; i++) {
    crc ^= p[i];
    for (int k = 0; k < 8; k++) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    }
  }
  return ~crc;
}

// Every length and alignment about the sizes that are folded, whole and in two.
static void test_lengths(void **state)
{
  (void)state;
  enum { MOST = 700 };
  unsigned char data[MOST + 64];
  uint64_t random = 88172645463325252u;
  for (size_t i = 0; i < sizeof data; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    data[i] = (unsigned char)random;
  }
  assert_int_equal(cx_io_crc32(0, "123456789", 9), 0xcbf43926);
  assert_int_equal(cx_io_crc32(0, NULL, 0), 0);
  for (size_t n = 0; n <= MOST; n++) {
    const unsigned char *p = data + n % 19;
    uint32_t wanted = bit_by_bit(0, p, n);
    assert_int_equal(cx_io_crc32(0, p, n), wanted);
    size_t first = n * 7 / 11;
    uint32_t crc = cx_io_crc32(0, p, first);
    assert_int_equal(cx_io_crc32(crc, p + first, n - first), wanted);
  }
}

static void test_large(void **state)
{
  (void)state;
  enum { SIZE = (3 << 20) + 77 };
  unsigned char *data = test_malloc(SIZE);
  for (size_t i = 0; i < SIZE; i++) data[i] = (unsigned char)(i * i >> 5);
  assert_int_equal(cx_io_crc32(5, data, SIZE), crc32(5, data, SIZE));
  test_free(data);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
