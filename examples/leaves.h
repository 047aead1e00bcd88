// Drawn leaves, healthy and sick, in the place of Kaggle's Plant Pathology.
#ifndef EXAMPLES_LEAVES_H
#define EXAMPLES_LEAVES_H

#include <calx/calx.h>
#include <string.h>

#include "drawn.h"

enum { LEAF_SIDE = 64, LEAF_CLASSES = 4 };  // healthy, scab, rust, both

static inline void leaf_blot(float *image, double x, double y, double radius,
                             const float color[3])
{
  const int plane = LEAF_SIDE * LEAF_SIDE;
  for (int i = 0; i < plane; i++) {
    double d = hypot(i % LEAF_SIDE - x, i / LEAF_SIDE - y) / radius;
    for (int c = 0; c < 3 && d < 1; c++) image[c * plane + i] = color[c];
  }
}

// A leaf of some green on some ground, f32 (3, side, side) in [-1, 1].
static inline void leaf_ground(float *image, const double axes[2], double angle,
                               uint64_t *state)
{
  const int half = LEAF_SIDE / 2, plane = LEAF_SIDE * LEAF_SIDE;
  double light = drawn(state) * 0.6 - 0.3;
  for (int i = 0; i < plane; i++) {
    double x = i % LEAF_SIDE - half, y = i / LEAF_SIDE - half;
    double u = x * cos(angle) + y * sin(angle);
    double v = y * cos(angle) - x * sin(angle);
    bool inside = u * u / (axes[0] * axes[0]) + v * v / (axes[1] * axes[1]) < 1;
    for (int c = 0; c < 3; c++) {
      double base = inside ? (c == 1 ? 0.4 : -0.5) : -0.1 * c;
      double noise = 0.3 * (drawn(state) - 0.5);
      image[c * plane + i] = (float)(base + light + noise);
    }
  }
}

// Fields: image, class. With dark spots of scab and orange ones of rust.
static inline calx_status *leaf_draw(void *user, int64_t index,
                                     void *const *fields)
{
  static const float spots[2][3] = { { -0.8F, -0.7F, -0.9F },
                                     { 0.7F, 0.1F, -0.7F } };
  uint64_t state = drawn_begin(*(uint64_t *)user, index);
  const int64_t class = (int64_t)(drawn(&state) * LEAF_CLASSES);
  double angle = drawn(&state) * 3.14159;
  double axes[2] = { 24 + 8 * drawn(&state), 12 + 6 * drawn(&state) };
  leaf_ground(fields[0], axes, angle, &state);
  for (int sick = 0; sick < 2; sick++) {
    int count = (class >> sick & 1) != 0 ? 2 + (int)(4 * drawn(&state)) : 0;
    for (int k = 0; k < count; k++) {
      double u = (drawn(&state) - 0.5) * axes[0] * 1.4;
      double v = (drawn(&state) - 0.5) * axes[1];
      double x = u * cos(angle) - v * sin(angle) + LEAF_SIDE / 2;
      double y = u * sin(angle) + v * cos(angle) + LEAF_SIDE / 2;
      leaf_blot(fields[0], x, y, 2.4 + 2.6 * drawn(&state), spots[sick]);
    }
  }
  *(int64_t *)fields[1] = class;
  return NULL;
}

// The seed must stay until the dataset is freed.
static inline calx_dataset *leaves_draw(int64_t size, uint64_t *seed)
{
  static const calx_field fields[] = {
    { "image", CALX_F32, 3, { 3, LEAF_SIDE, LEAF_SIDE } },
    { "class", CALX_I64, 0, { 0 } }
  };
  return calx_dataset_new(size, fields, 2, leaf_draw, seed, NULL);
}

// ---- the files --------------------------------------------------------------

typedef struct leaves {
  calx_transform *transforms[2];
  calx_dataset *sets[2];  // of the same leaves: augmented, as they are
} leaves;

// DIR/train.csv, a column for each class, and DIR/images/*.jpg; without a
// folder, drawn leaves, which are not augmented.
static inline void leaves_open(leaves *l, const char *folder, int64_t side,
                               uint64_t *seed)
{
  static const float half[] = { 0.5F, 0.5F, 0.5F };
  char csv[4096], images[4096];
  calx_dims size = CALX_DIMS(side, side);
  l->transforms[0] = calx_transforms_compose(
      calx_transforms_random_resized_crop(size, .scale = { 0.5, 1 }),
      calx_transforms_random_horizontal_flip(0.5),
      calx_transforms_random_vertical_flip(0.5), calx_transforms_to_tensor(),
      calx_transforms_normalize(half, half, 3));
  l->transforms[1] = calx_transforms_compose(
      calx_transforms_resize(size), calx_transforms_to_tensor(),
      calx_transforms_normalize(half, half, 3));
  snprintf(csv, sizeof csv, "%s/train.csv", folder != NULL ? folder : "");
  snprintf(images, sizeof images, "%s/images", folder != NULL ? folder : "");
  for (int i = 0; i < 2; i++) {
    l->sets[i] = folder == NULL
                     ? leaves_draw(1600, seed)
                     : calx_dataset_image_csv(csv, images, .suffix = ".jpg",
                                              .transform = l->transforms[i],
                                              .seed = *seed);
  }
}

// The leaves of DIR/sample_submission.csv, whose class nobody knows; without a
// folder, drawn ones. The seed must stay until the dataset is freed.
static inline calx_dataset *leaves_unknown(const leaves *l, const char *folder,
                                           uint64_t *seed)
{
  char csv[4096], images[4096];
  if (folder == NULL) return leaves_draw(320, seed);
  snprintf(csv, sizeof csv, "%s/sample_submission.csv", folder);
  snprintf(images, sizeof images, "%s/images", folder);
  return calx_dataset_image_csv(csv, images, .suffix = ".jpg",
                                .transform = l->transforms[1],
                                .target_dtype = CALX_F32);
}

// A CSV file with the probabilities of the classes: rows (leaves, classes).
static inline calx_status *leaves_submit(const char *path,
                                         const calx_dataset *known,
                                         const calx_dataset *unknown,
                                         const double *rows, int64_t classes)
{
  static const char *const drawn_names[] = { "healthy", "scab", "rust",
                                             "multiple_diseases" };
  FILE *file = fopen(path, "w");
  if (file == NULL) {
    return calx_status_new(CALX_NOT_FOUND, "%s cannot be written", path);
  }
  fputs("image_id", file);
  for (int64_t k = 0; k < classes; k++) {
    const char *name = calx_dataset_class_name(known, k);
    fprintf(file, ",%s", name != NULL ? name : drawn_names[k]);
  }
  for (int64_t i = 0; i < calx_dataset_size(unknown); i++) {
    const char *image = calx_dataset_image_path(unknown, i);
    if (image != NULL) {
      image = strrchr(image, '/') + 1;
      fprintf(file, "\n%.*s", (int)(strlen(image) - strlen(".jpg")), image);
    } else {
      fprintf(file, "\nTest_%ld", (long)i);
    }
    for (int64_t k = 0; k < classes; k++) fprintf(file, ",%g", *rows++);
  }
  fputc('\n', file);
  if (fclose(file) == 0) return NULL;
  return calx_status_new(CALX_RESOURCE_EXHAUSTED, "%s cannot be written", path);
}

static inline void leaves_close(leaves *l)
{
  for (int i = 0; i < 2; i++) {
    calx_dataset_free(l->sets[i]);
    calx_transform_free(l->transforms[i]);
  }
}

#endif
