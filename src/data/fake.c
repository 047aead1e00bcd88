// data/fake: drawn samples of any shape, for trying out a model and for
// measuring one without files.
//
// Sample i is drawn from the numbers of (i + random_offset) alone.
//
// Source: torchvision.datasets.FakeData; G. Box, M. Muller, "A note on the
// generation of random normal deviates", 1958.
#include <math.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/random.h"

typedef struct fake {
  calx_dtype dtype;
  int64_t elements;
  uint64_t classes, high, offset;
} fake;

// Two independent standard normal numbers.
static void draw_normal(cx_data_random *r, float out[2])
{
  uint64_t bits = cx_data_random_next(r);
  float u = (float)((bits >> 40) + 1) * 0x1p-24f;  // (0, 1]
  float angle = (float)(bits & 0xffffff) * (0x1p-24f * 6.28318531f);
  float radius = sqrtf(-2.0f * logf(u));
  out[0] = radius * cosf(angle);
  out[1] = radius * sinf(angle);
}

static void draw_floats(const fake *f, cx_data_random *r, void *out)
{
  size_t bytes = calx_dtype_size(f->dtype);
  float pair[2];
  for (int64_t i = 0; i < f->elements; i++) {
    if (i % 2 == 0) draw_normal(r, pair);
    cx_store_double(f->dtype, (char *)out + (size_t)i * bytes,
                    (double)pair[i % 2]);
  }
}

static void draw_integers(const fake *f, cx_data_random *r, void *out)
{
  size_t bytes = calx_dtype_size(f->dtype);
  for (int64_t i = 0; i < f->elements; i++) {
    cx_store_int(f->dtype, (char *)out + (size_t)i * bytes,
                 (int64_t)cx_data_random_below(r, f->high));
  }
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const fake *f = user;
  cx_data_random r = cx_data_random_new(f->offset + (uint64_t)index, 0);
  *(int64_t *)fields[1] = (int64_t)cx_data_random_below(&r, f->classes);
  if (cx_dtype_is_float(f->dtype)) {
    draw_floats(f, &r, fields[0]);
  } else {
    draw_integers(f, &r, fields[0]);
  }
  return NULL;
}

// The largest number of an integer type, and 1 for bool.
static uint64_t most_of(calx_dtype dtype)
{
  if (dtype == CALX_BOOL) return 1;
  size_t bits = 8 * calx_dtype_size(dtype);
  uint64_t all = UINT64_MAX >> (64 - bits);
  return cx_dtype_is_unsigned(dtype) && bits < 64 ? all : all >> 1;
}

static calx_status *take_options(const calx_fake_options *given,
                                 calx_fake_options *out)
{
  CALX_TRY(cx_options_take("fake dataset", given, out, sizeof *out));
  if (out->image_size.count == 0) {
    out->image_size = calx_dims_of((const int64_t[]){ 3, 224, 224 }, 3);
  }
  if (out->image_size.count >= CALX_MAX_RANK) {
    return cx_invalid(
        "fake dataset: image_size has %zu sizes, and a batch one more: %d is "
        "the most",
        out->image_size.count, CALX_MAX_RANK);
  }
  if (out->num_classes == 0) out->num_classes = 10;
  if (out->num_classes < 0) {
    return cx_invalid("fake dataset: num_classes is %lld",
                      (long long)out->num_classes);
  }
  if (out->dtype == CALX_DTYPE_DEFAULT) out->dtype = CALX_F32;
  if (!cx_dtype_valid(out->dtype) || cx_dtype_is_complex(out->dtype)) {
    return cx_invalid("fake dataset: there is no such real dtype as %d",
                      (int)out->dtype);
  }
  uint64_t most = most_of(out->dtype);
  if (out->high == 0) out->high = most < 128 ? (int64_t)most + 1 : 128;
  if (out->high < 0 ||
      (!cx_dtype_is_float(out->dtype) && (uint64_t)out->high - 1 > most)) {
    return cx_invalid("fake dataset: high is %lld, %s has 0 to %llu",
                      (long long)out->high, calx_dtype_name(out->dtype),
                      (unsigned long long)most);
  }
  return NULL;
}

calx_dataset *calx_dataset_fake_with(int64_t size,
                                     const calx_fake_options *options)
{
  calx_fake_options o;
  calx_status *status = take_options(options, &o);
  if (status != NULL) return cx_data_failed(status);
  calx_field fields[] = {
    { .name = "data", .dtype = o.dtype, .rank = o.image_size.count },
    { .name = "target", .dtype = CALX_I64 },
  };
  int64_t elements = 0;
  size_t bytes;
  for (size_t d = 0; d < o.image_size.count; d++) {
    fields[0].dims[d] = o.image_size.values[d];
  }
  // Sizes that are too large are refused by calx_dataset_new().
  if (!cx_dims_bytes(o.dtype, fields[0].dims, fields[0].rank, &elements,
                     &bytes)) {
    elements = 0;
  }
  fake *f = cx_alloc(sizeof *f);
  if (f == NULL) return cx_data_failed(cx_out_of_memory());
  *f = (fake){ .dtype = o.dtype,
               .elements = elements,
               .classes = (uint64_t)o.num_classes,
               .high = (uint64_t)o.high,
               .offset = (uint64_t)o.random_offset };
  return calx_dataset_new(size, fields, 2, get, f, cx_free);
}
