// decode: PNG files to the byte, JPEG files to what their quality allows, each
// in every mode; bounds; damage.
#include "files.h"

#include "calx/image.h"
#include "data/check.h"
#include "image/image.h"

static void check_shape(const calx_tensor *t, int64_t a, int64_t b, int64_t c)
{
  if (calx_tensor_error(t) != NULL) {
    fail_msg("%s", calx_status_message(calx_tensor_error(t)));
  }
  assert_int_equal(calx_tensor_dtype(t), CALX_U8);
  assert_int_equal(calx_tensor_rank(t), 3);
  assert_int_equal(calx_tensor_dim(t, 0), a);
  assert_int_equal(calx_tensor_dim(t, 1), b);
  assert_int_equal(calx_tensor_dim(t, 2), c);
}

static void check_bytes(made_file f, calx_image_mode mode, int64_t channels,
                        int64_t h, int64_t w, const uint8_t *expected, int near)
{
  calx_tensor *t = calx_decode_image(f.data, f.size, .mode = mode);
  check_shape(t, channels, h, w);
  const uint8_t *data = calx_host_data(t);
  for (int64_t i = 0; i < channels * h * w; i++) {
    if (abs(data[i] - expected[i]) > near) {
      fail_msg("element %lld is %d, expected %d", (long long)i, data[i],
               expected[i]);
    }
  }
}

static void refused(calx_tensor *t, calx_code code, const char *says)
{
  CHECK_SAYS(code, calx_tensor_error(t), says);
  calx_status *status = calx_scope_take_error();
  assert_non_null(status);
  calx_status_free(status);
}

// ---- PNG --------------------------------------------------------------------

static void test_png_colours(void **state)
{
  (void)state;
  const uint8_t rgb[] = { 10, 20, 30, 250, 1, 2, 3, 4, 5, 7, 8, 9 };
  made_file f =
      make_png(&(made_png){ 2, 2, 8, 2, .rows = rgb, .row_bytes = 6 });
  const uint8_t planes[] = { 10, 250, 3, 7, 20,  1,   4,   8,
                             30, 2,   5, 9, 255, 255, 255, 255 };
  check_bytes(f, CALX_IMAGE_UNCHANGED, 3, 2, 2, planes, 0);
  check_bytes(f, CALX_IMAGE_RGB, 3, 2, 2, planes, 0);
  check_bytes(f, CALX_IMAGE_RGB_ALPHA, 4, 2, 2, planes, 0);
  const uint8_t grey[] = { 18, 76, 4, 8, 255, 255, 255, 255 };
  check_bytes(f, CALX_IMAGE_GRAY, 1, 2, 2, grey, 0);
  check_bytes(f, CALX_IMAGE_GRAY_ALPHA, 2, 2, 2, grey, 0);
  calx_tensor *t = calx_decode_image(f.data, f.size, .layout = CALX_IMAGE_HWC);
  check_shape(t, 2, 2, 3);
  assert_memory_equal(calx_host_data(t), rgb, sizeof rgb);
  free(f.data);
}

// What is encoded is decoded again, with each number of channels.
static void test_png_encode(void **state)
{
  (void)state;
  uint8_t pixels[3 * 5 * 4], *data;
  size_t size;
  for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 41);
  for (int channels = 1; channels <= 4; channels++) {
    calx_status *status =
        cx_image_encode_png(pixels, 3, 5, channels, &data, &size);
    assert_null(status);
    calx_tensor *t = calx_decode_image(data, size, .layout = CALX_IMAGE_HWC);
    check_shape(t, 3, 5, channels);
    assert_memory_equal(calx_host_data(t), pixels, (size_t)(15 * channels));
    cx_free(data);
  }
}

static void test_png_alpha(void **state)
{
  (void)state;
  const uint8_t rgba[] = { 10, 20, 30, 40, 50, 60, 70, 80 };
  made_file f =
      make_png(&(made_png){ 2, 1, 8, 6, .rows = rgba, .row_bytes = 8 });
  const uint8_t planes[] = { 10, 50, 20, 60, 30, 70, 40, 80 };
  check_bytes(f, CALX_IMAGE_UNCHANGED, 4, 1, 2, planes, 0);
  check_bytes(f, CALX_IMAGE_RGB, 3, 1, 2, planes, 0);
  free(f.data);
  const uint8_t ga[] = { 9, 100, 8, 200 };
  f = make_png(&(made_png){ 1, 2, 8, 4, .rows = ga, .row_bytes = 2 });
  const uint8_t two[] = { 9, 8, 100, 200 };
  check_bytes(f, CALX_IMAGE_UNCHANGED, 2, 2, 1, two, 0);
  const uint8_t three[] = { 9, 8, 9, 8, 9, 8 };
  check_bytes(f, CALX_IMAGE_RGB, 3, 2, 1, three, 0);
  free(f.data);
}

