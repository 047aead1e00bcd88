// transforms: chance, options and errors. Values: transforms_torch.
#include <math.h>

#include "calx/transforms.h"
#include "check.h"

enum { SIDE = 24 };

// Element (c, y, x) says where it comes from.
static calx_tensor *numbered(int64_t channels, int64_t h, int64_t w)
{
  float *v = test_malloc((size_t)(channels * h * w) * sizeof *v);
  for (int64_t i = 0; i < channels * h * w; i++) v[i] = (float)i;
  calx_tensor *t = calx_host_tensor(v, CALX_F32, CALX_SHAPE(channels, h, w));
  test_free(v);
  return t;
}

static const float *values(calx_tensor *t)
{
  if (calx_tensor_error(t) != NULL) {
    fail_msg("%s", calx_status_message(calx_tensor_error(t)));
  }
  return calx_host_data(t);
}

// ---- chance -----------------------------------------------------------------

static void test_crop_places(void **state)
{
  (void)state;
  enum { PLACES = 5, TIMES = 4000 };
  calx_transform *t = calx_transforms_random_crop(CALX_DIMS(4, 4));
  calx_tensor *image = numbered(1, 8, 8);
  int count[PLACES][PLACES] = { { 0 } };
  for (uint64_t seed = 0; seed < TIMES; seed++) {
    int first = (int)values(calx_transform_apply(t, image, seed))[0];
    assert_in_range(first / 8, 0, 4);
    assert_in_range(first % 8, 0, 4);
    count[first / 8][first % 8]++;
  }
  double chi = 0;  // 24 degrees of freedom: above 60 once in 60,000
  for (int i = 0; i < PLACES * PLACES; i++) {
    double apart = count[i / PLACES][i % PLACES] - TIMES / 25.0;
    chi += apart * apart / (TIMES / 25.0);
  }
  assert_true(chi < 60);
  calx_transform_free(t);
}

static void test_flips(void **state)
{
  (void)state;
  calx_tensor *image = numbered(1, 2, 3);
  calx_transform *t = calx_transforms_random_horizontal_flip(0.3);
  int flipped = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    const float *v = values(calx_transform_apply(t, image, seed));
    assert_true(v[1] == 1 && (v[0] == 0 || v[0] == 2));
    flipped += v[0] == 2;
  }
  assert_in_range(flipped, 520, 680);  // 600, deviation 20
  calx_transform_free(t);
  t = calx_transforms_random_vertical_flip(0);
  assert_true(values(calx_transform_apply(t, image, 5))[0] == 0);
  calx_transform_free(t);
}

// The rectangle's area and proportions are drawn from their ranges.
static void test_resized_crop(void **state)
{
  (void)state;
  enum { EDGE = 200, TIMES = 1500 };
  // Enlarged without a filter the corners tell the rectangle.
  calx_transform *t = calx_transforms_random_resized_crop(
      CALX_DIMS(2 * EDGE), .interpolation = CALX_INTERPOLATION_NEAREST);
  calx_tensor *image = numbered(1, EDGE, EDGE);
  double sum = 0, least = 1, most = 0, sum_log = 0;
  for (uint64_t seed = 0; seed < TIMES; seed++) {
    calx_scope *s = calx_scope_begin();
    const float *v = values(calx_transform_apply(t, image, seed));
    int first = (int)v[0], last = (int)v[4 * EDGE * EDGE - 1];
    double h = last / EDGE - first / EDGE + 1,
           w = last % EDGE - first % EDGE + 1;
    double area = h * w / (EDGE * EDGE);
    sum += area;
    sum_log += log(w / h);
    least = area < least ? area : least;
    most = area > most ? area : most;
    assert_true(w / h > 0.72 && w / h < 1.38);
    CHECK_OK(calx_scope_end(s));
  }
  // Uniform on [0.08, 1] but for large ones that do not fit and are redrawn.
  assert_true(least > 0.07 && least < 0.1 && most > 0.93 && most <= 1);
  assert_true(sum / TIMES > 0.45 && sum / TIMES < 0.55);
  assert_true(fabs(sum_log / TIMES) < 0.02);
  calx_transform_free(t);
}

