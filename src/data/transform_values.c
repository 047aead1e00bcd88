// data/transform_values: brightness, contrast, saturation, hue; pixels as a
// network's input.
//
// Of u8 the results are cut, not rounded, as torchvision's are for tensors.
#include <math.h>

#include "base/options.h"
#include "data/transform.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, ADJUSTMENTS };

// ---- blends -----------------------------------------------------------------

static float grey(const cx_image *image, size_t i)
{
  size_t plane = cx_image_plane(image);
  if (image->channels == 1) return cx_data_load(image, i);
  float value = 0.2989F * cx_data_load(image, i) +
                0.587F * cx_data_load(image, plane + i) +
                0.114F * cx_data_load(image, 2 * plane + i);
  return image->is_float ? value : truncf(value);
}

static void put_cut(cx_image *image, size_t i, float value)
{
  float most = image->is_float ? 1 : 255;
  float limited = value > most ? most : value > 0 ? value : 0;
  cx_data_store(image, i, image->is_float ? limited : truncf(limited));
}

static void blend(cx_image *image, size_t i, float other, double factor)
{
  // 1 - factor in f64, as torch has it: what is cut depends on its last bit.
  put_cut(image, i,
          (float)factor * cx_data_load(image, i) + (float)(1 - factor) * other);
}

static float mean_grey(const cx_image *image)
{
  size_t plane = cx_image_plane(image);
  double sum = 0;
  for (size_t i = 0; i < plane; i++) sum += (double)grey(image, i);
  return (float)(sum / (double)plane);
}

// ---- hue --------------------------------------------------------------------

// Hue in turns, saturation and value of a colour, all in [0, 1].
static void to_hsv(const float rgb[3], float hsv[3])
{
  float r = rgb[0], g = rgb[1], b = rgb[2];
  float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b));
  float range = most - least, sixth = 0;
  if (range > 0) {
    sixth = most == r   ? (g - b) / range
            : most == g ? 2 + (b - r) / range
                        : 4 + (r - g) / range;
  }
  hsv[0] = fmodf(sixth / 6 + 1, 1);
  hsv[1] = range > 0 ? range / most : 0;
  hsv[2] = most;
}

static void from_hsv(const float hsv[3], float rgb[3])
{
  float sixth = floorf(hsv[0] * 6), part = hsv[0] * 6 - sixth;
  float s = hsv[1], v = hsv[2];
  float p = v * (1 - s), q = v * (1 - s * part), t = v * (1 - s * (1 - part));
  const float of[6][3] = { { v, t, p }, { q, v, p }, { p, v, t },
                           { p, q, v }, { t, p, v }, { v, p, q } };
  for (int k = 0; k < 3; k++) {
    float value = of[(int)sixth % 6][k];
    rgb[k] = value > 1 ? 1 : value > 0 ? value : 0;
  }
}

static void shift_hue(cx_image *image, float turns)
{
  size_t plane = cx_image_plane(image);
  for (size_t i = 0; i < plane; i++) {
    float rgb[3], hsv[3];
    for (size_t c = 0; c < 3; c++) {
      float value = cx_data_load(image, c * plane + i);
      rgb[c] = image->is_float ? value : value / 255;
    }
    to_hsv(rgb, hsv);
    hsv[0] = fmodf(hsv[0] + turns + 1, 1);
    from_hsv(hsv, rgb);
    for (size_t c = 0; c < 3; c++) {
      // u8: 256 intervals of equal width.
      put_cut(image, c * plane + i,
              image->is_float ? rgb[c] : rgb[c] * (256 - 1e-3F));
    }
  }
}

// ---- ColorJitter ------------------------------------------------------------

calx_status *cx_data_adjust(cx_image *image, int what, double factor)
{
  if (image->channels != 1 && image->channels != 3) {
    return cx_invalid("color_jitter: an image of %lld channels: 1 or 3",
                      (long long)image->channels);
  }
  if (image->channels == 1 && (what == SATURATION || what == HUE)) return NULL;
  if (what == HUE) {
    shift_hue(image, (float)factor);
    return NULL;
  }
  size_t plane = cx_image_plane(image);
  float other = what == CONTRAST ? mean_grey(image) : 0;
  for (size_t i = 0; i < plane; i++) {
    if (what == SATURATION) other = grey(image, i);
    for (size_t c = 0; c < (size_t)image->channels; c++) {
      blend(image, c * plane + i, other, factor);
    }
  }
  return NULL;
}

static bool does_nothing(int what, const double range[2])
{
  double neutral = what == HUE ? 0 : 1;
  return range[0] == neutral && range[1] == neutral;
}

