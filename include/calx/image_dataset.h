/**
 * calx/image_dataset.h: datasets whose samples are images of files.
 *
 * A sample is "data" (channels, H, W) and "target". The files are read by the
 * loader's workers, one at a time, when their sample is asked for. All samples
 * have one size: the transform's result has it, by calx_transforms_resize or a
 * crop, or the files have; a file of another size is an error of its sample.
 */
#ifndef CALX_IMAGE_DATASET_H
#define CALX_IMAGE_DATASET_H

#include "calx/dataset.h"
#include "calx/transforms.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_image_dataset_options {
  CALX_NAMED size_t size;
  /* outlives the dataset; NULL: calx_transforms_to_tensor. "data" is f32, or u8
   * where that is not among the transforms */
  CALX_NAMED const calx_transform *transform;
  CALX_NAMED uint64_t seed;        /* of what transforms draw */
  CALX_NAMED calx_image_mode mode; /* default CALX_IMAGE_RGB */
  CALX_NAMED int64_t max_pixels;   /* as for calx_read_image */
} calx_image_dataset_options;

/**
 * Images in folders: ROOT/CLASS/…/NAME. The classes are the folders' names in
 * order, and "target" is the class's number, i64 (). Files that do not end in
 * .jpg, .jpeg or .png are left out.
 * @errors NOT_FOUND no folder, no class in it, or a class without an image
 *         INVALID_ARGUMENT bad options, folders more than 32 deep; a failed
 *         transform's own; where the size is not known beforehand, those of the
 *         first image. Of a sample: those of calx_read_image and the transform
 * @source torchvision.datasets.ImageFolder
 */
CALX_API calx_dataset *calx_dataset_image_folder_with(
    const char *root, const calx_image_dataset_options *options);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_image_csv_options {
  CALX_NAMED size_t size;
  /* as in calx_image_dataset_options */
  CALX_NAMED const calx_transform *transform;
  CALX_NAMED uint64_t seed;
  CALX_NAMED calx_image_mode mode;
  CALX_NAMED int64_t max_pixels;
  /* of the images' names, by title or number; NULL: the first */
  CALX_NAMED const char *image_column;
  CALX_NAMED const char *suffix; /* behind each name, ".jpg"; NULL: none */
  /* of the labels; NULL: all columns but the names' */
  CALX_NAMED const char *const *label_columns;
  CALX_NAMED size_t n_label_columns;
  CALX_NAMED calx_dtype target_dtype; /* i64 (the default) or f32 */
} calx_image_csv_options;

/**
 * A CSV file with a header: the names of images in a folder, and their labels.
 * "target" is, as i64 (), the class: of several columns the one that has 1
 * where the others have 0; of one column its number, or, where a cell is none,
 * the place of its text among the column's texts in order. As f32 it is the
 * numbers themselves, (columns), of one column ().
 * @errors those of calx_dataset_csv for the file; DATA_LOSS a row without
 *         exactly one 1, an empty name or label, a negative class, no row
 *         INVALID_ARGUMENT a name that leaves the folder, bad options; as
 *         calx_dataset_image_folder
 */
CALX_API calx_dataset *calx_dataset_image_csv_with(
    const char *csv, const char *folder, const calx_image_csv_options *options);

/** The classes of a dataset of this header; 0 for numbers, and for any other
 *  dataset. */
CALX_API int64_t calx_dataset_class_count(const calx_dataset *dataset);
/** The name of class k: a folder's, a column's title, a label's text. NULL:
 *  there is none. Lives as long as the dataset. */
CALX_API const char *calx_dataset_class_name(const calx_dataset *dataset,
                                             int64_t k);
/** The file of a sample; NULL: there is none. Lives as long as the dataset. */
CALX_API const char *calx_dataset_image_path(const calx_dataset *dataset,
                                             int64_t index);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define CALX_DATASET_IMAGE_FOLDER_(root, ...) \
  (calx_at_(CALX_HERE),                       \
   calx_dataset_image_folder_with(            \
       root, &(calx_image_dataset_options){ __VA_ARGS__ }))
#define calx_dataset_image_folder(...)    \
  CALX_DATASET_IMAGE_FOLDER_(__VA_ARGS__, \
                             .size = sizeof(calx_image_dataset_options))
#define CALX_DATASET_IMAGE_CSV_(csv, folder, ...) \
  (calx_at_(CALX_HERE),                           \
   calx_dataset_image_csv_with(csv, folder,       \
                               &(calx_image_csv_options){ __VA_ARGS__ }))
#define calx_dataset_image_csv(csv, ...)    \
  CALX_DATASET_IMAGE_CSV_(csv, __VA_ARGS__, \
                          .size = sizeof(calx_image_csv_options))
#endif
#endif