// No rectangle of these proportions fits: the middle is taken.
static void test_resized_crop_of_a_strip(void **state)
{
  (void)state;
  calx_transform *t = calx_transforms_random_resized_crop(
      CALX_DIMS(4, 8), .scale = { 1, 1 }, .ratio = { 2, 2 });
  calx_tensor *image = numbered(1, 4, 20);
  const float *v = values(calx_transform_apply(t, image, 3));
  for (int i = 0; i < 32; i++) {
    assert_int_equal((int)v[i], i / 8 * 20 + 6 + i % 8);
  }
  calx_transform_free(t);
}

static void test_jitter(void **state)
{
  (void)state;
  calx_transform *t = calx_transforms_color_jitter(.brightness = { 0.4 });
  const float half[] = { 0.5F };
  calx_tensor *image = calx_host_tensor(half, CALX_F32, CALX_SHAPE(1, 1, 1));
  double sum = 0, sum2 = 0;
  enum { TIMES = 3000 };
  for (uint64_t seed = 0; seed < TIMES; seed++) {
    double f = (double)values(calx_transform_apply(t, image, seed))[0] * 2;
    assert_true(f >= 0.5999 && f <= 1.4001);
    sum += f;
    sum2 += (f - 1) * (f - 1);
  }
  assert_true(fabs(sum / TIMES - 1) < 0.015);
  assert_true(fabs(sum2 / TIMES - 0.16 / 3) < 0.004);
  calx_transform_free(t);
  t = calx_transforms_color_jitter();
  assert_true(values(calx_transform_apply(t, image, 9))[0] == 0.5F);
  calx_transform_free(t);
}

static void test_erasing(void **state)
{
  (void)state;
  calx_transform *t =
      calx_transforms_random_erasing(0.5, .scale = { 0.1, 0.3 }, .value = -1);
  calx_tensor *image = numbered(2, SIDE, SIDE);
  int erased = 0;
  for (uint64_t seed = 0; seed < 600; seed++) {
    const float *v = values(calx_transform_apply(t, image, seed));
    int count = 0, top = SIDE, left = SIDE, bottom = 0, right = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
      int y = i / SIDE, x = i % SIDE;
      assert_true((v[i] == -1) == (v[i + SIDE * SIDE] == -1));
      if (v[i] != -1) continue;
      count++;
      top = y < top ? y : top;
      left = x < left ? x : left;
      bottom = y + 1 > bottom ? y + 1 : bottom;
      right = x + 1 > right ? x + 1 : right;
    }
    if (count == 0) continue;
    erased++;
    assert_int_equal(count, (bottom - top) * (right - left));
    assert_in_range(count, SIDE * SIDE * 8 / 100, SIDE * SIDE * 33 / 100);
  }
  assert_in_range(erased, 250, 350);
  calx_transform_free(t);
  t = calx_transforms_random_erasing(1, .random = true, .scale = { 0.5, 0.5 },
                                     .ratio = { 1, 1 });
  const float *v = values(calx_transform_apply(t, image, 1));
  double sum = 0, sum2 = 0;
  int n = 0;
  for (int i = 0; i < 2 * SIDE * SIDE; i++) {
    if (v[i] == (float)i) continue;
    n++;
    sum += (double)v[i];
    sum2 += (double)v[i] * (double)v[i];
  }
  assert_in_range(n, 500, 650);  // 2 x 17 x 17
  assert_true(fabs(sum / n) < 0.2 && fabs(sum2 / n - 1) < 0.25);
  calx_transform_free(t);
}

static void test_rotation_range(void **state)
{
  (void)state;
  calx_transform *t = calx_transforms_random_rotation(-90, 90);
  calx_transform *quarter = calx_transforms_random_rotation(90, 90);
  calx_tensor *image = numbered(1, 3, 3);
  const float turned[] = { 2, 5, 8, 1, 4, 7, 0, 3, 6 };
  assert_memory_equal(values(calx_transform_apply(quarter, image, 1)), turned,
                      sizeof turned);
  int left = 0;
  for (uint64_t seed = 0; seed < 1000; seed++) {
    const float *v = values(calx_transform_apply(t, image, seed));
    assert_true(v[4] == 4);
    left += v[1] == 2 || v[1] == 5;  // above 22.5 degrees
  }
  assert_in_range(left, 310, 440);  // 3/8
  calx_transform_free(quarter);
  calx_transform_free(t);
}

// ---- parts ------------------------------------------------------------------

