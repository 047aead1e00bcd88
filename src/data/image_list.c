// data/image_list: see the header.
#include "data/image_list.h"

#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/epoch.h"
#include "data/transform.h"

_Thread_local int64_t cx_data_epoch;

void cx_data_image_list_free(cx_data_image_list *list)
{
  for (int64_t i = 0; i < list->size; i++) cx_free(list->paths[i]);
  for (int64_t i = 0; i < list->n_classes; i++) cx_free(list->class_names[i]);
  cx_free(list->paths);
  cx_free(list->classes);
  cx_free(list->numbers);
  cx_free(list->class_names);
  *list = (cx_data_image_list){ 0 };
}

calx_status *cx_data_image_options(const char *call,
                                   const calx_image_dataset_options *given,
                                   cx_data_image_list *list)
{
  calx_image_dataset_options *o = &list->options;
  CALX_TRY(cx_options_take(call, given, o, sizeof *o));
  const calx_status *error = calx_transform_error(o->transform);
  if (error != NULL) return cx_status_copy(error);
  if (o->mode == CALX_IMAGE_UNCHANGED) o->mode = CALX_IMAGE_RGB;
  if ((int)o->mode < 0 || o->mode > CALX_IMAGE_RGB_ALPHA) {
    return cx_invalid("%s: there is no mode %d", call, (int)o->mode);
  }
  if (o->max_pixels >= 0) return NULL;
  return cx_invalid("%s: a limit of %lld pixels", call,
                    (long long)o->max_pixels);
}

calx_status *cx_data_image_add(cx_data_image_list *list, char *path)
{
  if (path == NULL) return cx_out_of_memory();
  if (!cx_grow(&list->paths, &list->path_room, (size_t)list->size + 1,
               sizeof *list->paths)) {
    cx_free(path);
    return cx_out_of_memory();
  }
  list->paths[list->size++] = path;
  return NULL;
}

// ---- samples ----------------------------------------------------------------

static calx_status *to_input(const calx_image_dataset_options *o, int64_t index,
                             cx_image *image)
{
  cx_data_random random = cx_data_random_new(
      cx_data_random_out(o->seed, (uint64_t)cx_data_epoch), (uint64_t)index);
  if (o->transform != NULL) {
    return cx_data_transform_run(o->transform, &random, image);
  }
  calx_transform *t = calx_transforms_to_tensor();
  calx_status *status = cx_data_transform_run(t, &random, image);
  calx_transform_free(t);
  return status;
}

// The image as the transform leaves it.
static calx_status *make(const cx_data_image_list *list, int64_t index,
                         cx_image *image)
{
  const calx_image_dataset_options *o = &list->options;
  const char *path = list->paths[index];
  CALX_TRY(cx_image_read(path, o->mode, o->max_pixels, image));
  calx_status *status = to_input(o, index, image);
  if (status == NULL) return NULL;
  cx_image_free(image);
  return cx_annotate(status, "of the image '%s'", path);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const cx_data_image_list *list = user;
  cx_image image;
  CALX_TRY(make(list, index, &image));
  calx_status *status = NULL;
  if (image.channels == list->channels && image.height == list->height &&
      image.width == list->width && image.is_float == list->is_float) {
    memcpy(fields[0], image.data,
           cx_image_count(&image) * (image.is_float ? sizeof(float) : 1));
  } else {
    status = cx_invalid(
        "'%s' has %lld x %lld pixels, the dataset's samples %lld x %lld: a "
        "resize or crop to (height, width) makes them equal",
        list->paths[index], (long long)image.height, (long long)image.width,
        (long long)list->height, (long long)list->width);
  }
  cx_image_free(&image);
  if (list->classes != NULL) {
    *(int64_t *)fields[1] = list->classes[index];
  } else {
    size_t count = (size_t)list->target_count;
    memcpy(fields[1], list->numbers + (size_t)index * count,
           count * sizeof(float));
  }
  return status;
}

// ---- the dataset ------------------------------------------------------------

// From the transform alone, else from the first image.
static calx_status *find_shape(cx_data_image_list *list)
{
  const calx_transform *transform = list->options.transform;
  cx_data_shape shape = { .channels =
                              cx_image_mode_channels(list->options.mode),
                          .is_float = transform == NULL };
  if (transform != NULL) cx_data_transform_shape(transform, &shape);
  list->channels = shape.channels;
  list->is_float = shape.is_float;
  list->height = shape.height;
  list->width = shape.width;
  if (list->size == 0 || (shape.height != 0 && shape.width != 0)) return NULL;
  cx_image image;
  CALX_TRY(make(list, 0, &image));
  list->height = image.height;
  list->width = image.width;
  cx_image_free(&image);
  return NULL;
}

static void free_list(void *user)
{
  cx_data_image_list_free(user);
  cx_free(user);
}

calx_dataset *cx_data_image_dataset(calx_status *status,
                                    cx_data_image_list *list)
{
  if (status == NULL) status = find_shape(list);
  cx_data_image_list *kept = status == NULL ? cx_alloc(sizeof *kept) : NULL;
  if (kept == NULL) {
    cx_data_image_list_free(list);
    return cx_data_failed(status != NULL ? status : cx_out_of_memory());
  }
  *kept = *list;
  const calx_field fields[] = {
    { .name = "data",
      .dtype = list->is_float ? CALX_F32 : CALX_U8,
      .rank = 3,
      .dims = { list->channels, list->height, list->width } },
    { .name = "target",
      .dtype = list->classes != NULL ? CALX_I64 : CALX_F32,
      .rank = (size_t)list->target_rank,
      .dims = { list->target_count } },
  };
  return calx_dataset_new(list->size, fields, 2, get, kept, free_list);
}

// NULL: a dataset of another kind.
static const cx_data_image_list *list_of(const calx_dataset *dataset)
{
  if (calx_dataset_error(dataset) != NULL || dataset->get != get) return NULL;
  return dataset->user;
}

int64_t calx_dataset_class_count(const calx_dataset *dataset)
{
  const cx_data_image_list *list = list_of(dataset);
  return list != NULL ? list->n_classes : 0;
}

const char *calx_dataset_class_name(const calx_dataset *dataset, int64_t k)
{
  const cx_data_image_list *list = list_of(dataset);
  return list != NULL && k >= 0 && k < list->n_classes ? list->class_names[k]
                                                       : NULL;
}

const char *calx_dataset_image_path(const calx_dataset *dataset, int64_t index)
{
  const cx_data_image_list *list = list_of(dataset);
  return list != NULL && index >= 0 && index < list->size ? list->paths[index]
                                                          : NULL;
}
