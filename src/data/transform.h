// data/transform: what all transforms of images are made of.
#ifndef CX_DATA_TRANSFORM_H
#define CX_DATA_TRANSFORM_H

#include "calx/transforms.h"
#include "data/random.h"
#include "image/image.h"

// What a transform makes of an image's sizes; 0: not known beforehand.
typedef struct cx_data_shape {
  int64_t channels, height, width;
  bool is_float;
} cx_data_shape;

enum { CX_DATA_MAX_CHANNELS = 4 };

// The parameters of all kinds: each uses some of them.
typedef struct cx_data_parameters {
  int64_t height, width;  // width 0: the shorter edge is `height`
  int64_t max_size;
  calx_interpolation_mode interpolation;
  bool antialias;
  int64_t padding[4];  // left, top, right, bottom
  bool pad_if_needed, random;
  calx_padding_mode padding_mode;
  double fill, p;
  double scale[2], ratio[2];  // also an angle's range, in `scale`
  double ranges[4][2];        // brightness, contrast, saturation, hue
  size_t channels;
  float mean[CX_DATA_MAX_CHANNELS], std[CX_DATA_MAX_CHANNELS];
  calx_transform **parts;  // of a list
  size_t n_parts;
} cx_data_parameters;

typedef struct cx_data_transform_kind {
  const char *name;  // for messages
  // Replaces the image. On failure it is as it was or none.
  calx_status *(*apply)(const cx_data_parameters *p, cx_data_random *random,
                        cx_image *image);
  // NULL: sizes and type stay.
  void (*shape)(const cx_data_parameters *p, cx_data_shape *shape);
} cx_data_transform_kind;

struct calx_transform {
  calx_status *error;
  const cx_data_transform_kind *kind;
  cx_data_parameters parameters;
};

// A transform with a copy of the parameters, or a failed one. Takes the status.
calx_transform *cx_data_transform_new(const cx_data_transform_kind *kind,
                                      const cx_data_parameters *parameters,
                                      calx_status *status);

calx_status *cx_data_transform_run(const calx_transform *transform,
                                   cx_data_random *random,
                                   cx_image *image) CALX_MUST_USE;
void cx_data_transform_shape(const calx_transform *transform,
                             cx_data_shape *shape);

// ---- for the kinds ----------------------------------------------------------

// One or two positive sizes.
calx_status *cx_data_take_size(const char *name, calx_dims size, bool one_edge,
                               cx_data_parameters *out) CALX_MUST_USE;
calx_status *cx_data_take_probability(const char *name, double p,
                                      cx_data_parameters *out) CALX_MUST_USE;
// A range of positive numbers; {0, 0}: the default.
calx_status *cx_data_take_range(const char *name, const char *option,
                                const double given[2], double low, double high,
                                double out[2]) CALX_MUST_USE;
calx_status *cx_data_take_interpolation(const char *name,
                                        calx_interpolation_mode interpolation,
                                        bool no_antialias,
                                        cx_data_parameters *out) CALX_MUST_USE;

// Puts another image in the place of this one.
void cx_data_replace(cx_image *image, cx_image *with);

// The rectangle at (top, left), which may reach past the edges.
calx_status *cx_data_crop(cx_image *image, int64_t top, int64_t left,
                          int64_t height, int64_t width, calx_padding_mode mode,
                          double fill) CALX_MUST_USE;
calx_status *cx_data_resize(cx_image *image, int64_t height, int64_t width,
                            calx_interpolation_mode interpolation,
                            bool antialias) CALX_MUST_USE;

// Factors and the hue's shift, one at a time: 0 brightness, 1 contrast,
// 2 saturation, 3 hue.
calx_status *cx_data_adjust(cx_image *image, int what,
                            double factor) CALX_MUST_USE;
// Counter-clockwise, by degrees.
calx_status *cx_data_rotate(cx_image *image, double degrees,
                            calx_interpolation_mode interpolation,
                            double fill) CALX_MUST_USE;

// Uniform in [low, high).
static inline double cx_data_uniform(cx_data_random *r, double low, double high)
{
  return low +
         (high - low) * ((double)(cx_data_random_next(r) >> 11) * 0x1p-53);
}

static inline float cx_data_load(const cx_image *image, size_t i)
{
  return image->is_float ? ((const float *)image->data)[i]
                         : (float)((const uint8_t *)image->data)[i];
}

// Of u8, rounded to the nearest and limited to 0 to 255.
static inline void cx_data_store(cx_image *image, size_t i, float value)
{
  if (image->is_float) {
    ((float *)image->data)[i] = value;
    return;
  }
  float limited = value > 255 ? 255 : value > 0 ? value : 0;
  ((uint8_t *)image->data)[i] = (uint8_t)__builtin_rintf(limited);
}

#endif
