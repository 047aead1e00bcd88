// tensorboard: event files. `test_loggers_tensorboard read` has TensorBoard
// read one, by tensorboard_read.py.
#include "support/torch.h"

#include "folders.h"
#include "loggers/crc32c.h"

static const uint8_t *pixels(int channels)
{
  static uint8_t data[5 * 7 * 4];
  for (int i = 0; i < 5 * 7 * channels; i++) data[i] = (uint8_t)(i * 41 % 256);
  return data;
}

static void log_scalars(calx_logger *l)
{
  for (int64_t step = 0; step < 3; step++) {
    CHECK_STATUS_OK(
        calx_tensorboard_add_scalar(l, "loss", 1 / ((double)step + 1), step));
  }
  CHECK_STATUS_OK(
      calx_tensorboard_add_scalar(l, "one", 1e-3, INT64_C(1) << 40));
  CHECK_STATUS_OK(calx_tensorboard_add_scalar(l, "not", nan(""), 0));
  CHECK_STATUS_OK(calx_tensorboard_add_scalar(l, "not", HUGE_VAL, 1));
}

static void log_histograms(calx_logger *l)
{
  double wide[1000];
  for (int i = 0; i < 1000; i++) {
    wide[i] = (i * 37 % 101 - 50) / 8.0 * pow(10, i % 30 - 12);
  }
  const double zero = 0, edges[] = { 1e-12, -1e-12, 1.1e-12, 1e25, -1e25, 3 },
               negative[] = { -2, -2.5, -2 };
  CHECK_STATUS_OK(calx_tensorboard_add_histogram(l, "h/wide", wide, 1000, 7));
  CHECK_STATUS_OK(calx_tensorboard_add_histogram(l, "h/zero", &zero, 1, 7));
  CHECK_STATUS_OK(calx_tensorboard_add_histogram(l, "h/edges", edges, 6, 7));
  CHECK_STATUS_OK(
      calx_tensorboard_add_histogram(l, "h/negative", negative, 3, 7));
}

// Of the grey one PyTorch makes three channels.
static void log_others(calx_logger *l)
{
  CHECK_STATUS_OK(
      calx_tensorboard_add_text(l, "note", "**bold** \xc3\xa9\nline", 5));
  CHECK_STATUS_OK(calx_tensorboard_add_text(l, "question",
                                            "a\xff"
                                            "b",
                                            5));
  CHECK_STATUS_OK(
      calx_logger_log_text(l, "summary", "  | Name\n\n0 | *fc1*", 5));
  for (int channels = 1; channels <= 4; channels++) {
    char tag[] = { 'i', (char)('0' + channels), '\0' };
    CHECK_STATUS_OK(calx_tensorboard_add_image(l, tag, pixels(channels), 5, 7,
                                               channels, 1));
  }
  const calx_hyperparameter values[] = {
    CALX_HYPERPARAMETER("lr", 0.01), CALX_HYPERPARAMETER("layers", 3),
    CALX_HYPERPARAMETER("opt", "adam \xc3\xa9"),
    CALX_HYPERPARAMETER("nesterov", (bool)true),
    CALX_HYPERPARAMETER("none", (char *)NULL)
  };
  CHECK_STATUS_OK(calx_tensorboard_log_hyperparams(
      l, values, 5, (calx_logged_value[]){ V("acc", 0.75), V("hp_metric", -1) },
      2, 4));
}

static void test_read(void **state)
{
  (void)state;
  calx_logger *l = calx_tensorboard_logger(folder, .prefix = "run");
  log_scalars(l);
  log_histograms(l);
  log_others(l);
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  torch_run("tensorboard_read.py", calx_logger_log_dir(l), "");
  calx_logger_free(l);
}

// ---- folders and failures ---------------------------------------------------

// How many event files the folder has.
static int event_files(const char *path)
{
  int n = 0;
  DIR *dir = opendir(path);
  if (dir == NULL) return 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    n += strncmp(e->d_name, "events.out.tfevents.", 20) == 0;
  }
  closedir(dir);
  return n;
}

#define VERSION "lightning_logs/version_0"

static void test_folder(void **state)
{
  (void)state;
  calx_logger *l = calx_tensorboard_logger(folder, .sub_dir = "fold");
  assert_string_equal(calx_logger_log_dir(l), in_folder(VERSION "/fold"));
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  assert_false(is_there("lightning_logs"));
  LOG(l, 0, V("a", 1), V("a", 2));
  assert_int_equal(event_files(in_folder(VERSION "/fold")), 1);
  CHECK_STATUS_OK(calx_logger_finalize(l, "failed"));
  check_file(VERSION "/fold/hparams.yaml", NULL);
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  check_file(VERSION "/fold/hparams.yaml", "{}\n");
  calx_logger_free(l);
  l = calx_tensorboard_logger(folder, .version = "0", .sub_dir = "fold");
  CHECK_STATUS_OK(calx_logger_save(l));
  calx_logger_free(l);
  assert_int_equal(event_files(in_folder(VERSION "/fold")), 2);
}

