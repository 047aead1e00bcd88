// leaves_files FOLDER COUNT: the drawn leaves as the files of Kaggle's Plant
// Pathology: train.csv with a column for each class, and images/*.jpg.
#include <sys/stat.h>

#include "../../examples/leaves.h"
#include "../image/files.h"

static void write_leaf(const char *folder, int index, FILE *csv)
{
  enum { PLANE = LEAF_SIDE * LEAF_SIDE };
  static float image[3 * PLANE];
  static unsigned char pixels[3 * PLANE];
  static uint64_t seed;
  int64_t class;
  calx_status *status = leaf_draw(&seed, index, (void *[]){ image, &class });
  if (status != NULL) exit(1);
  for (int i = 0; i < 3 * PLANE; i++) {
    float value = image[i % 3 * PLANE + i / 3] * 127.5F + 127.5F;
    pixels[i] = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
  }
  made_file f = make_jpeg(LEAF_SIDE, LEAF_SIDE, 3, pixels, 95, 0);
  char path[4096];
  snprintf(path, sizeof path, "%s/images/Train_%d.jpg", folder, index);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(f.data, f.size, 1, file) != 1) exit(1);
  fclose(file), free(f.data);
  fprintf(csv, "Train_%d,%d,%d,%d,%d\n", index, class == 0, class == 3,
          class == 2, class == 1);
}

int main(int argc, char **argv)
{
  char path[4096];
  if (argc != 3) return 2;
  snprintf(path, sizeof path, "%s/images", argv[1]);
  if (mkdir(argv[1], 0777) != 0 || mkdir(path, 0777) != 0) return 1;
  snprintf(path, sizeof path, "%s/train.csv", argv[1]);
  FILE *csv = fopen(path, "w");
  if (csv == NULL) return 1;
  fputs("image_id,healthy,multiple_diseases,rust,scab\n", csv);
  for (int i = 0; i < atoi(argv[2]); i++) write_leaf(argv[1], i, csv);
  return fclose(csv) != 0;
}
