// data/transform: transforms as objects, lists of them, and one applied to a
// tensor.
#include "data/transform.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"

static calx_transform no_memory;

calx_transform *cx_data_transform_new(const cx_data_transform_kind *kind,
                                      const cx_data_parameters *parameters,
                                      calx_status *status)
{
  calx_transform *t = cx_calloc(1, sizeof *t);
  if (t == NULL) {
    calx_status_free(status);
    return &no_memory;
  }
  *t = (calx_transform){ status, kind, *parameters };
  return t;
}

void calx_transform_free(calx_transform *transform)
{
  if (transform == NULL || transform == &no_memory) return;
  for (size_t i = 0; i < transform->parameters.n_parts; i++) {
    calx_transform_free(transform->parameters.parts[i]);
  }
  cx_free(transform->parameters.parts);
  calx_status_free(transform->error);
  cx_free(transform);
}

const calx_status *calx_transform_error(const calx_transform *transform)
{
  return transform == &no_memory ? cx_out_of_memory()
         : transform != NULL     ? transform->error
                                 : NULL;
}

calx_status *cx_data_transform_run(const calx_transform *transform,
                                   cx_data_random *random, cx_image *image)
{
  const calx_status *error = calx_transform_error(transform);
  if (error != NULL) return cx_status_copy(error);
  return transform->kind->apply(&transform->parameters, random, image);
}

void cx_data_transform_shape(const calx_transform *transform,
                             cx_data_shape *shape)
{
  if (calx_transform_error(transform) != NULL) return;
  if (transform->kind->shape == NULL) return;
  transform->kind->shape(&transform->parameters, shape);
}

// ---- options ----------------------------------------------------------------

calx_status *cx_data_take_size(const char *name, calx_dims size, bool one_edge,
                               cx_data_parameters *out)
{
  if (size.count != 1 && size.count != 2) {
    return cx_invalid("%s: a size of %zu numbers: one, or height and width",
                      name, size.count);
  }
  for (size_t i = 0; i < size.count; i++) {
    // A limit with which no product of sizes overflows.
    if (size.values[i] > 0 && size.values[i] <= 1 << 20) continue;
    return cx_invalid("%s: a size of %lld pixels", name,
                      (long long)size.values[i]);
  }
  out->height = size.values[0];
  out->width = size.count == 2 ? size.values[1] : one_edge ? 0 : out->height;
  return NULL;
}

calx_status *cx_data_take_probability(const char *name, double p,
                                      cx_data_parameters *out)
{
  out->p = p;
  if (p >= 0 && p <= 1) return NULL;
  return cx_invalid("%s: a probability of %g", name, p);
}

calx_status *cx_data_take_range(const char *name, const char *option,
                                const double given[2], double low, double high,
                                double out[2])
{
  bool absent = given[0] == 0 && given[1] == 0;
  out[0] = absent ? low : given[0];
  out[1] = absent ? high : given[1];
  if (out[0] > 0 && out[0] <= out[1] && isfinite(out[1])) return NULL;
  return cx_invalid("%s: %s is %g to %g: positive numbers, the lower one first",
                    name, option, out[0], out[1]);
}

calx_status *cx_data_take_interpolation(const char *name,
                                        calx_interpolation_mode interpolation,
                                        bool no_antialias,
                                        cx_data_parameters *out)
{
  out->interpolation = interpolation;
  out->antialias = !no_antialias;
  if ((int)interpolation < 0 || interpolation > CALX_INTERPOLATION_BICUBIC) {
    return cx_invalid("%s: there is no interpolation %d", name,
                      (int)interpolation);
  }
  if (interpolation == CALX_INTERPOLATION_BICUBIC && no_antialias) {
    return cx_invalid("%s: bicubic interpolation is with antialias only", name);
  }
  return NULL;
}

void cx_data_replace(cx_image *image, cx_image *with)
{
  cx_image_free(image);
  *image = *with;
}

// ---- lists ------------------------------------------------------------------

static calx_status *apply_all(const cx_data_parameters *p,
                              cx_data_random *random, cx_image *image)
{
  for (size_t i = 0; i < p->n_parts; i++) {
    CALX_TRY(cx_data_transform_run(p->parts[i], random, image));
  }
  return NULL;
}

