// image_dataset: folders of classes, and a CSV file beside a folder; what is
// drawn for a sample, whatever the workers.
#include "calx/calx.h"
#include "image/files.h"
#include "io/files.h"
#include "support/support.h"

#include <ftw.h>
#include <sys/stat.h>

// ---- files ------------------------------------------------------------------

static char root[64];

static const char *in_root(const char *name)
{
  static char paths[4][256];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", root, name);
  return path;
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *walk)
{
  (void)info, (void)type, (void)walk;
  return remove(path);
}

static void begin(void)
{
  strcpy(root, "/tmp/calx_images_XXXXXX");
  assert_non_null(mkdtemp(root));
}

static void end(void)
{
  assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

// A PNG of one grey value, in folders that are made.
static void put_image(const char *name, uint32_t h, uint32_t w, int value)
{
  const char *path = in_root(name);
  char folder[256];
  strcpy(folder, path);
  *strrchr(folder, '/') = '\0';
  CHECK_STATUS_OK(cx_folder_make(folder, 0755));
  unsigned char rows[64 * 64];
  memset(rows, value, sizeof rows);
  made_file f =
      make_png(&(made_png){ w, h, 8, 0, .rows = rows, .row_bytes = w });
  write_file(path, f.data, f.size);
  free(f.data);
}

static void put_text(const char *name, const char *text)
{
  write_file(in_root(name), text, strlen(text));
}

// Frees the dataset.
static void fails(calx_dataset *d, calx_code code, const char *says)
{
  const calx_status *error = calx_dataset_error(d);
  if (calx_status_code(error) != code ||
      strstr(calx_status_message(error), says) == NULL) {
    fail_msg("wanted '%s', got %s", says, calx_status_message(error));
  }
  calx_dataset_free(d);
}

// ---- folders ----------------------------------------------------------------

static void test_folder(void **state)
{
  (void)state;
  begin();
  put_image("cat/b.png", 4, 4, 20);
  put_image("cat/a.PNG", 4, 4, 10);
  put_image("cat/more/0.png", 4, 4, 30);
  put_image("ant/z.png", 4, 4, 40);
  put_text("cat/notes.txt", "no image");
  put_text("list.txt", "no class");
  calx_dataset *d = calx_dataset_image_folder(root);
  CHECK_STATUS_OK(cx_status_copy(calx_dataset_error(d)));
  assert_int_equal(calx_dataset_size(d), 4);
  assert_int_equal(calx_dataset_class_count(d), 2);
  assert_string_equal(calx_dataset_class_name(d, 0), "ant");
  assert_string_equal(calx_dataset_class_name(d, 1), "cat");
  assert_null(calx_dataset_class_name(d, 2));
  assert_null(calx_dataset_class_name(d, -1));
  const calx_field *data = calx_dataset_field(d, 0);
  assert_true(data->dtype == CALX_F32 && data->rank == 3);
  assert_true(data->dims[0] == 3 && data->dims[1] == 4 && data->dims[2] == 4);
  const char *const names[] = { "ant/z.png", "cat/a.PNG", "cat/b.png",
                                "cat/more/0.png" };
  const int values[] = { 40, 10, 20, 30 };
  for (int64_t i = 0; i < 4; i++) {
    float pixels[3 * 4 * 4];
    int64_t target;
    CHECK_STATUS_OK(calx_dataset_get(d, i, (void *[]){ pixels, &target }));
    assert_int_equal(target, i > 0);
    assert_string_equal(calx_dataset_image_path(d, i), in_root(names[i]));
    for (int k = 0; k < 48; k++) {
      assert_true(pixels[k] == (float)values[i] / 255);
    }
  }
  assert_null(calx_dataset_image_path(d, 4));
  calx_dataset_free(d);
  calx_transform *crop = calx_transforms_center_crop(CALX_DIMS(2, 3));
  d = calx_dataset_image_folder(root, .transform = crop,
                                .mode = CALX_IMAGE_GRAY);
  data = calx_dataset_field(d, 0);  // bytes: no to_tensor
  assert_true(data->dtype == CALX_U8 && data->dims[0] == 1);
  assert_true(data->dims[1] == 2 && data->dims[2] == 3);
  calx_dataset_free(d);
  calx_transform_free(crop);
  end();
}

static void test_folder_errors(void **state)
{
  (void)state;
  begin();
  fails(calx_dataset_image_folder(NULL), CALX_INVALID_ARGUMENT, "NULL");
  fails(calx_dataset_image_folder("/nowhere"), CALX_NOT_FOUND, "/nowhere");
  fails(calx_dataset_image_folder(root), CALX_NOT_FOUND, "has no folder");
  put_image("a/1.png", 4, 4, 1);
  CHECK_STATUS_OK(cx_folder_make(in_root("b"), 0755));
  fails(calx_dataset_image_folder(root), CALX_NOT_FOUND, "class 'b'");
  put_image("b/1.png", 5, 4, 1);
  fails(calx_dataset_image_folder(root, .mode = (calx_image_mode)9),
        CALX_INVALID_ARGUMENT, "mode 9");
  fails(calx_dataset_image_folder(root, .max_pixels = -1),
        CALX_INVALID_ARGUMENT, "-1 pixels");
  fails(calx_dataset_image_folder(root, .max_pixels = 15),
        CALX_RESOURCE_EXHAUSTED, "a/1.png");
  calx_transform *bad = calx_transforms_random_vertical_flip(2);
  fails(calx_dataset_image_folder(root, .transform = bad),
        CALX_INVALID_ARGUMENT, "probability of 2");
  calx_transform_free(bad);
  put_text("a/0.png", "no image");
  fails(calx_dataset_image_folder(root), CALX_INVALID_ARGUMENT, "a/0.png");
  remove(in_root("a/0.png"));
  calx_dataset *d = calx_dataset_image_folder(root);
  float pixels[3 * 4 * 4];
  int64_t target;
  void *fields[] = { pixels, &target };
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_dataset_get(d, 1, fields), "b/1.png",
               "5 x 4 pixels", "4 x 4");
  remove(in_root("a/1.png"));
  CHECK_STATUS(CALX_NOT_FOUND, calx_dataset_get(d, 0, fields), "a/1.png");
  calx_dataset_free(d);
  assert_int_equal(symlink(root, in_root("a/loop")), 0);
  put_image("a/1.png", 4, 4, 1);
  d = calx_dataset_image_folder(root);
  assert_non_null(calx_dataset_error(d));  // too deep, for calx or the system
  calx_dataset_free(d);
  end();
}

