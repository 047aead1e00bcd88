// data/transform_crop: parts of an image, borders, and mirrored images.
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "data/transform.h"

// ---- cutting out ------------------------------------------------------------

typedef struct crop_origin {
  int64_t top, left;
  calx_padding_mode mode;
  float fill;
} crop_origin;

// Where a row or column outside of 0 … n-1 is taken from; -1: from nowhere.
static int64_t inside(int64_t i, int64_t n, calx_padding_mode mode)
{
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case CALX_PADDING_EDGE: return i < 0 ? 0 : n - 1;
    case CALX_PADDING_REFLECT: return i < 0 ? -i : 2 * (n - 1) - i;
    case CALX_PADDING_SYMMETRIC: return i < 0 ? -i - 1 : 2 * n - 1 - i;
    default: return -1;
  }
}

// Columns [begin, end) of one row of the result, one by one.
static void crop_edge(const cx_image *from, size_t row_begin, cx_image *to,
                      size_t at, const crop_origin *p, int64_t begin,
                      int64_t end)
{
  for (int64_t x = begin; x < end; x++) {
    int64_t column = inside(p->left + x, from->width, p->mode);
    float value =
        column < 0 ? p->fill : cx_data_load(from, row_begin + (size_t)column);
    cx_data_store(to, at + (size_t)x, value);
  }
}

static void crop_pixels(const cx_image *from, cx_image *to,
                        const crop_origin *p)
{
  size_t at = 0, bytes = from->is_float ? sizeof(float) : 1;
  int64_t width = to->width;
  // Columns of the result that are columns of the image.
  int64_t first = p->left < 0 ? -p->left : 0;
  int64_t last = from->width - p->left < width ? from->width - p->left : width;
  for (int64_t c = 0; c < from->channels; c++) {
    for (int64_t y = 0; y < to->height; y++, at += (size_t)width) {
      int64_t row = inside(p->top + y, from->height, p->mode);
      if (row < 0 || first >= last) {
        for (int64_t x = 0; x < width; x++) {
          cx_data_store(to, at + (size_t)x, p->fill);
        }
        continue;
      }
      size_t begin = (size_t)(c * from->height + row) * (size_t)from->width;
      crop_edge(from, begin, to, at, p, 0, first);
      memcpy((char *)to->data + (at + (size_t)first) * bytes,
             (const char *)from->data +
                 (begin + (size_t)(p->left + first)) * bytes,
             (size_t)(last - first) * bytes);
      crop_edge(from, begin, to, at, p, last, width);
    }
  }
}

calx_status *cx_data_crop(cx_image *image, int64_t top, int64_t left,
                          int64_t height, int64_t width, calx_padding_mode mode,
                          double fill)
{
  if (top == 0 && left == 0 && height == image->height &&
      width == image->width) {
    return NULL;
  }
  cx_image out;
  CALX_TRY(cx_image_new(image->channels, height, width, image->is_float, &out));
  crop_pixels(image, &out, &(crop_origin){ top, left, mode, (float)fill });
  cx_data_replace(image, &out);
  return NULL;
}

static void shape_fixed(const cx_data_parameters *p, cx_data_shape *shape)
{
  shape->height = p->height;
  shape->width = p->width;
}

// ---- CenterCrop -------------------------------------------------------------

// Half the difference as Python's int(round(x / 2)): to even.
static int64_t half(int64_t difference)
{
  return (int64_t)nearbyint((double)difference / 2);
}

static calx_status *apply_center(const cx_data_parameters *p,
                                 cx_data_random *random, cx_image *image)
{
  (void)random;
  // A smaller image: the larger half of the border is right and below.
  int64_t more_y = p->height > image->height ? p->height - image->height : 0;
  int64_t more_x = p->width > image->width ? p->width - image->width : 0;
  CALX_TRY(cx_data_crop(image, -(more_y / 2), -(more_x / 2),
                        image->height + more_y, image->width + more_x,
                        CALX_PADDING_CONSTANT, 0));
  return cx_data_crop(image, half(image->height - p->height),
                      half(image->width - p->width), p->height, p->width,
                      CALX_PADDING_CONSTANT, 0);
}

calx_transform *calx_transforms_center_crop(calx_dims size)
{
  static const cx_data_transform_kind kind = { "center_crop", apply_center,
                                               shape_fixed };
  cx_data_parameters p = { 0 };
  calx_status *status = cx_data_take_size(kind.name, size, false, &p);
  return cx_data_transform_new(&kind, &p, status);
}

// ---- RandomCrop -------------------------------------------------------------

static calx_status *pad(cx_image *image, const int64_t padding[4],
                        calx_padding_mode mode, double fill)
{
  // A mirrored border is at most the image.
  for (int k = 0; k < 4; k++) {
    int64_t edge = k % 2 == 0 ? image->width : image->height;
    if (mode == CALX_PADDING_CONSTANT || mode == CALX_PADDING_EDGE) break;
    if (padding[k] < edge + (mode == CALX_PADDING_SYMMETRIC)) continue;
    return cx_invalid(
        "random_crop: a mirrored border of %lld pixels of an image of %lld x "
        "%lld",
        (long long)padding[k], (long long)image->height,
        (long long)image->width);
  }
  return cx_data_crop(image, -padding[1], -padding[0],
                      image->height + padding[1] + padding[3],
                      image->width + padding[0] + padding[2], mode, fill);
}

