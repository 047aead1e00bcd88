// idx_files: pairs of IDX files as datasets, found, read and compared.
#include <math.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "idx.h"

// ---- files ------------------------------------------------------------------

static char folder[64];

static int make_folder(void **state)
{
  (void)state;
  const char *at = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/idxXXXXXX", at != NULL ? at : "/tmp");
  return mkdtemp(folder) == NULL;
}

static const char *const files[] = { "images", "images.gz", "labels",
                                     "labels.gz", "other" };
#define FILES (sizeof files / sizeof *files)

static char *path_of(const char *name, char out[128])
{
  snprintf(out, 128, "%s/%s", folder, name);
  return out;
}

static int remove_folder(void **state)
{
  (void)state;
  char path[128];
  for (size_t k = 0; k < FILES; k++) unlink(path_of(files[k], path));
  return rmdir(folder);
}

static void write_file(const char *name, const void *data, size_t size)
{
  char path[128];
  FILE *f = fopen(path_of(name, path), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

static void remove_file(const char *name)
{
  char path[128];
  unlink(path_of(name, path));
}

static void write_pair(bytes images, bytes labels)
{
  write_file("images", images.data, images.size);
  write_file("labels", labels.data, labels.size);
}

static calx_dataset *open_pair(const calx_idx_options *options)
{
  char images[128], labels[128];
  return calx_dataset_idx_with(path_of("images", images),
                               path_of("labels", labels), options);
}

// ---- whole files ------------------------------------------------------------

static void check_samples(calx_dataset *d, float mean, float std)
{
  if (calx_dataset_error(d) != NULL) {
    fail_msg("%s", calx_status_message(calx_dataset_error(d)));
  }
  assert_int_equal(calx_dataset_size(d), 5);
  const calx_field *f = calx_dataset_field(d, 0);
  assert_int_equal(f->dtype, CALX_F32);
  assert_int_equal(f->rank, 3);
  assert_int_equal(f->dims[0], 1);
  assert_int_equal(f->dims[1], 2);
  assert_int_equal(f->dims[2], 3);
  assert_int_equal(calx_dataset_field(d, 1)->dtype, CALX_I64);
  assert_int_equal(calx_dataset_field(d, 1)->rank, 0);
  for (int64_t i = 0; i < 5; i++) {
    float x[6];
    int64_t y;
    CHECK_OK(calx_dataset_get(d, i, (void *const[]){ x, &y }));
    assert_int_equal(y, i);
    for (int64_t k = 0; k < 6; k++) {
      float wanted = ((float)(6 * i + k) / 255.0f - mean) / std;
      assert_true(x[k] == wanted);
    }
  }
}

static void test_plain(void **state)
{
  (void)state;
  bytes images = make_images(), labels = make_labels();
  write_pair(images, labels);
  calx_dataset *d = open_pair(NULL);
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  char a[128], b[128];
  path_of("images", a);
  path_of("labels", b);
  d = calx_dataset_idx(a, b);
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  d = calx_dataset_idx(a, b, .mean = 0.5f, .std = 0.25f, .classes = 5);
  check_samples(d, 0.5f, 0.25f);
  calx_dataset_free(d);
  d = calx_dataset_idx(a, b, .std = 1.0f);
  check_samples(d, 0.0f, 1.0f);
  calx_dataset_free(d);
  drop(images);
  drop(labels);
}

// Packed files are found under the plain name, and under their own.
static void test_gzip(void **state)
{
  (void)state;
  bytes images = make_images(), labels = make_labels();
  bytes images_gz = pack(images.data, images.size);
  bytes labels_gz = pack(labels.data, labels.size);
  remove_file("images");
  remove_file("labels");
  write_file("images.gz", images_gz.data, images_gz.size);
  write_file("labels.gz", labels_gz.data, labels_gz.size);
  calx_dataset *d = open_pair(NULL);
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  char a[128], b[128];
  d = calx_dataset_idx(path_of("images.gz", a), path_of("labels.gz", b));
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  // The content decides, not the name; and the plain name goes first.
  write_pair(images_gz, labels_gz);
  write_file("images.gz", "?", 1);
  d = open_pair(NULL);
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  remove_file("images.gz");
  remove_file("labels.gz");
  drop(images);
  drop(labels);
  drop(images_gz);
  drop(labels_gz);
}

static void test_empty(void **state)
{
  (void)state;
  bytes images = make_idx(3, (uint32_t[]){ 0, 28, 28 }, 0, 1);
  bytes labels = make_idx(1, (uint32_t[]){ 0 }, 0, 1);
  write_pair(images, labels);
  calx_dataset *d = open_pair(NULL);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 0);
  calx_dataset_free(d);
  drop(images);
  drop(labels);
}

// ---- pairs of files ---------------------------------------------------------

static void check_pair_fails(calx_code code, bytes images, bytes labels,
                             const calx_idx_options *options, const char *why,
                             const char *file)
{
  write_pair(images, labels);
  calx_dataset *d = open_pair(options);
  CHECK_SAYS(code, calx_dataset_error(d), why, file);
  assert_int_equal(calx_dataset_size(d), 0);
  calx_dataset_free(d);
}

static void test_pairs(void **state)
{
  (void)state;
  bytes images = make_images(), labels = make_labels();
  bytes six = make_idx(1, (uint32_t[]){ 6 }, 6, 10);
  check_pair_fails(CALX_DATA_LOSS, images, six, NULL,
                   "byte 4: 6 labels for the 5 images", "/images'");
  labels.data[8 + 3] = 10;
  check_pair_fails(CALX_DATA_LOSS, images, labels, NULL,
                   "byte 11: sample 3 of 5 has label 10, there are 10 classes",
                   "/labels'");
  labels.data[8 + 3] = 3;
  check_pair_fails(
      CALX_DATA_LOSS, images, labels,
      &(calx_idx_options){ .size = sizeof(calx_idx_options), .classes = 4 },
      "byte 12: sample 4 of 5 has label 4, there are 4 classes", "/labels'");
  check_pair_fails(CALX_DATA_LOSS, labels, labels, NULL,
                   "byte 3: the magic number has 01", "/images'");
  check_pair_fails(CALX_DATA_LOSS, images, images, NULL,
                   "byte 3: the magic number has 03", "/labels'");
  bytes flat = make_idx(3, (uint32_t[]){ 5, 0, 3 }, 0, 1);
  check_pair_fails(CALX_DATA_LOSS, flat, labels, NULL,
                   "byte 8: images of 0 x 3 pixels", "/images'");
  drop(flat);
  drop(images);
  drop(labels);
  drop(six);
}

static void test_options(void **state)
{
  (void)state;
  bytes images = make_images(), labels = make_labels();
  const size_t size = sizeof(calx_idx_options);
  const struct {
    calx_idx_options options;
    const char *why;
  } cases[] = {
    { { .size = size + 1 }, "set .size" },
    { { .size = 0 }, "set .size" },
    { { .size = size, .classes = -3 }, "-3 classes" },
    { { .size = size, .mean = 0.5f }, "std positive" },
    { { .size = size, .std = -1.0f }, "std positive" },
    { { .size = size, .std = NAN }, "std positive" },
    { { .size = size, .mean = INFINITY, .std = 1.0f }, "must be finite" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    check_pair_fails(CALX_INVALID_ARGUMENT, images, labels, &cases[k].options,
                     cases[k].why, "idx dataset: ");
  }
  // A caller that was built against a smaller struct.
  calx_dataset *d = open_pair(&(calx_idx_options){
      .size = offsetof(calx_idx_options, mean), .std = -1.0f });
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  d = calx_dataset_idx(NULL, "labels");
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d),
             "the path of the images is NULL", "idx_files.c:");
  calx_dataset_free(d);
  d = calx_dataset_idx("images", NULL);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), "of the labels");
  calx_dataset_free(d);
  drop(images);
  drop(labels);
}

