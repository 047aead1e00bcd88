// data/transform_area: rectangles of random area and proportions.
#include <math.h>

#include "base/options.h"
#include "data/transform.h"

enum { TRIES = 10 };

typedef struct rectangle {
  int64_t top, left, height, width;
} rectangle;

// A rectangle whose first edge is to the second as the drawn ratio: what
// torchvision draws for a crop (width, height) and for erasing (height, width).
static void draw_edges(const cx_data_parameters *p, cx_data_random *random,
                       double area, int64_t *out_first, int64_t *out_second)
{
  double target = area * cx_data_uniform(random, p->scale[0], p->scale[1]);
  double ratio =
      exp(cx_data_uniform(random, log(p->ratio[0]), log(p->ratio[1])));
  double first = nearbyint(sqrt(target * ratio));
  double second = nearbyint(sqrt(target / ratio));
  *out_first = first < 0x1p40 ? (int64_t)first : (int64_t)1 << 40;
  *out_second = second < 0x1p40 ? (int64_t)second : (int64_t)1 << 40;
}

static void draw_position(cx_data_random *random, const cx_image *image,
                          rectangle *r)
{
  r->top = (int64_t)cx_data_random_below(
      random, (uint64_t)(image->height - r->height + 1));
  r->left = (int64_t)cx_data_random_below(
      random, (uint64_t)(image->width - r->width + 1));
}

// ---- RandomResizedCrop ------------------------------------------------------

// The middle, with the nearest proportions that are allowed.
static rectangle middle(const cx_data_parameters *p, const cx_image *image)
{
  rectangle r = { .height = image->height, .width = image->width };
  double ratio = (double)image->width / (double)image->height;
  if (ratio < p->ratio[0]) {
    r.height = (int64_t)nearbyint((double)r.width / p->ratio[0]);
  } else if (ratio > p->ratio[1]) {
    r.width = (int64_t)nearbyint((double)r.height * p->ratio[1]);
  }
  if (r.height < 1) r.height = 1;
  if (r.width < 1) r.width = 1;
  r.top = (image->height - r.height) / 2;
  r.left = (image->width - r.width) / 2;
  return r;
}

static rectangle draw_crop(const cx_data_parameters *p, cx_data_random *random,
                           const cx_image *image)
{
  double area = (double)image->height * (double)image->width;
  for (int i = 0; i < TRIES; i++) {
    rectangle r;
    draw_edges(p, random, area, &r.width, &r.height);
    if (r.width < 1 || r.width > image->width || r.height < 1 ||
        r.height > image->height) {
      continue;
    }
    draw_position(random, image, &r);
    return r;
  }
  return middle(p, image);
}

static calx_status *apply_crop(const cx_data_parameters *p,
                               cx_data_random *random, cx_image *image)
{
  rectangle r = draw_crop(p, random, image);
  CALX_TRY(cx_data_crop(image, r.top, r.left, r.height, r.width,
                        CALX_PADDING_CONSTANT, 0));
  return cx_data_resize(image, p->height, p->width, p->interpolation,
                        p->antialias);
}

static void shape_crop(const cx_data_parameters *p, cx_data_shape *shape)
{
  shape->height = p->height;
  shape->width = p->width;
}

static calx_status *take_crop(
    const char *name, calx_dims size,
    const calx_transforms_random_resized_crop_options *given,
    cx_data_parameters *p)
{
  calx_transforms_random_resized_crop_options o;
  CALX_TRY(cx_options_take(name, given, &o, sizeof o));
  CALX_TRY(cx_data_take_size(name, size, false, p));
  CALX_TRY(cx_data_take_range(name, "scale", o.scale, 0.08, 1, p->scale));
  CALX_TRY(
      cx_data_take_range(name, "ratio", o.ratio, 3.0 / 4, 4.0 / 3, p->ratio));
  return cx_data_take_interpolation(name, o.interpolation, o.no_antialias, p);
}

calx_transform *calx_transforms_random_resized_crop_with(
    calx_dims size, const calx_transforms_random_resized_crop_options *options)
{
  static const cx_data_transform_kind kind = { "random_resized_crop",
                                               apply_crop, shape_crop };
  cx_data_parameters p = { 0 };
  calx_status *status = take_crop(kind.name, size, options, &p);
  return cx_data_transform_new(&kind, &p, status);
}

// ---- RandomErasing ----------------------------------------------------------

// Box and Muller's.
static double normal(cx_data_random *random)
{
  double u = 1 - cx_data_uniform(random, 0, 1);
  double turn = 6.283185307179586 * cx_data_uniform(random, 0, 1);
  return sqrt(-2 * log(u)) * cos(turn);
}

static void erase(const cx_data_parameters *p, cx_data_random *random,
                  cx_image *image, const rectangle *r)
{
  for (int64_t c = 0; c < image->channels; c++) {
    for (int64_t y = 0; y < r->height; y++) {
      int64_t row = c * image->height + r->top + y;
      for (int64_t x = 0; x < r->width; x++) {
        double value = p->random ? normal(random) : p->fill;
        cx_data_store(image, (size_t)(row * image->width + r->left + x),
                      (float)value);
      }
    }
  }
}

static calx_status *apply_erasing(const cx_data_parameters *p,
                                  cx_data_random *random, cx_image *image)
{
  if (p->random && !image->is_float) {
    return cx_invalid(
        "random_erasing: normal numbers in an image of u8: to_tensor comes "
        "before it");
  }
  if (cx_data_uniform(random, 0, 1) >= p->p) return NULL;
  double area = (double)image->height * (double)image->width;
  for (int i = 0; i < TRIES; i++) {
    rectangle r;
    draw_edges(p, random, area, &r.height, &r.width);
    if (r.height >= image->height || r.width >= image->width) continue;
    draw_position(random, image, &r);
    erase(p, random, image, &r);
    break;
  }
  return NULL;
}

static calx_status *take_erasing(
    const char *name, double p,
    const calx_transforms_random_erasing_options *given,
    cx_data_parameters *out)
{
  calx_transforms_random_erasing_options o;
  CALX_TRY(cx_options_take(name, given, &o, sizeof o));
  CALX_TRY(cx_data_take_probability(name, p, out));
  CALX_TRY(cx_data_take_range(name, "scale", o.scale, 0.02, 0.33, out->scale));
  if (out->scale[1] > 1) {
    return cx_invalid("%s: scale is up to %g of the area", name, out->scale[1]);
  }
  CALX_TRY(cx_data_take_range(name, "ratio", o.ratio, 0.3, 3.3, out->ratio));
  out->fill = o.value;
  out->random = o.random;
  if (isfinite(o.value)) return NULL;
  return cx_invalid("%s: value is %g", name, o.value);
}

calx_transform *calx_transforms_random_erasing_with(
    double p, const calx_transforms_random_erasing_options *options)
{
  static const cx_data_transform_kind kind = { "random_erasing", apply_erasing,
                                               NULL };
  cx_data_parameters parameters = { 0 };
  calx_status *status = take_erasing(kind.name, p, options, &parameters);
  return cx_data_transform_new(&kind, &parameters, status);
}
