// shard: a dict that several ranks save and another number of ranks loads.
#include "io/shard.h"

#include <sys/stat.h>

#include "everything.h"
#include "files.h"

enum { ROWS = 10, WIDTH = 3 };

static calx_value *rows(int64_t begin, int64_t end)
{
  float data[ROWS * WIDTH];
  for (int64_t i = 0; i < (end - begin) * WIDTH; i++) {
    data[i] = (float)(begin * WIDTH + i);
  }
  calx_scope *s = calx_scope_begin();
  calx_value *v = calx_value_tensor(
      calx_host_tensor(data, CALX_F32, CALX_SHAPE(end - begin, WIDTH)));
  CHECK_STATUS_OK(calx_scope_end(s));
  return v;
}

static void part(int rank, int ranks, int64_t *begin, int64_t *end)
{
  int64_t each = (ROWS + ranks - 1) / ranks;
  *begin = rank * each < ROWS ? rank * each : ROWS;
  *end = *begin + each < ROWS ? *begin + each : ROWS;
}

static const char *const names[] = { "a", "b", "c", "d", "e" };
enum { ALIKE = sizeof names / sizeof *names };

static calx_value *alike(void)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  for (int i = 0; i < ALIKE; i++) {
    put(d, names[i], host(CALX_F32, CALX_SHAPE(4 + i)));
  }
  return d;
}

static void save(const char *folder, int ranks, const char *tag, int only)
{
  calx_value *slices = calx_value_container(CALX_KIND_LIST);
  put(slices, NULL, calx_value_string("moment"));
  for (int r = 0; r < ranks; r++) {
    if (only >= 0 && r != only) continue;
    int64_t begin, end;
    part(r, ranks, &begin, &end);
    calx_value *d = alike();
    put(d, "moment", rows(begin, end));
    calx_save_sharded_options o = { .size = sizeof o,
                                    .tag = tag,
                                    .slices = slices };
    CHECK_STATUS_OK(
        cx_io_shard_save((cx_io_rank_info){ r, ranks }, d, folder, &o));
    calx_value_free(d);
  }
  calx_value_free(slices);
}

static void check_loaded(const calx_value *d, int64_t begin, int64_t end)
{
  calx_value *expected = alike(), *slice = rows(begin, end);
  assert_int_equal(calx_value_count(d), ALIKE + 1);
  for (int i = 0; i < ALIKE; i++) {
    check_equal(calx_value_get(expected, names[i]),
                calx_value_get(d, names[i]));
  }
  check_equal(slice, calx_value_get(d, "moment"));
  calx_value_free(expected);
  calx_value_free(slice);
}

static void test_other_worlds(void **state)
{
  (void)state;
  const char *folder = file_in_folder("sharded");
  for (int saved = 1; saved <= 4; saved++) {
    save(folder, saved, "x", -1);
    for (int ranks = 1; ranks <= 5; ranks++) {
      for (int r = 0; r < ranks; r++) {
        int64_t begin, end;
        calx_value *d;
        part(r, ranks, &begin, &end);
        calx_load_sharded_options o = { .size = sizeof o };
        CHECK_STATUS_OK(
            cx_io_shard_load((cx_io_rank_info){ r, ranks }, folder, &o, &d));
        check_loaded(d, begin, end);
        calx_value_free(d);
        o.whole = true;
        CHECK_STATUS_OK(
            cx_io_shard_load((cx_io_rank_info){ r, ranks }, folder, &o, &d));
        check_loaded(d, 0, ROWS);
        calx_value_free(d);
      }
    }
  }
}

// Each tensor that all hold is in one file, and the work is shared.
static void test_shares(void **state)
{
  (void)state;
  save(file_in_folder("sharded"), 3, "x", -1);
  size_t count[3], all = 0;
  for (int r = 0; r < 3; r++) {
    char name[64];
    snprintf(name, sizeof name, "sharded/shard-%05d-of-00003.safetensors", r);
    calx_value *d;
    CHECK_STATUS_OK(calx_load(file_in_folder(name), &d));
    count[r] = calx_value_count(d) - 1;
    assert_true(count[r] >= 1 && count[r] <= 2);
    all += count[r];
    calx_value_free(d);
  }
  assert_int_equal(all, ALIKE);
}

