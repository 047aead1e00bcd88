// idx: contents of IDX files, whole and damaged in every way that the reader
// must notice.
#include "idx.h"

#include "data/idx.h"

// gzip files may be put together by concatenating them.
static void test_members(void **state)
{
  (void)state;
  bytes images = make_images();
  bytes joined = { .data = test_malloc(4096) };
  const size_t cuts[] = { 0, 3, 7, 16, 17, 40, images.size };
  for (size_t k = 0; k + 1 < sizeof cuts / sizeof *cuts; k++) {
    bytes part = pack(images.data + cuts[k], cuts[k + 1] - cuts[k]);
    memcpy(joined.data + joined.size, part.data, part.size);
    joined.size += part.size;
    drop(part);
  }
  cx_data_idx idx;
  CHECK_OK(cx_data_idx_decode("joined", joined.data, joined.size, 3, &idx));
  assert_int_equal(idx.dims[0], 5);
  assert_int_equal(idx.bytes, 30);
  assert_memory_equal(idx.data, images.data + 16, 30);
  cx_free(idx.data);
  // An empty member at the end adds nothing; other bytes there are an error.
  bytes empty = pack("", 0);
  memcpy(joined.data + joined.size, empty.data, empty.size);
  CHECK_OK(cx_data_idx_decode("joined", joined.data, joined.size + empty.size,
                              3, &idx));
  cx_free(idx.data);
  joined.data[joined.size] = 'x';
  CHECK_FAILS(
      CALX_DATA_LOSS,
      cx_data_idx_decode("joined", joined.data, joined.size + 1, 3, &idx),
      "'joined'", "gzip");
  drop(empty);
  drop(joined);
  drop(images);
}

// ---- damage -----------------------------------------------------------------

// Decoding a cut file fails with DATA_LOSS and names the file.
static void check_cut(const bytes *whole, size_t rank, const char *piece)
{
  for (size_t n = 0; n < whole->size; n++) {
    // A block of exactly n bytes, so that a read past it is seen.
    uint8_t *cut = test_malloc(n + 1);
    uint8_t *exact = cut + 1;
    memcpy(exact, whole->data, n);
    cx_data_idx idx;
    calx_status *status = cx_data_idx_decode("a file", exact, n, rank, &idx);
    assert_null(idx.data);
    CHECK_FAILS(CALX_DATA_LOSS, status, "'a file': ", piece);
    test_free(cut);
  }
}

static void test_truncated(void **state)
{
  (void)state;
  bytes images = make_images(), labels = make_labels();
  check_cut(&images, 3, "");
  check_cut(&labels, 1, "");
  cx_data_idx idx;
  for (size_t n = 0; n < 16; n++) {
    char at[32];
    snprintf(at, sizeof at, "byte %zu: ", n);
    CHECK_FAILS(CALX_DATA_LOSS,
                cx_data_idx_decode("i", images.data, n, 3, &idx), at,
                "ends inside its header of 16 bytes");
  }
  CHECK_FAILS(
      CALX_DATA_LOSS, cx_data_idx_decode("i", images.data, 45, 3, &idx),
      "byte 4: ", "the sizes [5,2,3] ask for 30 bytes, the file has 29");
  bytes packed = pack(images.data, images.size);
  check_cut(&packed, 3, "byte");
  drop(packed);
  // Whole gzip data of half an IDX file.
  packed = pack(images.data, 20);
  CHECK_FAILS(CALX_DATA_LOSS,
              cx_data_idx_decode("i", packed.data, packed.size, 3, &idx),
              "byte 20: ends after 4 of the 30 bytes", "[5,2,3]");
  drop(packed);
  packed = pack(images.data, 9);
  CHECK_FAILS(CALX_DATA_LOSS,
              cx_data_idx_decode("i", packed.data, packed.size, 3, &idx),
              "byte 9: ends inside its header of 16 bytes");
  drop(packed);
  drop(images);
  drop(labels);
}

static void test_magic(void **state)
{
  (void)state;
  bytes images = make_images();
  for (size_t i = 0; i < 4; i++) {
    for (int bit = 0; bit < 8; bit++) {
      images.data[i] ^= (uint8_t)(1 << bit);
      char at[64];
      snprintf(at, sizeof at, "'i': byte %zu: the magic number has %02x", i,
               images.data[i]);
      cx_data_idx idx;
      CHECK_FAILS(CALX_DATA_LOSS,
                  cx_data_idx_decode("i", images.data, images.size, 3, &idx),
                  at, "IDX of u8 with 3 dimensions begins with 00 00 08 03");
      images.data[i] ^= (uint8_t)(1 << bit);
    }
  }
  cx_data_idx idx;
  CHECK_FAILS(CALX_DATA_LOSS,
              cx_data_idx_decode("i", images.data, images.size, 1, &idx),
              "byte 3: the magic number has 03", "1 dimension begins");
  CHECK_FAILS(CALX_DATA_LOSS, cx_data_idx_decode("i", "\x89PNG", 4, 3, &idx),
              "byte 0: the magic number has 89");
  drop(images);
}

