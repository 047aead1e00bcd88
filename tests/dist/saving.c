// saving: who writes what when ranks save, and what they load again. On the
// fake plugin: the tensors are the host's. What the files hold is in tests/io.
#include <unistd.h>

#include "base/file.h"
#include "calx/io.h"
#include "ranks.h"

enum { ROWS = 10, WIDTH = 3, PATH = 128 };
static char folder[64];

static calx_status *path_of(const char *name, char out[PATH])
{
  RANK_CHECK(snprintf(out, PATH, "%s/%s", folder, name) < PATH);
  return NULL;
}

static calx_status *meet(const char *tag)
{
  return calx_rendezvous(tag, NULL, 0, NULL, NULL);
}

static calx_status *put_rows(calx_value *d, const char *key, int begin, int end)
{
  float data[ROWS * WIDTH + 1];
  for (int i = begin * WIDTH; i < end * WIDTH; i++) {
    data[i - begin * WIDTH] = (float)i;
  }
  calx_scope *s = calx_scope_begin();
  calx_tensor *t =
      calx_host_tensor(data, CALX_F32, CALX_SHAPE(end - begin, WIDTH));
  CALX_TRY(calx_value_set(d, key, calx_value_tensor(t)));
  return calx_scope_end(s);
}

static calx_status *check_rows(const calx_value *d, const char *key, int begin,
                               int end)
{
  calx_tensor *t = calx_value_as_tensor(calx_value_get(d, key));
  RANK_CHECK(t != NULL && calx_tensor_dim(t, 0) == end - begin);
  const float *data = calx_host_data(t);
  for (int i = begin * WIDTH; i < end * WIDTH; i++) {
    RANK_CHECK(data[i - begin * WIDTH] == (float)i);
  }
  return NULL;
}

// {"rank": N, "list": [4], "pair": (N, 2.5), "rows": …}
static calx_status *numbered(int rank, calx_value **out)
{
  *out = calx_value_container(CALX_KIND_DICT);
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  calx_value *pair = calx_value_container(CALX_KIND_TUPLE);
  CALX_TRY(calx_value_set(*out, "rank", calx_value_int(rank)));
  CALX_TRY(calx_value_set(*out, "list", list));
  CALX_TRY(calx_value_append(list, calx_value_int(4)));
  CALX_TRY(calx_value_set(*out, "pair", pair));
  CALX_TRY(calx_value_append(pair, calx_value_int(rank)));
  CALX_TRY(calx_value_append(pair, calx_value_float(2.5)));
  return put_rows(*out, "rows", rank, ROWS);
}

// Whose it is; all of it must be.
static calx_status *rank_in(const char *path, int *out)
{
  calx_value *d;
  CALX_TRY(calx_load(path, &d));
  *out = (int)calx_value_as_int(calx_value_get(d, "rank"));
  calx_value *list = calx_value_get(d, "list"),
             *pair = calx_value_get(d, "pair");
  RANK_CHECK(calx_value_kind(list) == CALX_KIND_LIST);
  RANK_CHECK(calx_value_as_int(calx_value_item(list, 0)) == 4);
  RANK_CHECK(calx_value_kind(pair) == CALX_KIND_TUPLE);
  RANK_CHECK(calx_value_as_int(calx_value_item(pair, 0)) == *out);
  RANK_CHECK(calx_value_as_float(calx_value_item(pair, 1)) == 2.5);
  CALX_TRY(check_rows(d, "rows", *out, ROWS));
  calx_value_free(d);
  return NULL;
}

// ---- one file, and one for each ---------------------------------------------

// The last rank saves before the first one does, and does not wait for it:
// nothing is there then. What is there in the end is the first one's.
static calx_status *save_by_the_first(int index, void *user)
{
  (void)user;
  char path[PATH];
  int ranks = calx_world_size(), found = -1;
  calx_value *d;
  CALX_TRY(path_of("first.pt", path));
  CALX_TRY(numbered(index, &d));
  if (index != 0) CALX_TRY(calx_save(d, path));
  if (index != 0) RANK_CHECK(!cx_file_exists(path));
  CALX_TRY(meet("the others have called it"));
  if (index == 0) CALX_TRY(calx_save(d, path));
  CALX_TRY(meet("saved"));
  CALX_TRY(rank_in(path, &found));
  RANK_CHECK(found == 0);
  CALX_TRY(meet("read"));
  if (index == ranks - 1) RANK_CHECK(unlink(path) == 0);
  calx_value_free(d);
  return NULL;
}