// A save that was interrupted between two ranks is found out.
static void test_two_saves(void **state)
{
  (void)state;
  const char *folder = file_in_folder("sharded");
  calx_value *d;
  calx_load_sharded_options o = { .size = sizeof o };
  cx_io_rank_info self = { 0, 1 };
  save(folder, 2, "step 1", -1);
  save(folder, 2, "step 2", 0);
  CHECK_STATUS(CALX_DATA_LOSS, cx_io_shard_load(self, folder, &o, &d),
               "shard-00001-of-00002.safetensors' is of the save 'step 1'",
               "the index of 'step 2'");
  assert_null(d);
  save(folder, 2, "step 2", 1);
  CHECK_STATUS_OK(cx_io_shard_load(self, folder, &o, &d));
  calx_value_free(d);
  o.tag = "step 3";
  CHECK_STATUS(CALX_DATA_LOSS, cx_io_shard_load(self, folder, &o, &d),
               "is the save 'step 2', 'step 3' is wanted");
  o.tag = NULL;
  assert_int_equal(
      remove(file_in_folder("sharded/shard-00001-of-00002.safetensors")), 0);
  CHECK_STATUS(CALX_NOT_FOUND, cx_io_shard_load(self, folder, &o, &d), "00001");
#define INDEX(rest) "{\"metadata\":{\"ranks\":2,\"tag\":\"step 2\"}" rest "}"
  static const struct {
    const char *text, *says;
  } wrong[] = {
    { "{", "" },
    { "{}", "no weight_map" },
    { "{\"metadata\":{\"ranks\":99999999,\"tag\":\"\"},\"weight_map\":{}}",
      "no number of ranks" },
    { "{\"slices\":[],\"weight_map\":{}}", "no number of ranks" },
    { INDEX(""), "no weight_map" },
    { INDEX(",\"slices\":[]"), "no weight_map" },
    { INDEX(",\"weight_map\":[],\"slices\":[]"), "no weight_map" },
    { INDEX(",\"weight_map\":{}"), "no list of slices" },
    { INDEX(",\"weight_map\":{},\"slices\":{}"), "no list of slices" },
    { INDEX(",\"weight_map\":{},\"slices\":[1]"), "a slice has no name" },
    { INDEX(",\"weight_map\":{\"a\":\"../../etc/passwd\"},\"slices\":[]"),
      "no rank's file" },
    { INDEX(",\"weight_map\":{\"a\":\"shard-00000-of-00009.safetensors\"},"
            "\"slices\":[]"),
      "no rank's file" },
    { INDEX(",\"weight_map\":{\"zz\":\"shard-00000-of-00002.safetensors\"},"
            "\"slices\":[]"),
      "has no 'zz'" },
    { INDEX(",\"weight_map\":{\"a\":\"shard-00000-of-00002.safetensors\"},"
            "\"slices\":[]"),
      "rank 0's file has 'c', of which the index does not know" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_file(file_in_folder("sharded/model.safetensors.index.json"),
               wrong[i].text, strlen(wrong[i].text));
    folder = file_in_folder("sharded");
    CHECK_STATUS(CALX_DATA_LOSS, cx_io_shard_load(self, folder, &o, &d),
                 wrong[i].says);
  }
}

// ---- folders of other programs ----------------------------------------------

// {"a": …, "b": …} of the names, as a file of the folder.
static void save_file(const char *file, const char *all)
{
  char path[64], name[2] = "";
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  for (; *all != '\0'; all++) {
    name[0] = *all;
    put(d, name, host(CALX_F32, CALX_SHAPE(4 + *all - 'a')));
  }
  snprintf(path, sizeof path, "sharded/%s", file);
  CHECK_STATUS_OK(calx_save(d, file_in_folder(path)));
  calx_value_free(d);
}

static void write_index(const char *text)
{
  write_file(file_in_folder("sharded/model.safetensors.index.json"), text,
             strlen(text));
}

#define FIRST "model-00001-of-00002.safetensors"
#define SECOND "model-00002-of-00002.safetensors"

static void test_foreign(void **state)
{
  (void)state;
  char folder[64];
  snprintf(folder, sizeof folder, "%s", file_in_folder("sharded"));
  calx_value *d, *expected = alike();
  assert_int_equal(mkdir(folder, 0700), 0);
  CHECK_STATUS(CALX_NOT_FOUND, calx_load_sharded(folder, &d), "index.json");
  save_file("model.safetensors", "abcde");
  CHECK_STATUS_OK(calx_load_sharded(folder, &d));
  check_equal(expected, d);
  calx_value_free(d);
  CHECK_STATUS(CALX_NOT_FOUND, calx_load_sharded(folder, &d, .tag = "x"), "");
  save_file(FIRST, "bd");
  save_file(SECOND, "ace");
  write_index(
      "{\"metadata\":{\"total_size\":120},\"weight_map\":{\"a\":\"" SECOND
      "\",\"b\":\"" FIRST "\",\"c\":\"" SECOND "\",\"d\":\"" FIRST
      "\",\"e\":\"" SECOND "\"}}");
  CHECK_STATUS_OK(calx_load_sharded(folder, &d));
  check_equal(expected, d);
  calx_value_free(d);
  calx_value_free(expected);
  CHECK_STATUS(CALX_DATA_LOSS, calx_load_sharded(folder, &d, .tag = "x"),
               "another program wrote it, without a tag");
  static const char *const wrong[][2] = {
    { "\"a\":\"../a.safetensors\"", "'a' is in no *.safetensors file" },
    { "\"a\":\".safetensors\"", "'a' is in no *.safetensors file" },
    { "\"a\":\"model.bin\"", "'a' is in no *.safetensors file" },
    { "\"a\":7", "'a' is in no *.safetensors file" },
    { "\"a\":\"gone.safetensors\"", "gone.safetensors" },
    { "\"a\":\"" FIRST "\"", FIRST " has no 'a', which the index says" },
    { "\"b\":\"" FIRST "\"", "has 'd', of which the index does not know" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[256];
    snprintf(text, sizeof text, "{\"weight_map\":{%s}}", wrong[i][0]);
    write_index(text);
    CHECK_STATUS(i == 4 ? CALX_NOT_FOUND : CALX_DATA_LOSS,
                 calx_load_sharded(folder, &d), wrong[i][1]);
    assert_null(d);
  }
}

// A pipe in the index's place is not waited for.
static void test_pipe(void **state)
{
  (void)state;
  calx_value *d;
  const char *index = "sharded/model.safetensors.index.json";
  save(file_in_folder("sharded"), 1, "x", -1);
  assert_int_equal(remove(file_in_folder(index)), 0);
  assert_int_equal(mkfifo(file_in_folder(index), 0600), 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_load_sharded(file_in_folder("sharded"), &d), "is a pipe");
  assert_null(d);
  assert_int_equal(remove(file_in_folder(index)), 0);
}

// The public calls, in a world of one.
static void test_alone(void **state)
{
  (void)state;
  const char *folder = file_in_folder("sharded");
  calx_value *d = alike(), *read, *slices;
  slices = calx_value_container(CALX_KIND_LIST);
  CHECK_STATUS_OK(calx_save_sharded(d, folder));
  CHECK_STATUS_OK(calx_load_sharded(folder, &read));
  check_equal(d, read);
  calx_value_free(read);
  put(slices, NULL, calx_value_string("none"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_save_sharded(d, folder, .slices = slices),
               "the slice 'none' is no tensor in the dict");
  put(d, "n", calx_value_int(1));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save_sharded(d, folder),
               "'n') is int");
  calx_value_free(slices);
  calx_value_free(d);
}

static int remove_all(void **state)
{
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", file_in_folder("sharded"));
  return system(command) == 0 ? files_end(state) : 1;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_foreign), SUPPORT_TEST(test_other_worlds),
    SUPPORT_TEST(test_shares),  SUPPORT_TEST(test_two_saves),
    SUPPORT_TEST(test_pipe),    SUPPORT_TEST(test_alone),
  };
  return cmocka_run_group_tests(tests, NULL, remove_all);
}