static void test_no_file(void **state)
{
  (void)state;
  remove_file("images");
  remove_file("labels");
  calx_dataset *d = open_pair(NULL);
  CHECK_SAYS(CALX_NOT_FOUND, calx_dataset_error(d), "cannot open", "/images'",
             "nor is there", "/images.gz'");
  calx_dataset_free(d);
  d = calx_dataset_idx(folder, folder);
  assert_int_not_equal(calx_status_code(calx_dataset_error(d)), CALX_OK);
  CHECK_SAYS(calx_status_code(calx_dataset_error(d)), calx_dataset_error(d),
             folder, "directory");
  calx_dataset_free(d);
  d = calx_dataset_idx("/dev/zero", folder);  // has no end
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), "/dev/zero",
             "device");
  calx_dataset_free(d);
}

static void test_no_memory(void **state)
{
  (void)state;
  bytes images = make_images(), labels = make_labels();
  bytes packed = pack(images.data, images.size);
  write_pair(packed, labels);
  int n = -1;
  calx_dataset *d = NULL;
  do {
    calx_dataset_free(d);
    assert_in_range(++n, 0, 100);
    cx_alloc_fail_at(n);
    d = open_pair(NULL);
    cx_alloc_fail_at(-1);
    const calx_status *error = calx_dataset_error(d);
    if (error != NULL) CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
  } while (calx_dataset_error(d) != NULL);
  assert_in_range(n, 5, 100);
  check_samples(d, 0.1307f, 0.3081f);
  calx_dataset_free(d);
  drop(packed);
  drop(images);
  drop(labels);
}