// Without metrics there is hp_metric, or nothing; hparams.yaml comes with the
// save.
static void test_default_metric(void **state)
{
  (void)state;
  const calx_hyperparameter lr = CALX_HYPERPARAMETER("lr", 0.01);
  calx_logger *l = calx_tensorboard_logger(folder);
  CHECK_STATUS_OK(calx_logger_log_hyperparams(l, &lr, 1));
  assert_int_equal(event_files(in_folder(VERSION)), 1);
  check_file(VERSION "/hparams.yaml", NULL);
  CHECK_STATUS_OK(calx_logger_save(l));
  calx_logger_free(l);
  check_file(VERSION "/hparams.yaml", "lr: 0.01\n");
  l = calx_tensorboard_logger(folder, .no_default_hp_metric = true);
  CHECK_STATUS_OK(calx_logger_log_hyperparams(l, &lr, 1));
  assert_string_equal(calx_logger_version(l), "1");
  assert_false(is_there("lightning_logs/version_1"));
  CHECK_STATUS_OK(calx_logger_save(l));
  calx_logger_free(l);
  check_file("lightning_logs/version_1/hparams.yaml", "lr: 0.01\n");
}

#define BAD(expression, ...) \
  CHECK_STATUS(CALX_INVALID_ARGUMENT, expression, __VA_ARGS__)

static void test_bad(void **state)
{
  (void)state;
  const double out = 1e25;
  calx_logger *l = calx_tensorboard_logger(folder);
  BAD(calx_tensorboard_add_scalar(l, NULL, 1, 0), "add_scalar: the tag");
  BAD(calx_tensorboard_add_text(l, NULL, "", 0), "add_text: the tag");
  BAD(calx_tensorboard_add_text(l, "t", NULL, 0), "the text 't' is NULL");
  BAD(calx_tensorboard_add_histogram(l, "h", NULL, 0, 0), "'h' is empty");
  BAD(calx_tensorboard_add_histogram(l, "h", &out, 1, 0), "of its 1 values");
  BAD(calx_tensorboard_add_image(l, "i", NULL, 1, 1, 1, 0), "'i' are NULL");
  BAD(calx_tensorboard_add_image(l, "i", pixels(1), 5, 0, 1, 0), "width 0");
  BAD(calx_tensorboard_add_image(l, "i", pixels(1), 5, 7, 5, 0), "5 channels");
  BAD(calx_tensorboard_add_image(l, "i", pixels(1), 1 << 20, 1 << 20, 1, 0),
      "height 1048576");
  BAD(calx_tensorboard_log_hyperparams(l, &(calx_hyperparameter){ 0 }, 1, NULL,
                                       0, 0),
      "value 0 of 1 has no name");
  assert_false(is_there("lightning_logs"));
  calx_logger_free(l);
  l = calx_csv_logger(folder);
  BAD(calx_tensorboard_add_scalar(l, "t", 1, 0), "is none of TensorBoard's");
  calx_logger_free(l);
  BAD(calx_tensorboard_add_scalar(NULL, "t", 1, 0), "NULL");
}

// What disappears is an error, and so is a folder that cannot be made.
static void test_gone(void **state)
{
  (void)state;
  calx_logger *l = calx_tensorboard_logger(folder);
  LOG(l, 0, V("a", 1));
  assert_int_equal(rename(in_folder("lightning_logs"), in_folder("moved")), 0);
  CHECK_STATUS(
      CALX_NOT_FOUND,
      calx_logger_log_metrics(l, (calx_logged_value[]){ V("a", 1) }, 1, 1),
      "cannot open", "events.out.tfevents.");
  calx_logger_free(l);
  put_file("file", "");
  l = calx_tensorboard_logger(in_folder("file"));
  CHECK_STATUS(CALX_NOT_FOUND, calx_tensorboard_add_scalar(l, "a", 1, 0),
               "cannot make folder");
  calx_logger_free(l);
}

// RFC 3720, B.4; the mask of record_writer.h.
static void test_crc(void **state)
{
  (void)state;
  unsigned char data[32] = { 0 };
  assert_int_equal(cx_loggers_crc32c("123456789", 9), 0xe3069283);
  assert_int_equal(cx_loggers_crc32c(data, 32), 0x8a9136aa);
  memset(data, 0xff, 32);
  assert_int_equal(cx_loggers_crc32c(data, 32), 0x62a8ab43);
  for (int i = 0; i < 32; i++) data[i] = (unsigned char)i;
  assert_int_equal(cx_loggers_crc32c(data, 32), 0x46dd794e);
  assert_int_equal(cx_loggers_crc32c(data, 0), 0);
  assert_int_equal(cx_loggers_masked_crc32c(data, 0), 0xa282ead8);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    FOLDER_TEST(test_folder), FOLDER_TEST(test_default_metric),
    FOLDER_TEST(test_bad),    FOLDER_TEST(test_gone),
    FOLDER_TEST(test_crc),
  };
  const struct CMUnitTest read[] = { FOLDER_TEST(test_read) };
  (void)argv;
  if (argc > 1) return cmocka_run_group_tests(read, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