static calx_status *save_by_each(int index, void *user)
{
  (void)user;
  char path[PATH], name[32];
  int found = -1;
  calx_value *d;
  CALX_TRY(numbered(index, &d));
  snprintf(name, sizeof name, "each.%d.pt", index);
  CALX_TRY(path_of(name, path));
  CALX_TRY(calx_save(d, path, .every_rank = true));
  CALX_TRY(rank_in(path, &found));
  RANK_CHECK(found == index);
  // Of one name, one of them has the last word, and the file is whole.
  CALX_TRY(path_of("all.pt", path));
  for (int i = 0; i < 20; i++) {
    CALX_TRY(calx_save(d, path, .every_rank = true));
  }
  CALX_TRY(meet("saved"));
  CALX_TRY(rank_in(path, &found));
  RANK_CHECK(found >= 0 && found < calx_world_size());
  calx_value_free(d);
  return NULL;
}

// ---- a file for each rank ---------------------------------------------------

static void part(int *begin, int *end)
{
  int ranks = calx_world_size(), each = (ROWS + ranks - 1) / ranks;
  *begin = calx_global_ordinal() * each;
  if (*begin > ROWS) *begin = ROWS;
  *end = *begin + each < ROWS ? *begin + each : ROWS;
}

static calx_status *load_parts(void)
{
  char path[PATH];
  int begin, end;
  calx_value *d;
  part(&begin, &end);
  CALX_TRY(path_of("sharded", path));
  CALX_TRY(calx_load_sharded(path, &d));
  RANK_CHECK(calx_value_count(d) == 3);
  CALX_TRY(check_rows(d, "a", 0, 4));
  CALX_TRY(check_rows(d, "b", 0, ROWS));
  CALX_TRY(check_rows(d, "moment", begin, end));
  calx_value_free(d);
  CALX_TRY(calx_load_sharded(path, &d, .whole = true));
  CALX_TRY(check_rows(d, "moment", 0, ROWS));
  calx_value_free(d);
  return NULL;
}

static calx_status *save_parts(int index, void *user)
{
  (void)index;
  (void)user;
  char path[PATH];
  int begin, end;
  part(&begin, &end);
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  calx_value *slices = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(put_rows(d, "a", 0, 4));
  CALX_TRY(put_rows(d, "b", 0, ROWS));
  CALX_TRY(put_rows(d, "moment", begin, end));
  CALX_TRY(calx_value_append(slices, calx_value_string("moment")));
  CALX_TRY(path_of("sharded", path));
  CALX_TRY(calx_save_sharded(d, path, .slices = slices, .tag = "step 1"));
  calx_value_free(d);
  calx_value_free(slices);
  CALX_TRY(meet("saved"));
  return load_parts();
}

static calx_status *load_only(int index, void *user)
{
  (void)index;
  (void)user;
  return load_parts();
}

// ---- the worlds -------------------------------------------------------------

static void in_all_worlds(calx_rank_fn *fn, calx_rank_fn *then)
{
  static const struct {
    int processes, devices;
  } worlds[] = { { 1, 1 }, { 1, 2 }, { 1, 3 }, { 1, 4 }, { 1, 8 },
                 { 2, 1 }, { 3, 1 }, { 4, 1 }, { 8, 1 }, { 2, 2 } };
  enum { N = sizeof worlds / sizeof *worlds };
  for (int i = 0; i < N; i++) {
    char text[8];
    snprintf(text, sizeof text, "%d", worlds[i].processes);
    setenv("CALX_PROCESSES", text, 1);
    set_devices(worlds[i].devices);
    calx_status *status = calx_launch(fn, NULL);
    calx_shutdown();
    for (int k = 0; then != NULL && k < N && status == NULL; k++) {
      snprintf(text, sizeof text, "%d", worlds[k].processes);
      setenv("CALX_PROCESSES", text, 1);
      set_devices(worlds[k].devices);
      status = calx_launch(then, NULL);
      calx_shutdown();
    }
    unsetenv("CALX_PROCESSES");
    CHECK_STATUS_OK(status);
  }
}

static void test_b46_first(void **state)
{
  (void)state;
  in_all_worlds(save_by_the_first, NULL);
}

static void test_every_rank(void **state)
{
  (void)state;
  in_all_worlds(save_by_each, NULL);
}

// Whoever saved it, any number of ranks loads it.
static void test_sharded(void **state)
{
  (void)state;
  in_all_worlds(save_parts, load_only);
}

static int begin_folder(void **state)
{
  strcpy(folder, "/tmp/calx_saving_XXXXXX");
  return mkdtemp(folder) != NULL ? ranks_setup_fake(state) : 1;
}

static int end_folder(void **state)
{
  (void)state;
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_b46_first),
    SUPPORT_TEST(test_every_rank),
    SUPPORT_TEST(test_sharded),
  };
  return cmocka_run_group_tests(tests, begin_folder, end_folder);
}