// ---- a CSV file -------------------------------------------------------------

static int64_t target_of(calx_dataset *d, int64_t i)
{
  if (calx_dataset_error(d) != NULL) {
    fail_msg("%s", calx_status_message(calx_dataset_error(d)));
  }
  float pixels[3 * 4 * 4];
  int64_t target = -1;
  CHECK_STATUS_OK(calx_dataset_get(d, i, (void *[]){ pixels, &target }));
  return target;
}

static void test_csv_classes(void **state)
{
  (void)state;
  begin();
  put_image("images/Train_0.png", 4, 4, 1);
  put_image("images/Train_1.png", 4, 4, 2);
  put_text("train.csv",
           "image_id,healthy,rust,scab\nTrain_1,0,0,1\nTrain_0,0.0,1,0\n");
  calx_dataset *d = calx_dataset_image_csv(in_root("train.csv"),
                                           in_root("images"), .suffix = ".png");
  assert_int_equal(target_of(d, 0), 2);
  assert_int_equal(target_of(d, 1), 1);
  assert_int_equal(calx_dataset_class_count(d), 3);
  assert_string_equal(calx_dataset_class_name(d, 1), "rust");
  assert_string_equal(calx_dataset_image_path(d, 0),
                      in_root("images/Train_1.png"));
  calx_dataset_free(d);
  d = calx_dataset_image_csv(in_root("train.csv"), in_root("images"),
                             .suffix = ".png", .target_dtype = CALX_F32);
  float pixels[48], numbers[3];
  CHECK_STATUS_OK(calx_dataset_get(d, 1, (void *[]){ pixels, numbers }));
  assert_true(numbers[0] == 0 && numbers[1] == 1 && numbers[2] == 0);
  assert_int_equal(calx_dataset_class_count(d), 0);
  calx_dataset_free(d);
  put_text("one.csv",
           "what,file\nrust,Train_1.png\nhealthy,Train_0.png\n"
           "rust,Train_0.png\n");
  d = calx_dataset_image_csv(in_root("one.csv"), in_root("images"),
                             .image_column = "file");
  assert_int_equal(target_of(d, 0), 1);
  assert_int_equal(target_of(d, 1), 0);
  assert_int_equal(target_of(d, 2), 1);
  assert_string_equal(calx_dataset_class_name(d, 1), "rust");
  calx_dataset_free(d);
  put_text("one.csv", "file,class,weight\nTrain_1.png,7,0.5\n");
  const char *class[] = { "class" }, *weight[] = { "weight" };
  d = calx_dataset_image_csv(in_root("one.csv"), in_root("images"),
                             .label_columns = class, .n_label_columns = 1);
  assert_int_equal(target_of(d, 0), 7);
  calx_dataset_free(d);
  d = calx_dataset_image_csv(in_root("one.csv"), in_root("images"),
                             .label_columns = weight, .n_label_columns = 1,
                             .target_dtype = CALX_F32);
  assert_int_equal(calx_dataset_field(d, 1)->rank, 0);
  CHECK_STATUS_OK(calx_dataset_get(d, 0, (void *[]){ pixels, numbers }));
  assert_true(numbers[0] == 0.5F);
  calx_dataset_free(d);
  end();
}

