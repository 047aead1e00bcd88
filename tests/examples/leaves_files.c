// leaves_files FOLDER COUNT: the drawn leaves as the files of Kaggle's Plant
// Pathology: train.csv with a column for each class, sample_submission.csv with
// a quarter as many leaves, and images/*.jpg.
#include <sys/stat.h>

#include "../../examples/leaves.h"
#include "../image/files.h"

// Returns the class.
static int64_t write_leaf(const char *folder, const char *set, int index)
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
  snprintf(path, sizeof path, "%s/images/%s_%d.jpg", folder, set, index);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(f.data, f.size, 1, file) != 1) exit(1);
  fclose(file), free(f.data);
  return class;
}

static FILE *open_csv(const char *folder, const char *name)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.csv", folder, name);
  FILE *csv = fopen(path, "w");
  if (csv == NULL) exit(1);
  fputs("image_id,healthy,multiple_diseases,rust,scab\n", csv);
  return csv;
}

int main(int argc, char **argv)
{
  char path[4096];
  if (argc != 3) return 2;
  snprintf(path, sizeof path, "%s/images", argv[1]);
  if (mkdir(argv[1], 0777) != 0 || mkdir(path, 0777) != 0) return 1;
  FILE *known = open_csv(argv[1], "train");
  FILE *unknown = open_csv(argv[1], "sample_submission");
  for (int i = 0; i < atoi(argv[2]); i++) {
    int64_t class = write_leaf(argv[1], "Train", i);
    fprintf(known, "Train_%d,%d,%d,%d,%d\n", i, class == 0, class == 3,
            class == 2, class == 1);
    if (i % 4 != 0) continue;
    write_leaf(argv[1], "Test", i);
    fprintf(unknown, "Test_%d,0.25,0.25,0.25,0.25\n", i);
  }
  return fclose(known) != 0 || fclose(unknown) != 0;
}