static void test_png_depths(void **state)
{
  (void)state;
  const uint8_t bits[] = { 0xa0 };  // 1 0 1
  made_file f =
      make_png(&(made_png){ 3, 1, 1, 0, .rows = bits, .row_bytes = 1 });
  check_bytes(f, CALX_IMAGE_UNCHANGED, 1, 1, 3, (uint8_t[]){ 255, 0, 255 }, 0);
  free(f.data);
  const uint8_t wide[] = { 0x12, 0xff, 0xab, 0x01 };  // 16 bits
  f = make_png(&(made_png){ 2, 1, 16, 0, .rows = wide, .row_bytes = 4 });
  check_bytes(f, CALX_IMAGE_UNCHANGED, 1, 1, 2, (uint8_t[]){ 0x12, 0xab }, 0);
  free(f.data);
  const uint8_t palette[] = { 1, 2, 3, 4, 5, 6 }, index[] = { 1, 0 };
  made_png p = { 2,
                 1,
                 8,
                 3,
                 .palette = palette,
                 .palette_size = 6,
                 .rows = index,
                 .row_bytes = 2 };
  f = make_png(&p);
  check_bytes(f, CALX_IMAGE_UNCHANGED, 3, 1, 2, (uint8_t[]){ 4, 1, 5, 2, 6, 3 },
              0);
  free(f.data);
  p.transparent = "\x07";  // of entry 0; of those without one 255
  p.transparent_size = 1;
  f = make_png(&p);
  check_bytes(f, CALX_IMAGE_UNCHANGED, 4, 1, 2,
              (uint8_t[]){ 4, 1, 5, 2, 6, 3, 255, 7 }, 0);
  free(f.data);
}

// ---- JPEG -------------------------------------------------------------------

enum { W = 19, H = 11 };  // no multiples of a block's 8

static void gradient(uint8_t *pixels, int components)
{
  for (int y = 0; y < H; y++) {
    for (int x = 0; x < W; x++) {
      const int v[] = { 20 + 10 * x, 30 + 15 * y, 200 - 5 * x - 3 * y, 180 };
      for (int c = 0; c < components; c++) {
        pixels[(y * W + x) * components + c] = (uint8_t)v[c];
      }
    }
  }
}

static void test_jpeg(void **state)
{
  (void)state;
  uint8_t pixels[W * H * 3], planes[4 * W * H], grey[2 * W * H];
  gradient(pixels, 3);
  for (int i = 0; i < W * H; i++) {
    const uint8_t *p = pixels + (size_t)3 * i;
    for (int c = 0; c < 3; c++) planes[c * W * H + i] = p[c];
    planes[3 * W * H + i] = grey[W * H + i] = 255;
    grey[i] = (uint8_t)(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] + 0.5);
  }
  for (int progressive = 0; progressive < 2; progressive++) {
    made_file f = make_jpeg(W, H, 3, pixels, 100, progressive);
    check_bytes(f, CALX_IMAGE_UNCHANGED, 3, H, W, planes, 4);
    check_bytes(f, CALX_IMAGE_RGB_ALPHA, 4, H, W, planes, 4);
    check_bytes(f, CALX_IMAGE_GRAY, 1, H, W, grey, 3);
    check_bytes(f, CALX_IMAGE_GRAY_ALPHA, 2, H, W, grey, 3);
    free(f.data);
  }
}

static void test_jpeg_other_colours(void **state)
{
  (void)state;
  uint8_t pixels[W * H * 4], planes[3 * W * H];
  gradient(pixels, 1);
  for (int c = 0; c < 3; c++) memcpy(planes + c * W * H, pixels, W * H);
  made_file f = make_jpeg(W, H, 1, pixels, 100, 0);
  check_bytes(f, CALX_IMAGE_UNCHANGED, 1, H, W, planes, 2);
  check_bytes(f, CALX_IMAGE_RGB, 3, H, W, planes, 2);
  free(f.data);
  gradient(pixels, 4);
  for (int i = 0; i < W * H; i++) {
    for (int c = 0; c < 3; c++) {
      planes[c * W * H + i] = (uint8_t)(pixels[4 * i + c] * 180 / 255);
    }
  }
  f = make_jpeg(W, H, 4, pixels, 100, 0);
  check_bytes(f, CALX_IMAGE_UNCHANGED, 3, H, W, planes, 4);
  free(f.data);
}

// ---- what is refused --------------------------------------------------------

static void test_options(void **state)
{
  (void)state;
  made_file f = make_png(&(made_png){
      2, 1, 8, 0, .rows = (const uint8_t[]){ 1, 2 }, .row_bytes = 2 });
  refused(calx_decode_image(f.data, f.size, .mode = (calx_image_mode)5),
          CALX_INVALID_ARGUMENT, "no mode 5");
  refused(calx_decode_image(f.data, f.size, .layout = (calx_image_layout)2),
          CALX_INVALID_ARGUMENT, "no layout 2");
  refused(calx_decode_image(f.data, f.size, .max_pixels = -1),
          CALX_INVALID_ARGUMENT, "a limit of -1");
  refused(calx_decode_image(f.data, f.size, .max_pixels = 1),
          CALX_RESOURCE_EXHAUSTED, "1 x 2 pixels");
  refused(calx_decode_image(NULL, 4), CALX_INVALID_ARGUMENT, "NULL");
  refused(calx_decode_image("GIF89a", 6), CALX_INVALID_ARGUMENT,
          "neither JPEG nor PNG");
  refused(calx_decode_image("", 0), CALX_INVALID_ARGUMENT, "0 bytes");
  refused(calx_read_image(NULL), CALX_INVALID_ARGUMENT, "NULL");
  refused(calx_read_image("/nowhere.png"), CALX_NOT_FOUND, "/nowhere.png");
  refused(calx_read_image("/dev/null"), CALX_INVALID_ARGUMENT, "/dev/null");
  char path[] = "/tmp/calx_image_XXXXXX";
  int fd = mkstemp(path);
  assert_int_equal(write(fd, f.data, f.size), f.size);
  close(fd);
  calx_tensor *t = calx_read_image(path);
  check_shape(t, 1, 1, 2);
  assert_memory_equal(calx_host_data(t), "\1\2", 2);
  unlink(path);
  free(f.data);
}