static calx_dataset *of_text(const char *text)
{
  put_text("t.csv", text);
  return calx_dataset_image_csv(in_root("t.csv"), root);
}

static void test_csv_errors(void **state)
{
  (void)state;
  begin();
  put_image("a.png", 4, 4, 1);
  fails(calx_dataset_image_csv(NULL, root), CALX_INVALID_ARGUMENT, "CSV file");
  fails(calx_dataset_image_csv("/nowhere.csv", root), CALX_NOT_FOUND,
        "nowhere");
  fails(of_text("name,x\n"), CALX_DATA_LOSS, "no row");
  fails(of_text("name\na.png\n"), CALX_DATA_LOSS, "no column of labels");
  fails(of_text("name,x,y\na.png,1,1\n"), CALX_DATA_LOSS,
        "line 2: 2 of 2 labels");
  fails(of_text("name,x,y\na.png,0,0\n"), CALX_DATA_LOSS, "0 of 2 labels");
  fails(of_text("name,x,y\na.png,2,0\n"), CALX_DATA_LOSS, "neither 0 nor 1");
  fails(of_text("name,x,y\na.png,no,0\n"), CALX_DATA_LOSS, "'no'");
  fails(of_text("name,x\na.png,1.5\n"), CALX_DATA_LOSS, "no class");
  fails(of_text("name,x\na.png,-1\n"), CALX_DATA_LOSS, "no class");
  fails(of_text("name,x\na.png,\n"), CALX_DATA_LOSS, "a label is wanted");
  fails(of_text("name,x\n,1\n"), CALX_DATA_LOSS, "an image's name");
  fails(of_text("name,x\n../a.png,1\n"), CALX_INVALID_ARGUMENT, "out of");
  fails(of_text("name,x\nb/../../a.png,1\n"), CALX_INVALID_ARGUMENT, "out of");
  fails(of_text("name,x\n/etc/passwd,1\n"), CALX_INVALID_ARGUMENT, "out of");
  fails(of_text("name,x\nb.png,1\n"), CALX_NOT_FOUND, "b.png");
  const char *columns[] = { "z" };
  put_text("t.csv", "name,x\na.png,1\n");
  const char *csv = in_root("t.csv");
  fails(calx_dataset_image_csv(csv, root, .label_columns = columns,
                               .n_label_columns = 1),
        CALX_NOT_FOUND, "'z'");
  fails(calx_dataset_image_csv(csv, root, .label_columns = columns),
        CALX_INVALID_ARGUMENT, "n_label_columns is 0");
  fails(calx_dataset_image_csv(csv, root, .image_column = "z"), CALX_NOT_FOUND,
        "'z'");
  fails(calx_dataset_image_csv(csv, root, .target_dtype = CALX_I32),
        CALX_INVALID_ARGUMENT, "target_dtype");
  end();
}