// ---- real files -------------------------------------------------------------

static void test_mnist(void **state)
{
  (void)state;
  const char *shared = getenv("CALX_SHARED");
  char images[512], labels[512];
  snprintf(images, sizeof images, "%s/data/mnist/t10k-images-idx3-ubyte",
           shared != NULL ? shared : "../shared");
  snprintf(labels, sizeof labels, "%s/data/mnist/t10k-labels-idx1-ubyte",
           shared != NULL ? shared : "../shared");
  calx_dataset *d = calx_dataset_idx(images, labels);
  if (calx_status_code(calx_dataset_error(d)) == CALX_NOT_FOUND) {
    print_message("mnist: 0 cases run, 1 skipped: no '%s'\n", images);
    calx_dataset_free(d);
    skip();
  }
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 10000);
  const int64_t first[] = { 7, 2, 1, 0, 4, 1, 4, 9, 5, 9 };
  // How often each digit is among them.
  const int counts[] = {
    980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009
  };
  int found[10] = { 0 };
  double sum = 0.0;
  static float x[784];
  for (int64_t i = 0; i < 10000; i++) {
    int64_t y;
    CHECK_OK(calx_dataset_get(d, i, (void *const[]){ x, &y }));
    if (i < 10) assert_int_equal(y, first[i]);
    found[y]++;
    for (size_t k = 0; k < 784; k++) sum += (double)x[k];
  }
  assert_memory_equal(found, counts, sizeof counts);
  // The test set's mean pixel is 33.7912 of 255 (numpy over the same file).
  double mean = (sum / 7840000.0 * 0.3081 + 0.1307) * 255.0;
  if (mean < 33.790 || mean > 33.793) fail_msg("mean pixel %f", mean);
  print_message("mnist: 1 case run, 0 skipped\n");
  calx_dataset_free(d);
}

// Images of zeros, packed a thousandfold, with labels for 24: told before they
// are unpacked.
static void write_zeros(const char *path, uint8_t rank, uint32_t n,
                        unsigned each)
{
  static const uint8_t zeros[28 * 28];
  uint8_t header[16] = { 0, 0, 8, rank };
  for (int i = 0; i < 4; i++) header[4 + i] = (uint8_t)(n >> (24 - 8 * i));
  header[11] = header[15] = 28;
  gzFile f = gzopen(path, "wb");
  assert_non_null(f);
  assert_true(gzwrite(f, header, 4 + 4 * rank) > 0);
  for (uint32_t i = 0; i < n; i++) assert_true(gzwrite(f, zeros, each) > 0);
  assert_int_equal(gzclose(f), Z_OK);
}

static void test_counts_before_unpacking(void **state)
{
  (void)state;
  enum { IMAGES = 100000 };
  char images[] = "/tmp/calx_images_XXXXXX",
       labels[] = "/tmp/calx_labels_XXXXXX";
  close(mkstemp(images));
  close(mkstemp(labels));
  for (int swapped = 0; swapped < 2; swapped++) {
    write_zeros(images, 3, swapped ? 24 : IMAGES, 28 * 28);
    write_zeros(labels, 1, swapped ? IMAGES * 100 : 24, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      struct rusage before, after;
      getrusage(RUSAGE_SELF, &before);
      calx_dataset *d = calx_dataset_idx_with(images, labels, NULL);
      const calx_status *error = calx_dataset_error(d);
      getrusage(RUSAGE_SELF, &after);
      bool told = error != NULL &&
                  strstr(calx_status_message(error), "labels for the") != NULL;
      _exit(!told ? 1 : after.ru_maxrss - before.ru_maxrss > 4000 ? 2 : 0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
  }
  unlink(images);
  unlink(labels);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_plain),
    CHECK_TEST(test_gzip),
    CHECK_TEST(test_empty),
    CHECK_TEST(test_pairs),
    CHECK_TEST(test_options),
    CHECK_TEST(test_no_file),
    CHECK_TEST(test_no_memory),
    CHECK_TEST(test_mnist),
    CHECK_TEST(test_counts_before_unpacking),
  };
  return cmocka_run_group_tests_name("data_idx_files", tests, make_folder,
                                     remove_folder);
}