// A header that promises what the rest cannot hold asks for no memory.
static void test_bombs(void **state)
{
  (void)state;
  made_file f =
      make_png(&(made_png){ 40000, 40000, 8, 2, .rows = NULL, .row_bytes = 0 });
  refused(calx_decode_image(f.data, f.size), CALX_RESOURCE_EXHAUSTED,
          "40000 x 40000 pixels, the most is 89478485");
  refused(calx_decode_image(f.data, f.size, .max_pixels = INT64_MAX),
          CALX_DATA_LOSS, "cannot hold them");
  free(f.data);
  uint8_t pixels[W * H * 3];
  gradient(pixels, 3);
  f = make_jpeg(W, H, 3, pixels, 90, 0);
  size_t at = 0;  // of the frame's header: FF C0, length, depth, height, width
  while (f.data[at] != 0xff || f.data[at + 1] != 0xc0) at++;
  memcpy(f.data + at + 5, "\xff\x00\xff\x00", 4);
  refused(calx_decode_image(f.data, f.size), CALX_RESOURCE_EXHAUSTED,
          "65280 x 65280");
  memcpy(f.data + at + 5, "\x10\x10\x10\x10", 4);
  refused(calx_decode_image(f.data, f.size), CALX_DATA_LOSS,
          "cannot hold them");
  free(f.data);
}

// Scans of a few bytes, each of which visits every block.
static void test_many_scans(void **state)
{
  (void)state;
  uint8_t pixels[W * H] = { 0 };
  made_file f = make_jpeg(W, H, 1, pixels, 90, 1), many = { 0 };
  size_t last = f.size - 2;  // the last scan begins with FF DA
  while (f.data[last] != 0xff || f.data[last + 1] != 0xda) last--;
  made_bytes(&many, f.data, last);
  for (int i = 0; i < 200; i++) {
    made_bytes(&many, f.data + last, f.size - 2 - last);
  }
  made_bytes(&many, f.data + f.size - 2, 2);
  refused(calx_decode_image(many.data, many.size), CALX_DATA_LOSS,
          "more than 100 scans");
  free(many.data);
  free(f.data);
}

// Every prefix is refused: no image has a part that was not in the file.
static void test_truncated(void **state)
{
  (void)state;
  uint8_t pixels[W * H * 3];
  gradient(pixels, 3);
  made_file files[] = {
    make_jpeg(W, H, 3, pixels, 90, 0),
    make_jpeg(W, H, 3, pixels, 90, 1),
    make_png(&(made_png){ W, H, 8, 2, .rows = pixels, .row_bytes = 3 * W }),
  };
  for (size_t k = 0; k < 3; k++) {
    for (size_t n = 8; n + 12 < files[k].size; n++) {
      calx_tensor *t = calx_decode_image(files[k].data, n);
      refused(t, CALX_DATA_LOSS, "decode_image");
    }
    free(files[k].data);
  }
}

static void test_no_memory(void **state)
{
  (void)state;
  uint8_t pixels[W * H * 3];
  gradient(pixels, 3);
  made_file files[] = {
    make_jpeg(W, H, 3, pixels, 90, 0),
    make_png(&(made_png){ W, H, 8, 2, .rows = pixels, .row_bytes = 3 * W }),
  };
  for (size_t k = 0; k < 2; k++) {
    bool whole = false;
    for (int n = 0; !whole; n++) {
      assert_in_range(n, 0, 60);
      cx_alloc_fail_at(n);
      calx_tensor *t =
          calx_decode_image(files[k].data, files[k].size, .layout = 1);
      cx_alloc_fail_at(-1);
      whole = calx_tensor_error(t) == NULL;
      if (!whole) {
        refused(t, CALX_RESOURCE_EXHAUSTED, "memory");
      }
    }
    free(files[k].data);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_png_colours), CHECK_TEST(test_png_alpha),
    CHECK_TEST(test_png_encode),  CHECK_TEST(test_png_depths),
    CHECK_TEST(test_jpeg),        CHECK_TEST(test_jpeg_other_colours),
    CHECK_TEST(test_options),     CHECK_TEST(test_bombs),
    CHECK_TEST(test_many_scans),  CHECK_TEST(test_truncated),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("image_decode", tests, NULL, NULL);
}
