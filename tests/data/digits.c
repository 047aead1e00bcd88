// digits: the drawn digits are the same everywhere, cover what they should, and
// are too hard for a linear model.
#include "data/digits.h"

#include <math.h>

#include "base/hash.h"
#include "check.h"

#define PIXELS 784
#define ONE_MORE (PIXELS + 1)

// Labels and pixels of the first samples of two seeds, as any compiler and
// machine draws them.
static void test_recorded(void **state)
{
  (void)state;
  const char *const recorded[2] = { "79fb08932dc44058d7e22de4017856a2",
                                    "d90dc54b1424b116cb5dbf8cb1833015" };
  static uint8_t drawn[1000][ONE_MORE];
  for (uint64_t seed = 0; seed < 2; seed++) {
    for (int64_t i = 0; i < 1000; i++) {
      drawn[i][0] = (uint8_t)cx_data_digit_draw(seed, i, drawn[i] + 1);
    }
    char hex[33];
    cx_hash_hex(cx_hash_bytes(drawn, sizeof drawn, 0), hex);
    assert_string_equal(hex, recorded[seed]);
  }
}

static void test_dataset(void **state)
{
  (void)state;
  calx_dataset *d = calx_dataset_digits(20, 3);
  calx_dataset *longer = calx_dataset_digits(INT64_MAX, 3);
  calx_dataset *other = calx_dataset_digits(20, 4);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 20);
  const calx_field *f = calx_dataset_field(d, 0);
  assert_int_equal(f->dtype, CALX_F32);
  assert_int_equal(f->rank, 3);
  assert_int_equal(f->dims[0], 1);
  assert_int_equal(f->dims[1], 28);
  assert_int_equal(f->dims[2], 28);
  assert_int_equal(calx_dataset_field(d, 1)->dtype, CALX_I64);
  float x[PIXELS], again[PIXELS], different[PIXELS];
  int64_t y, y2;
  for (int64_t i = 19; i >= 0; i--) {  // in any order
    uint8_t pixels[PIXELS];
    CHECK_OK(calx_dataset_get(d, i, (void *const[]){ x, &y }));
    assert_int_equal(y, cx_data_digit_draw(3, i, pixels));
    for (int k = 0; k < PIXELS; k++) {
      assert_true(x[k] == ((float)pixels[k] / 255.0f - 0.1307f) / 0.3081f);
    }
    CHECK_OK(calx_dataset_get(longer, i, (void *const[]){ again, &y2 }));
    assert_memory_equal(x, again, sizeof x);
    assert_int_equal(y, y2);
    CHECK_OK(calx_dataset_get(other, i, (void *const[]){ different, &y2 }));
    assert_memory_not_equal(x, different, sizeof x);
  }
  CHECK_OK(
      calx_dataset_get(longer, INT64_MAX - 1, (void *const[]){ again, &y2 }));
  assert_in_range(y2, 0, 9);
  calx_dataset_free(d);
  calx_dataset_free(longer);
  calx_dataset_free(other);
  d = calx_dataset_digits(-1, 0);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), "a size of -1");
  calx_dataset_free(d);
}

// All labels come, ink is in every picture and never all over it.
static void test_pictures(void **state)
{
  (void)state;
  int count[10] = { 0 };
  double sum = 0.0;
  for (int64_t i = 0; i < 10000; i++) {
    uint8_t pixels[PIXELS];
    count[cx_data_digit_draw(1, i, pixels)]++;
    int light = 0;
    for (int k = 0; k < PIXELS; k++) {
      light += pixels[k] > 128;
      sum += pixels[k];
    }
    assert_in_range(light, 10, 330);
  }
  // Five standard deviations of sqrt(10000 · 0.1 · 0.9) = 30.
  for (int k = 0; k < 10; k++) assert_in_range(count[k], 850, 1150);
  double mean = sum / (10000.0 * PIXELS * 255.0);
  assert_true(mean > 0.12 && mean < 0.20);  // MNIST's is 0.13
}

// ---- a linear model ---------------------------------------------------------

#define TRAIN 8000
#define TEST 2000
#define BATCH 100

static uint8_t pictures[TRAIN + TEST][PIXELS];
static int labels[TRAIN + TEST];
static float weight[10][ONE_MORE];  // the last is the bias

static void softmax_of(const float *x, float out[10])
{
  float top = -INFINITY, sum = 0.0f;
  for (int c = 0; c < 10; c++) {
    float z = weight[c][PIXELS];
    for (int k = 0; k < PIXELS; k++) z += weight[c][k] * x[k];
    out[c] = z;
    top = z > top ? z : top;
  }
  for (int c = 0; c < 10; c++) sum += out[c] = expf(out[c] - top);
  for (int c = 0; c < 10; c++) out[c] /= sum;
}

static void normalise(const uint8_t *pixels, float *out)
{
  for (int k = 0; k < PIXELS; k++) {
    out[k] = ((float)pixels[k] / 255.0f - 0.1307f) / 0.3081f;
  }
}

static void train_epoch(float lr)
{
  for (int at = 0; at < TRAIN; at += BATCH) {
    static float step[10][ONE_MORE];
    memset(step, 0, sizeof step);
    for (int i = at; i < at + BATCH; i++) {
      float x[ONE_MORE], p[10];
      normalise(pictures[i], x);
      x[PIXELS] = 1.0f;
      softmax_of(x, p);
      p[labels[i]] -= 1.0f;
      for (int c = 0; c < 10; c++) {
        float g = lr * p[c] / BATCH;
        for (int k = 0; k < ONE_MORE; k++) step[c][k] -= g * x[k];
      }
    }
    for (int c = 0; c < 10; c++) {
      for (int k = 0; k < ONE_MORE; k++) weight[c][k] += step[c][k];
    }
  }
}

static double percent_right(void)
{
  int right = 0;
  for (int i = TRAIN; i < TRAIN + TEST; i++) {
    float x[PIXELS], p[10];
    normalise(pictures[i], x);
    softmax_of(x, p);
    int best = 0;
    for (int c = 1; c < 10; c++) best = p[c] > p[best] ? c : best;
    right += best == labels[i];
  }
  return 100.0 * right / TEST;
}

static void test_linear_model(void **state)
{
  (void)state;
  for (int i = 0; i < TRAIN + TEST; i++) {
    uint64_t seed = i < TRAIN ? 1 : 2;
    labels[i] = cx_data_digit_draw(seed, i, pictures[i]);
  }
  double best = 0.0;
  for (int epoch = 0; epoch < 8; epoch++) {
    train_epoch(0.05f / (float)(1 + epoch));
    double now = percent_right();
    best = now > best ? now : best;
  }
  print_message("a linear model: %.2f %% at best\n", best);
  assert_true(best > 70.0 && best < 88.0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_recorded),
    CHECK_TEST(test_dataset),
    CHECK_TEST(test_pictures),
    CHECK_TEST(test_linear_model),
  };
  return cmocka_run_group_tests_name("data_digits", tests, NULL, NULL);
}