static void test_padding(void **state)
{
  (void)state;
  calx_tensor *image = numbered(1, 2, 3);
  calx_transform *t =
      calx_transforms_random_crop(CALX_DIMS(6, 7), .padding = CALX_DIMS(2),
                                  .padding_mode = CALX_PADDING_SYMMETRIC);
  const float mirrored[] = { 4, 3, 3, 4, 5, 5, 4, 1, 0, 0, 1, 2, 2, 1 };
  assert_memory_equal(values(calx_transform_apply(t, image, 1)), mirrored,
                      sizeof mirrored);
  calx_transform_free(t);
  t = calx_transforms_random_crop(CALX_DIMS(2, 9), .pad_if_needed = true,
                                  .fill = 7);
  const float *v = values(calx_transform_apply(t, image, 1));
  int filled = 0;
  for (int i = 0; i < 9; i++) filled += v[i] == 7;
  assert_int_equal(filled, 6);
  calx_transform_free(t);
}

static void test_one_seed_one_result(void **state)
{
  (void)state;
  calx_transform *t = calx_transforms_compose(
      calx_transforms_random_resized_crop(CALX_DIMS(5)),
      calx_transforms_random_horizontal_flip(0.5),
      calx_transforms_color_jitter(.brightness = { 0.2 }, .hue = { 0.1 }),
      calx_transforms_random_rotation(-10, 10));
  float pixels[3 * 9 * 9];
  for (int i = 0; i < 243; i++) pixels[i] = (float)i / 400;
  calx_tensor *image = calx_host_tensor(pixels, CALX_F32, CALX_SHAPE(3, 9, 9));
  calx_tensor *a = calx_transform_apply(t, image, 4);
  calx_tensor *b = calx_transform_apply(t, image, 4);
  calx_tensor *c = calx_transform_apply(t, image, 5);
  size_t bytes = 75 * sizeof(float);
  assert_memory_equal(values(a), values(b), bytes);
  assert_true(memcmp(values(a), values(c), bytes) != 0);
  calx_transform_free(t);
}

// ---- what is refused --------------------------------------------------------

static void bad(calx_transform *t, const char *says)
{
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_transform_error(t), says);
  calx_transform_free(t);
}

static void test_options(void **state)
{
  (void)state;
  const float one[] = { 1, 1 }, zero[] = { 0, 0 };
  bad(calx_transforms_resize(CALX_DIMS(0)), "0 pixels");
  bad(calx_transforms_resize(CALX_DIMS(1, 2, 3)), "3 numbers");
  bad(calx_transforms_resize(CALX_DIMS(4), .max_size = 4), "max_size 4");
  bad(calx_transforms_resize(CALX_DIMS(4, 4), .max_size = 9), "max_size 9");
  bad(calx_transforms_resize(CALX_DIMS(4), .interpolation = 4),
      "no interpolation 4");
  bad(calx_transforms_resize(CALX_DIMS(4), .no_antialias = true,
                             .interpolation = CALX_INTERPOLATION_BICUBIC),
      "antialias");
  bad(calx_transforms_center_crop(CALX_DIMS(-1)), "-1 pixels");
  bad(calx_transforms_center_crop(CALX_SCALAR), "0 numbers");
  bad(calx_transforms_random_crop(CALX_DIMS(4), .padding = CALX_DIMS(1, 2, 3)),
      "3 numbers");
  bad(calx_transforms_random_crop(CALX_DIMS(4), .padding = CALX_DIMS(-1)),
      "-1 pixels");
  bad(calx_transforms_random_crop(CALX_DIMS(4), .fill = (double)NAN), "nan");
  bad(calx_transforms_random_crop(CALX_DIMS(4), .padding_mode = 9), "mode 9");
  bad(calx_transforms_random_resized_crop(CALX_DIMS(4), .scale = { 0.5, 0.1 }),
      "scale is 0.5 to 0.1");
  bad(calx_transforms_random_resized_crop(CALX_DIMS(4), .ratio = { -1, 1 }),
      "ratio is -1");
  bad(calx_transforms_random_horizontal_flip(1.5), "1.5");
  bad(calx_transforms_random_vertical_flip((double)NAN), "nan");
  bad(calx_transforms_color_jitter(.hue = { 0.6 }), "hue is {0.6");
  bad(calx_transforms_color_jitter(.brightness = { -0.5 }), "brightness");
  bad(calx_transforms_color_jitter(.contrast = { 2, 1 }), "contrast");
  bad(calx_transforms_random_rotation(3, 2), "from 3 to 2");
  bad(calx_transforms_random_rotation(0, (double)INFINITY), "inf");
  bad(calx_transforms_random_erasing(0.5, .scale = { 0.5, 2 }), "2 of the");
  bad(calx_transforms_random_erasing(-1), "-1");
  bad(calx_transforms_normalize(one, zero, 2), "std 0");
  bad(calx_transforms_normalize(NULL, one, 2), "0 channels");
  bad(calx_transforms_normalize(one, one, 5), "5 channels");
  bad(calx_transforms_compose_n(NULL, 1), "no transform");
  bad(calx_transforms_compose(calx_transforms_to_tensor(), NULL), "1 of 2");
  bad(calx_transforms_compose(calx_transforms_to_tensor(),
                              calx_transforms_random_vertical_flip(2)),
      "probability of 2");
}