static calx_status *apply_random_crop(const cx_data_parameters *p,
                                      cx_data_random *random, cx_image *image)
{
  CALX_TRY(pad(image, p->padding, p->padding_mode, p->fill));
  if (p->pad_if_needed && image->width < p->width) {
    int64_t more = p->width - image->width;
    const int64_t sides[] = { more, 0, more, 0 };
    CALX_TRY(pad(image, sides, p->padding_mode, p->fill));
  }
  if (p->pad_if_needed && image->height < p->height) {
    int64_t more = p->height - image->height;
    const int64_t sides[] = { 0, more, 0, more };
    CALX_TRY(pad(image, sides, p->padding_mode, p->fill));
  }
  if (image->height < p->height || image->width < p->width) {
    return cx_invalid(
        "random_crop: a crop of %lld x %lld of an image of %lld x %lld: "
        ".pad_if_needed gives it a border",
        (long long)p->height, (long long)p->width, (long long)image->height,
        (long long)image->width);
  }
  int64_t top = (int64_t)cx_data_random_below(
      random, (uint64_t)(image->height - p->height + 1));
  int64_t left = (int64_t)cx_data_random_below(
      random, (uint64_t)(image->width - p->width + 1));
  return cx_data_crop(image, top, left, p->height, p->width,
                      CALX_PADDING_CONSTANT, 0);
}

static calx_status *take_padding(const char *name, calx_dims padding,
                                 cx_data_parameters *p)
{
  static const int order[5][4] = {
    { 0 }, { 0, 0, 0, 0 }, { 0, 1, 0, 1 }, { 0 }, { 0, 1, 2, 3 }
  };
  if (padding.count > 4 || padding.count == 3) {
    return cx_invalid("%s: padding of %zu numbers: 1, 2 or 4", name,
                      padding.count);
  }
  for (int k = 0; k < 4 && padding.count > 0; k++) {
    p->padding[k] = padding.values[order[padding.count][k]];
    if (p->padding[k] >= 0 && p->padding[k] <= 1 << 20) continue;
    return cx_invalid("%s: padding of %lld pixels", name,
                      (long long)p->padding[k]);
  }
  return NULL;
}

static calx_status *take_random_crop(
    const char *name, calx_dims size,
    const calx_transforms_random_crop_options *given, cx_data_parameters *p)
{
  calx_transforms_random_crop_options o;
  CALX_TRY(cx_options_take(name, given, &o, sizeof o));
  CALX_TRY(cx_data_take_size(name, size, false, p));
  CALX_TRY(take_padding(name, o.padding, p));
  p->pad_if_needed = o.pad_if_needed;
  p->padding_mode = o.padding_mode;
  p->fill = o.fill;
  if ((int)o.padding_mode < 0 || o.padding_mode > CALX_PADDING_SYMMETRIC) {
    return cx_invalid("%s: there is no padding mode %d", name,
                      (int)o.padding_mode);
  }
  return isfinite(o.fill) ? NULL : cx_invalid("%s: fill is %g", name, o.fill);
}

calx_transform *calx_transforms_random_crop_with(
    calx_dims size, const calx_transforms_random_crop_options *options)
{
  static const cx_data_transform_kind kind = { "random_crop", apply_random_crop,
                                               shape_fixed };
  cx_data_parameters p = { 0 };
  calx_status *status = take_random_crop(kind.name, size, options, &p);
  return cx_data_transform_new(&kind, &p, status);
}

// ---- flips ------------------------------------------------------------------

static void mirror_bytes(uint8_t *row, size_t width)
{
  for (size_t a = 0, b = width - 1; a < b; a++, b--) {
    uint8_t left = row[a];
    row[a] = row[b];
    row[b] = left;
  }
}

static void mirror_floats(float *row, size_t width)
{
  for (size_t a = 0, b = width - 1; a < b; a++, b--) {
    float left = row[a];
    row[a] = row[b];
    row[b] = left;
  }
}

static calx_status *apply_horizontal(const cx_data_parameters *p,
                                     cx_data_random *random, cx_image *image)
{
  if (cx_data_uniform(random, 0, 1) >= p->p) return NULL;
  size_t rows = (size_t)(image->channels * image->height);
  size_t width = (size_t)image->width;
  for (size_t y = 0; y < rows; y++) {
    if (image->is_float) {
      mirror_floats((float *)image->data + y * width, width);
    } else {
      mirror_bytes((uint8_t *)image->data + y * width, width);
    }
  }
  return NULL;
}

static calx_status *apply_vertical(const cx_data_parameters *p,
                                   cx_data_random *random, cx_image *image)
{
  if (cx_data_uniform(random, 0, 1) >= p->p) return NULL;
  size_t width = (size_t)image->width, plane = cx_image_plane(image);
  for (size_t c = 0; c < (size_t)image->channels; c++) {
    for (size_t y = 0; y < (size_t)image->height / 2; y++) {
      size_t a = c * plane + y * width, b = (c + 1) * plane - (y + 1) * width;
      for (size_t x = 0; x < width; x++) {
        float upper = cx_data_load(image, a + x);
        cx_data_store(image, a + x, cx_data_load(image, b + x));
        cx_data_store(image, b + x, upper);
      }
    }
  }
  return NULL;
}

static calx_transform *make_flip(const cx_data_transform_kind *kind, double p)
{
  cx_data_parameters parameters = { 0 };
  calx_status *status = cx_data_take_probability(kind->name, p, &parameters);
  return cx_data_transform_new(kind, &parameters, status);
}

calx_transform *calx_transforms_random_horizontal_flip(double p)
{
  static const cx_data_transform_kind kind = { "random_horizontal_flip",
                                               apply_horizontal, NULL };
  return make_flip(&kind, p);
}

calx_transform *calx_transforms_random_vertical_flip(double p)
{
  static const cx_data_transform_kind kind = { "random_vertical_flip",
                                               apply_vertical, NULL };
  return make_flip(&kind, p);
}
