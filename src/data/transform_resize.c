// data/transform_resize: other sizes.
//
// With antialias a value is the weighted mean of the pixels below the filter,
// which is as wide as the scale, as PIL does it; the weights are for rows and
// columns apart. Without it the filter's width is that of the input's pixels.
//
// Source: torch.nn.functional.interpolate, whose values these are.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "data/transform.h"

// ---- one dimension ----------------------------------------------------------

typedef struct axis {
  int64_t *first;  // [out] the first pixel below the filter
  int64_t *count;  // [out] how many
  float *weights;  // [out][most]
  size_t most;
} axis;

static double linear(double x)
{
  x = fabs(x);
  return x < 1 ? 1 - x : 0;
}

// Keys' cubic with a = -0.5.
static double cubic(double x)
{
  const double a = -0.5;
  x = fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static void axis_free(axis *a)
{
  cx_free(a->first);
  cx_free(a->count);
  cx_free(a->weights);
}

static void weigh(axis *a, int64_t i, double scale, double width,
                  double (*filter)(double), double reach, int64_t in)
{
  double center = scale * ((double)i + 0.5), support = reach * width;
  int64_t low = (int64_t)(center - support + 0.5);
  int64_t high = (int64_t)(center + support + 0.5);
  if (low < 0) low = 0;
  if (high > in) high = in;
  float *weights = a->weights + (size_t)i * a->most;
  double sum = 0;
  for (int64_t j = low; j < high; j++) {
    double w = filter(((double)j - center + 0.5) / width);
    weights[j - low] = (float)w;
    sum += w;
  }
  for (int64_t j = 0; j < high - low; j++) {
    weights[j] = (float)((double)weights[j] / sum);
  }
  a->first[i] = low;
  a->count[i] = high - low;
}

static calx_status *axis_new(int64_t in, int64_t out,
                             calx_interpolation_mode interpolation,
                             bool antialias, axis *a)
{
  bool is_cubic = interpolation == CALX_INTERPOLATION_BICUBIC;
  double scale = (double)in / (double)out;
  double width = antialias && scale > 1 ? scale : 1;
  double reach = is_cubic ? 2 : 1;
  a->most = (size_t)(2 * ceil(reach * width)) + 1;
  size_t bytes;
  a->first = cx_calloc((size_t)out, sizeof *a->first);
  a->count = cx_calloc((size_t)out, sizeof *a->count);
  a->weights = cx_mul_size(a->most, sizeof *a->weights, &bytes)
                   ? cx_calloc((size_t)out, bytes)
                   : NULL;
  if (a->first == NULL || a->count == NULL || a->weights == NULL) {
    return cx_out_of_memory();
  }
  for (int64_t i = 0; i < out; i++) {
    weigh(a, i, scale, width, is_cubic ? cubic : linear, reach, in);
  }
  return NULL;
}

// ---- both -------------------------------------------------------------------

// Rows of (channels * height) of the image's width to rows of the new width.
static void across(const cx_image *image, const axis *a, int64_t width,
                   float *out)
{
  size_t rows = (size_t)(image->channels * image->height);
  for (size_t y = 0; y < rows; y++) {
    size_t begin = y * (size_t)image->width;
    for (int64_t x = 0; x < width; x++) {
      const float *weights = a->weights + (size_t)x * a->most;
      size_t first = begin + (size_t)a->first[x];
      float sum = 0;
      for (int64_t j = 0; j < a->count[x]; j++) {
        sum += weights[j] * cx_data_load(image, first + (size_t)j);
      }
      *out++ = sum;
    }
  }
}

static void down(const float *rows, const axis *a, int64_t in_height,
                 cx_image *out, float *line)
{
  size_t width = (size_t)out->width, at = 0;
  for (int64_t c = 0; c < out->channels; c++) {
    const float *plane = rows + (size_t)(c * in_height) * width;
    for (int64_t y = 0; y < out->height; y++) {
      const float *weights = a->weights + (size_t)y * a->most;
      memset(line, 0, width * sizeof *line);
      for (int64_t j = 0; j < a->count[y]; j++) {
        const float *row = plane + (size_t)(a->first[y] + j) * width;
        for (size_t x = 0; x < width; x++) line[x] += weights[j] * row[x];
      }
      for (size_t x = 0; x < width; x++) cx_data_store(out, at++, line[x]);
    }
  }
}

static calx_status *filtered(const cx_image *image,
                             calx_interpolation_mode interpolation,
                             bool antialias, cx_image *out)
{
  axis horizontal = { 0 }, vertical = { 0 };
  size_t width = (size_t)out->width, count;
  float *rows = NULL;
  calx_status *status =
      axis_new(image->width, out->width, interpolation, antialias, &horizontal);
  if (status == NULL) {
    status = axis_new(image->height, out->height, interpolation, antialias,
                      &vertical);
  }
  // One row more, in which a row of the result is made.
  if (status == NULL &&
      cx_mul_size((size_t)(image->channels * image->height) + 1,
                  width * sizeof *rows, &count)) {
    rows = cx_alloc(count);
  }
  if (rows != NULL) {
    float *line = rows + (size_t)(image->channels * image->height) * width;
    across(image, &horizontal, out->width, rows);
    down(rows, &vertical, image->height, out, line);
  } else if (status == NULL) {
    status = cx_out_of_memory();
  }
  cx_free(rows);
  axis_free(&horizontal);
  axis_free(&vertical);
  return status;
}

// The source in f32, as torch computes it.
static int64_t nearest(int64_t i, int64_t in, int64_t out)
{
  int64_t at = (int64_t)floorf((float)i * ((float)in / (float)out));
  return at < in - 1 ? at : in - 1;
}

static void sampled(const cx_image *image, cx_image *out)
{
  size_t at = 0;
  for (int64_t c = 0; c < out->channels; c++) {
    for (int64_t y = 0; y < out->height; y++) {
      int64_t row = c * image->height + nearest(y, image->height, out->height);
      for (int64_t x = 0; x < out->width; x++) {
        int64_t column = nearest(x, image->width, out->width);
        cx_data_store(
            out, at++,
            cx_data_load(image, (size_t)(row * image->width + column)));
      }
    }
  }
}

calx_status *cx_data_resize(cx_image *image, int64_t height, int64_t width,
                            calx_interpolation_mode interpolation,
                            bool antialias)
{
  if (height == image->height && width == image->width) return NULL;
  cx_image out;
  calx_status *status =
      cx_image_new(image->channels, height, width, image->is_float, &out);
  if (status == NULL && interpolation == CALX_INTERPOLATION_NEAREST) {
    sampled(image, &out);
  } else if (status == NULL) {
    status = filtered(image, interpolation, antialias, &out);
  }
  if (status == NULL) {
    cx_data_replace(image, &out);
  } else {
    cx_image_free(&out);
  }
  return status;
}

// ---- Resize -----------------------------------------------------------------

// The sizes of the result; false: the longer edge would be above 2^20.
static bool sizes(const cx_data_parameters *p, int64_t height, int64_t width,
                  int64_t *out_height, int64_t *out_width)
{
  *out_height = p->height;
  *out_width = p->width;
  if (p->width != 0) return true;
  int64_t shorter = height < width ? height : width;
  int64_t longer = height < width ? width : height;
  int64_t new_shorter = p->height;
  int64_t new_longer =
      (int64_t)((double)new_shorter * (double)longer / (double)shorter);
  if (p->max_size != 0 && new_longer > p->max_size) {
    new_shorter = (int64_t)((double)p->max_size * (double)new_shorter /
                            (double)new_longer);
    new_longer = p->max_size;
  }
  if (new_shorter < 1) new_shorter = 1;
  *out_height = height < width ? new_shorter : new_longer;
  *out_width = height < width ? new_longer : new_shorter;
  return new_longer <= 1 << 20;
}

static calx_status *apply_resize(const cx_data_parameters *p,
                                 cx_data_random *random, cx_image *image)
{
  (void)random;
  int64_t height, width;
  if (!sizes(p, image->height, image->width, &height, &width)) {
    return cx_invalid(
        "resize: an image of %lld x %lld with a shorter edge of "
        "%lld would be larger than 2^20",
        (long long)image->height, (long long)image->width,
        (long long)p->height);
  }
  return cx_data_resize(image, height, width, p->interpolation, p->antialias);
}

static void shape_resize(const cx_data_parameters *p, cx_data_shape *shape)
{
  int64_t height = shape->height, width = shape->width;
  shape->height = shape->width = 0;
  if (p->width != 0 || (height != 0 && width != 0)) {
    sizes(p, height, width, &shape->height, &shape->width);
  }
}

static calx_status *take_resize(const char *name, calx_dims size,
                                const calx_transforms_resize_options *given,
                                cx_data_parameters *p)
{
  calx_transforms_resize_options o;
  CALX_TRY(cx_options_take(name, given, &o, sizeof o));
  CALX_TRY(cx_data_take_size(name, size, true, p));
  p->max_size = o.max_size;
  if (o.max_size != 0 && (p->width != 0 || o.max_size <= p->height)) {
    return cx_invalid(
        "%s: max_size %lld is the limit of the longer edge: above the size of "
        "the shorter one, which is the only number then",
        name, (long long)o.max_size);
  }
  return cx_data_take_interpolation(name, o.interpolation, o.no_antialias, p);
}

calx_transform *calx_transforms_resize_with(
    calx_dims size, const calx_transforms_resize_options *options)
{
  static const cx_data_transform_kind kind = { "resize", apply_resize,
                                               shape_resize };
  cx_data_parameters p = { 0 };
  calx_status *status = take_resize(kind.name, size, options, &p);
  return cx_data_transform_new(&kind, &p, status);
}