static calx_status *apply_jitter(const cx_data_parameters *p,
                                 cx_data_random *random, cx_image *image)
{
  int order[ADJUSTMENTS] = { BRIGHTNESS, CONTRAST, SATURATION, HUE };
  for (size_t i = ADJUSTMENTS - 1; i > 0; i--) {
    size_t j = (size_t)cx_data_random_below(random, i + 1);
    int other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
  for (int i = 0; i < ADJUSTMENTS; i++) {
    const double *range = p->ranges[order[i]];
    double factor = cx_data_uniform(random, range[0], range[1]);
    if (does_nothing(order[i], range)) continue;
    CALX_TRY(cx_data_adjust(image, order[i], factor));
  }
  return NULL;
}

// One number is the distance from what changes nothing.
static calx_status *take_jitter_range(const char *option, bool is_hue,
                                      const double given[2], double out[2])
{
  double neutral = is_hue ? 0 : 1;
  double least = is_hue ? -0.5 : 0, most = is_hue ? 0.5 : (double)INFINITY;
  out[0] = given[0];
  out[1] = given[1];
  if (given[1] == 0 && given[0] >= 0) {
    out[0] = neutral - given[0];
    out[1] = neutral + given[0];
    if (!is_hue && out[0] < 0) out[0] = 0;
  }
  if (out[0] >= least && out[0] <= out[1] && out[1] <= most &&
      isfinite(out[1])) {
    return NULL;
  }
  return cx_invalid(
      "color_jitter: %s is {%g, %g}: a distance, or a range of "
      "%s, the lower one first",
      option, given[0], given[1], is_hue ? "-0.5 to 0.5" : "numbers from 0");
}

static calx_status *take_jitter(
    const char *name, const calx_transforms_color_jitter_options *given,
    cx_data_parameters *p)
{
  calx_transforms_color_jitter_options o;
  CALX_TRY(cx_options_take(name, given, &o, sizeof o));
  CALX_TRY(take_jitter_range("brightness", false, o.brightness,
                             p->ranges[BRIGHTNESS]));
  CALX_TRY(
      take_jitter_range("contrast", false, o.contrast, p->ranges[CONTRAST]));
  CALX_TRY(take_jitter_range("saturation", false, o.saturation,
                             p->ranges[SATURATION]));
  return take_jitter_range("hue", true, o.hue, p->ranges[HUE]);
}

calx_transform *calx_transforms_color_jitter_with(
    const calx_transforms_color_jitter_options *options)
{
  static const cx_data_transform_kind kind = { "color_jitter", apply_jitter,
                                               NULL };
  cx_data_parameters p = { 0 };
  calx_status *status = take_jitter(kind.name, options, &p);
  return cx_data_transform_new(&kind, &p, status);
}

// ---- ToTensor and Normalize -------------------------------------------------

static calx_status *apply_to_tensor(const cx_data_parameters *p,
                                    cx_data_random *random, cx_image *image)
{
  (void)p;
  (void)random;
  if (image->is_float) return NULL;
  cx_image out;
  CALX_TRY(
      cx_image_new(image->channels, image->height, image->width, true, &out));
  const uint8_t *from = image->data;
  float *to = out.data;
  size_t count = cx_image_count(image);
  for (size_t i = 0; i < count; i++) to[i] = (float)from[i] / 255;
  cx_data_replace(image, &out);
  return NULL;
}

static void shape_to_tensor(const cx_data_parameters *p, cx_data_shape *shape)
{
  (void)p;
  shape->is_float = true;
}

calx_transform *calx_transforms_to_tensor(void)
{
  static const cx_data_transform_kind kind = { "to_tensor", apply_to_tensor,
                                               shape_to_tensor };
  return cx_data_transform_new(&kind, &(cx_data_parameters){ 0 }, NULL);
}

static calx_status *apply_normalize(const cx_data_parameters *p,
                                    cx_data_random *random, cx_image *image)
{
  (void)random;
  if (!image->is_float) {
    return cx_invalid("normalize: an image of u8: to_tensor comes before it");
  }
  if (p->channels != 1 && (int64_t)p->channels != image->channels) {
    return cx_invalid("normalize: %zu means for an image of %lld channels",
                      p->channels, (long long)image->channels);
  }
  float *value = image->data;
  size_t plane = cx_image_plane(image);
  for (size_t c = 0; c < (size_t)image->channels; c++) {
    size_t k = p->channels == 1 ? 0 : c;
    for (size_t i = 0; i < plane; i++, value++) {
      *value = (*value - p->mean[k]) / p->std[k];
    }
  }
  return NULL;
}

static calx_status *take_normalize(const float *mean, const float *std,
                                   size_t channels, cx_data_parameters *p)
{
  if (mean == NULL || std == NULL || channels < 1 ||
      channels > CX_DATA_MAX_CHANNELS) {
    return cx_invalid("normalize: mean and std of %zu channels: 1 to %d",
                      mean == NULL || std == NULL ? (size_t)0 : channels,
                      CX_DATA_MAX_CHANNELS);
  }
  p->channels = channels;
  for (size_t c = 0; c < channels; c++) {
    p->mean[c] = mean[c];
    p->std[c] = std[c];
    if (isfinite(mean[c]) && isfinite(std[c]) && std[c] != 0) continue;
    return cx_invalid("normalize: channel %zu has mean %g and std %g", c,
                      (double)mean[c], (double)std[c]);
  }
  return NULL;
}

calx_transform *calx_transforms_normalize(const float *mean, const float *std,
                                          size_t channels)
{
  static const cx_data_transform_kind kind = { "normalize", apply_normalize,
                                               NULL };
  cx_data_parameters p = { 0 };
  calx_status *status = take_normalize(mean, std, channels, &p);
  return cx_data_transform_new(&kind, &p, status);
}