static void refused(calx_transform *t, calx_tensor *image, const char *says)
{
  calx_tensor *result = calx_transform_apply(t, image, 1);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_tensor_error(result), says);
  calx_status_free(calx_scope_take_error());
  calx_transform_free(t);
}

static void test_images(void **state)
{
  (void)state;
  const float numbers[2] = { 0 };
  const uint8_t bytes[2] = { 0 };
  calx_tensor *small = numbered(1, 3, 5);
  calx_tensor *u8 = calx_host_tensor(bytes, CALX_U8, CALX_SHAPE(2, 1, 1));
  refused(NULL, small, "NULL");
  refused(calx_transforms_to_tensor(), NULL, "NULL");
  refused(calx_transforms_to_tensor(),
          calx_host_tensor(numbers, CALX_F32, CALX_SHAPE(1, 2)), "rank 2");
  refused(calx_transforms_to_tensor(),
          calx_host_tensor(numbers, CALX_F32, CALX_SHAPE(1, 0, 2)),
          "0 elements");
  refused(calx_transforms_to_tensor(),
          calx_host_tensor(numbers, CALX_I32, CALX_SHAPE(1, 1, 2)), "i32");
  refused(calx_transforms_to_tensor(), numbered(5, 1, 1), "5 first");
  refused(calx_transforms_random_crop(CALX_DIMS(4)), small, "pad_if_needed");
  refused(calx_transforms_random_crop(CALX_DIMS(4), .padding = CALX_DIMS(3),
                                      .padding_mode = CALX_PADDING_REFLECT),
          small, "border of 3");
  refused(calx_transforms_normalize((float[]){ 0, 0 }, (float[]){ 1, 1 }, 2),
          small, "2 means");
  refused(calx_transforms_normalize((float[]){ 0 }, (float[]){ 1 }, 1), u8,
          "to_tensor");
  refused(calx_transforms_random_erasing(1, .random = true), u8, "to_tensor");
  refused(calx_transforms_color_jitter(.brightness = { 0.5 }), u8,
          "2 channels");
  refused(calx_transforms_random_vertical_flip(2), small, "probability");
}

static calx_transform *make_some(void)
{
  return calx_transforms_compose(
      calx_transforms_resize(CALX_DIMS(6)),
      calx_transforms_random_crop(CALX_DIMS(5), .padding = CALX_DIMS(1)),
      calx_transforms_random_rotation(5, 5), calx_transforms_to_tensor());
}

static void test_no_memory(void **state)
{
  (void)state;
  const uint8_t pixels[3 * 4 * 4] = { 0 };
  calx_tensor *image = calx_host_tensor(pixels, CALX_U8, CALX_SHAPE(3, 4, 4));
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 60);
    cx_alloc_fail_at(n);
    calx_transform *t = make_some();
    calx_tensor *result = calx_transform_apply(t, image, 1);
    cx_alloc_fail_at(-1);
    const calx_status *error = calx_tensor_error(result);
    whole = error == NULL;
    if (!whole) {
      CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
      calx_status_free(calx_scope_take_error());
    }
    calx_transform_free(t);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_crop_places),
    CHECK_TEST(test_flips),
    CHECK_TEST(test_resized_crop),
    CHECK_TEST(test_resized_crop_of_a_strip),
    CHECK_TEST(test_jitter),
    CHECK_TEST(test_erasing),
    CHECK_TEST(test_rotation_range),
    CHECK_TEST(test_padding),
    CHECK_TEST(test_one_seed_one_result),
    CHECK_TEST(test_options),
    CHECK_TEST(test_images),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_transforms", tests, NULL, NULL);
}