static void shape_all(const cx_data_parameters *p, cx_data_shape *shape)
{
  for (size_t i = 0; i < p->n_parts; i++) {
    cx_data_transform_shape(p->parts[i], shape);
  }
}

static calx_status *check_parts(calx_transform *const *list, size_t count)
{
  if (list == NULL || count == 0) {
    return cx_invalid("compose: there is no transform");
  }
  for (size_t i = 0; i < count; i++) {
    if (list[i] == NULL) {
      return cx_invalid("compose: transform %zu of %zu is NULL", i, count);
    }
    const calx_status *error = calx_transform_error(list[i]);
    if (error != NULL) return cx_status_copy(error);
  }
  return NULL;
}

calx_transform *calx_transforms_compose_n(calx_transform *const *list,
                                          size_t count)
{
  static const cx_data_transform_kind kind = { "compose", apply_all,
                                               shape_all };
  cx_data_parameters p = { .n_parts = list != NULL ? count : 0 };
  calx_status *status = check_parts(list, count);
  p.parts = cx_calloc(p.n_parts, sizeof *p.parts);
  calx_transform *t = &no_memory;
  if (p.parts != NULL) {
    if (p.n_parts > 0) memcpy(p.parts, list, p.n_parts * sizeof *list);
    t = cx_data_transform_new(&kind, &p, status);
    if (t != &no_memory) return t;
    cx_free(p.parts);
  } else {
    calx_status_free(status);
  }
  for (size_t i = 0; i < p.n_parts; i++) calx_transform_free(list[i]);
  return t;
}

// ---- one image --------------------------------------------------------------

static calx_status *check_image(const calx_tensor *image)
{
  if (image == NULL) return cx_invalid("transform: the image is NULL");
  const calx_status *error = calx_tensor_error(image);
  if (error != NULL) return cx_status_copy(error);
  calx_dtype dtype = calx_tensor_dtype(image);
  int64_t channels = calx_tensor_dim(image, 0);
  if (!calx_tensor_is_host(image)) {
    return cx_invalid("transform: the image is on a device: calx_cpu moves it");
  }
  if (calx_tensor_rank(image) != 3 || channels > CX_DATA_MAX_CHANNELS ||
      calx_tensor_numel(image) == 0) {
    return cx_invalid(
        "transform: an image is (channels, height, width), of 1 to %d "
        "channels: got rank %zu, %lld elements and %lld first",
        CX_DATA_MAX_CHANNELS, calx_tensor_rank(image),
        (long long)calx_tensor_numel(image), (long long)channels);
  }
  if (dtype != CALX_U8 && dtype != CALX_F32) {
    return cx_invalid("transform: an image is u8 or f32, got %s",
                      calx_dtype_name(dtype));
  }
  return NULL;
}

static calx_status *apply(const calx_transform *transform,
                          const calx_tensor *image, uint64_t seed,
                          cx_image *out)
{
  if (transform == NULL) return cx_invalid("transform: it is NULL");
  CALX_TRY(check_image(image));
  bool is_float = calx_tensor_dtype(image) == CALX_F32;
  CALX_TRY(cx_image_new(calx_tensor_dim(image, 0), calx_tensor_dim(image, 1),
                        calx_tensor_dim(image, 2), is_float, out));
  memcpy(out->data, calx_host_data(image),
         cx_image_count(out) * (is_float ? sizeof(float) : 1));
  cx_data_random random = cx_data_random_new(seed, 0);
  return cx_data_transform_run(transform, &random, out);
}

calx_tensor *calx_transform_apply(const calx_transform *transform,
                                  calx_tensor *image, uint64_t seed)
{
  cx_image out = { 0 };
  calx_status *status = apply(transform, image, seed, &out);
  calx_tensor *t;
  if (status == NULL) {
    const int64_t dims[] = { out.channels, out.height, out.width };
    t = calx_host_tensor(out.data, out.is_float ? CALX_F32 : CALX_U8,
                         calx_dims_of(dims, 3));
  } else {
    t = cx_lazy_tensor_poison(status);
  }
  cx_image_free(&out);
  return t;
}