static void test_no_memory(void **state)
{
  (void)state;
  begin();
  put_image("c/a.png", 4, 4, 1);
  put_text("t.csv", "name,x\nc/a.png,rust\n");
  for (int kind = 0; kind < 2; kind++) {
    bool whole = false;
    for (int n = 0; !whole; n++) {
      assert_in_range(n, 0, 120);
      cx_alloc_fail_at(n);
      calx_dataset *d = kind == 0
                            ? calx_dataset_image_folder(root)
                            : calx_dataset_image_csv(in_root("t.csv"), root);
      cx_alloc_fail_at(-1);
      const calx_status *error = calx_dataset_error(d);
      whole = error == NULL;
      if (!whole) {
        assert_int_equal(calx_status_code(error), CALX_RESOURCE_EXHAUSTED);
      }
      calx_dataset_free(d);
    }
  }
  end();
}

// ---- by a loader ------------------------------------------------------------

enum { IMAGES = 12, EPOCHS = 2, PIXELS = 3 * 4 * 4 };

// What was drawn for each sample of each epoch; the label is the sample.
static void collect(calx_dataset *d, int workers, int processes, bool shuffle,
                    float drawn[EPOCHS][IMAGES][PIXELS])
{
  calx_loader *loader =
      calx_loader_new(d, .batch_size = 4, .num_workers = workers,
                      .num_processes = processes, .shuffle = shuffle);
  if (calx_loader_error(loader) != NULL) {
    fail_msg("%s", calx_status_message(calx_loader_error(loader)));
  }
  calx_batch b;
  for (int epoch = 0; epoch < EPOCHS; epoch++) {
    while (calx_loader_next(loader, &b)) {
      float data[4][PIXELS];
      int64_t target[4];
      CHECK_STATUS_OK(calx_tensor_read(b.data, data, sizeof data));
      CHECK_STATUS_OK(calx_tensor_read(b.target, target, sizeof target));
      for (int i = 0; i < 4; i++) {
        memcpy(drawn[epoch][target[i]], data[i], sizeof data[i]);
      }
    }
  }
  calx_loader_free(loader);
}

static void test_draws(void **state)
{
  (void)state;
  begin();
  for (int i = 0; i < IMAGES; i++) {
    char name[32];
    snprintf(name, sizeof name, "%02d/x.png", i);
    put_image(name, 6, 6, 100);
  }
  calx_transform *t = calx_transforms_compose(
      calx_transforms_random_resized_crop(CALX_DIMS(4)),
      calx_transforms_color_jitter(.brightness = { 0.4 }),
      calx_transforms_to_tensor());
  calx_dataset *d = calx_dataset_image_folder(root, .transform = t, .seed = 5);
  static float one[EPOCHS][IMAGES][PIXELS], three[EPOCHS][IMAGES][PIXELS];
  collect(d, 0, 2, false, one);  // forked before there are threads
  collect(d, 3, 0, true, three);
  assert_memory_equal(one, three, sizeof one);
  collect(d, 1, 0, false, three);
  assert_memory_equal(one, three, sizeof one);
  int same = 0;  // of 8 bits: some are by chance
  for (int i = 0; i < IMAGES; i++) {
    same += memcmp(one[0][i], one[1][i], sizeof one[0][i]) == 0;
    if (i > 0) same += memcmp(one[0][i], one[0][i - 1], sizeof one[0][i]) == 0;
  }
  assert_in_range(same, 0, 6);
  calx_dataset_free(d);
  d = calx_dataset_image_folder(root, .transform = t, .seed = 6);
  collect(d, 2, 0, false, three);
  assert_true(memcmp(one, three, sizeof one) != 0);
  calx_dataset_free(d);
  calx_transform_free(t);
  end();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_draws),         SUPPORT_TEST(test_folder),
    SUPPORT_TEST(test_folder_errors), SUPPORT_TEST(test_csv_classes),
    SUPPORT_TEST(test_csv_errors),    SUPPORT_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
