// data/transform_rotate: an image turned about its middle.
#include <math.h>

#include "base/options.h"
#include "data/transform.h"

// The pixel at (x, y); `inside` counts how much of the weights is in the image.
static double pixel(const cx_image *image, size_t plane, double x, double y,
                    double weight, double *inside)
{
  if (x < 0 || y < 0 || x >= (double)image->width ||
      y >= (double)image->height) {
    return 0;
  }
  *inside += weight;
  size_t at = (size_t)y * (size_t)image->width + (size_t)x;
  return weight * (double)cx_data_load(image, plane + at);
}

static double value_at(const cx_image *image, size_t plane, double x, double y,
                       calx_interpolation_mode interpolation, double fill)
{
  double inside = 0, value;
  if (interpolation == CALX_INTERPOLATION_NEAREST) {
    value = pixel(image, plane, nearbyint(x), nearbyint(y), 1, &inside);
  } else {
    double left = floor(x), top = floor(y), u = x - left, v = y - top;
    value = pixel(image, plane, left, top, (1 - u) * (1 - v), &inside) +
            pixel(image, plane, left + 1, top, u * (1 - v), &inside) +
            pixel(image, plane, left, top + 1, (1 - u) * v, &inside) +
            pixel(image, plane, left + 1, top + 1, u * v, &inside);
  }
  // As in torchvision, which interpolates a mask, too: at the edges `value` has
  // the weight `inside` already, and gets it again.
  return inside * value + (1 - inside) * fill;
}

calx_status *cx_data_rotate(cx_image *image, double degrees,
                            calx_interpolation_mode interpolation, double fill)
{
  cx_image out;
  CALX_TRY(cx_image_new(image->channels, image->height, image->width,
                        image->is_float, &out));
  double angle = degrees * 3.141592653589793 / 180;
  double c = cos(angle), s = sin(angle);
  double middle_x = (double)(image->width - 1) / 2;
  double middle_y = (double)(image->height - 1) / 2;
  size_t plane = cx_image_plane(image), at = 0;
  for (int64_t y = 0; y < image->height; y++) {
    for (int64_t x = 0; x < image->width; x++, at++) {
      double dx = (double)x - middle_x, dy = (double)y - middle_y;
      double from_x = c * dx - s * dy + middle_x;
      double from_y = s * dx + c * dy + middle_y;
      for (size_t k = 0; k < (size_t)image->channels; k++) {
        cx_data_store(&out, k * plane + at,
                      (float)value_at(image, k * plane, from_x, from_y,
                                      interpolation, fill));
      }
    }
  }
  cx_data_replace(image, &out);
  return NULL;
}

static calx_status *apply_rotation(const cx_data_parameters *p,
                                   cx_data_random *random, cx_image *image)
{
  double degrees = cx_data_uniform(random, p->scale[0], p->scale[1]);
  return cx_data_rotate(image, degrees, p->interpolation, p->fill);
}

static calx_status *take_rotation(
    const char *name, double low, double high,
    const calx_transforms_random_rotation_options *given, cx_data_parameters *p)
{
  calx_transforms_random_rotation_options o;
  CALX_TRY(cx_options_take(name, given, &o, sizeof o));
  CALX_TRY(cx_data_take_interpolation(name, o.interpolation, false, p));
  if (o.interpolation == CALX_INTERPOLATION_BICUBIC) {
    return cx_invalid("%s: interpolation is bilinear or nearest", name);
  }
  if (o.interpolation == CALX_INTERPOLATION_DEFAULT) {
    p->interpolation = CALX_INTERPOLATION_NEAREST;
  }
  p->scale[0] = low;
  p->scale[1] = high;
  p->fill = o.fill;
  if (!isfinite(low) || !isfinite(high) || !(low <= high)) {
    return cx_invalid("%s: from %g to %g degrees", name, low, high);
  }
  return isfinite(o.fill) ? NULL : cx_invalid("%s: fill is %g", name, o.fill);
}

calx_transform *calx_transforms_random_rotation_with(
    double low, double high,
    const calx_transforms_random_rotation_options *options)
{
  static const cx_data_transform_kind kind = { "random_rotation",
                                               apply_rotation, NULL };
  cx_data_parameters p = { 0 };
  calx_status *status = take_rotation(kind.name, low, high, options, &p);
  return cx_data_transform_new(&kind, &p, status);
}