static void test_sizes(void **state)
{
  (void)state;
  const struct {
    uint32_t dims[3];
    const char *why;
  } cases[] = {
    { { 5, 2, 4 }, "[5,2,4] ask for 40 bytes, the file has 30" },
    { { UINT32_MAX, UINT32_MAX, UINT32_MAX }, "are allowed" },
    { { UINT32_MAX, UINT32_MAX, 1 }, "are allowed" },
    { { 1u << 31, 1u << 31, 4 }, "are allowed" },  // 2^64: 0 when it wraps
    { { 1u << 31, 2, 1 }, "ask for 4294967296 bytes, the file has 30" },
    { { 5, 2, 2 },
      "byte 36: goes on past the 20 bytes that its sizes [5,2,2]" },
    { { 0, 2, 3 }, "byte 16: goes on past the 0 bytes" },
    { { 0, UINT32_MAX, UINT32_MAX }, "byte 16: goes on past" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    bytes b = make_idx(3, cases[k].dims, 30, 256);
    bytes packed = pack(b.data, b.size);
    cx_data_idx idx;
    CHECK_FAILS(CALX_DATA_LOSS,
                cx_data_idx_decode("i", b.data, b.size, 3, &idx),
                "'i': ", cases[k].why);
    CHECK_FAILS(CALX_DATA_LOSS,
                cx_data_idx_decode("i", packed.data, packed.size, 3, &idx),
                "'i': ");
    drop(b);
    drop(packed);
  }
}

// Every damaged byte is either noticed or one that means nothing (the time and
// the system in gzip's header).
static void test_bad_gzip(void **state)
{
  (void)state;
  bytes images = make_images();
  bytes packed = pack(images.data, images.size);
  int harmless = 0;
  for (size_t i = 0; i < packed.size; i++) {
    packed.data[i] ^= 0x15;
    cx_data_idx idx;
    calx_status *status =
        cx_data_idx_decode("i", packed.data, packed.size, 3, &idx);
    if (status == NULL) {
      assert_memory_equal(idx.data, images.data + 16, 30);
      assert_in_range(i, 4, 9);
      harmless++;
    } else {
      CHECK_FAILS(CALX_DATA_LOSS, status, "'i': byte");
    }
    cx_free(idx.data);
    packed.data[i] ^= 0x15;
  }
  assert_in_range(harmless, 1, 6);
  cx_data_idx idx;
  packed.data[packed.size - 8] ^= 1;  // of the check sum
  CHECK_FAILS(CALX_DATA_LOSS,
              cx_data_idx_decode("i", packed.data, packed.size, 3, &idx),
              "bad gzip data: incorrect data check");
  CHECK_FAILS(CALX_DATA_LOSS, cx_data_idx_decode("i", "\x1f\x8b", 2, 3, &idx),
              "'i': byte 2: ends inside its gzip data");
  drop(packed);
  drop(images);
}

// 64 MiB of zeros in 64 KiB: refused by what the header says, not unpacked.
static void test_bomb(void **state)
{
  (void)state;
  const size_t size = (size_t)64 << 20;
  uint8_t *zeros = test_calloc(size, 1);
  zeros[2] = 8;
  zeros[3] = 3;
  put_u32(zeros + 4, 1);
  put_u32(zeros + 8, 2);
  put_u32(zeros + 12, 2);
  bytes packed = pack(zeros, size);
  cx_data_idx idx;
  CHECK_FAILS(CALX_DATA_LOSS,
              cx_data_idx_decode("i", packed.data, packed.size, 3, &idx),
              "byte 20: goes on past the 4 bytes that its sizes [1,2,2]");
  drop(packed);
  // More than gzip can make of a file is no reason to take memory.
  put_u32(zeros + 4, 4000);
  put_u32(zeros + 8, 1000);
  put_u32(zeros + 12, 1000);
  packed = pack(zeros, 16);
  CHECK_FAILS(
      CALX_DATA_LOSS,
      cx_data_idx_decode("i", packed.data, packed.size, 3, &idx),
      "[4000,1000,1000] ask for 4000000000 bytes, the file has at most");
  drop(packed);
  test_free(zeros);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_members),  CHECK_TEST(test_truncated),
    CHECK_TEST(test_magic),    CHECK_TEST(test_sizes),
    CHECK_TEST(test_bad_gzip), CHECK_TEST(test_bomb),
  };
  return cmocka_run_group_tests_name("data_idx", tests, NULL, NULL);
}
