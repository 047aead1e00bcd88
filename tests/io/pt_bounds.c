// pt_bounds: small files that claim, or unpack to, what is large; what is large
// and right; archives that readers understand differently.
#include <sys/resource.h>
#include <sys/wait.h>

#include "archive.h"
#include "calx/io.h"

// Refused, at the cost of little memory.
static void check_refused(const char *path, calx_code code, const char *why)
{
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct rusage before, after;
    calx_value *v;
    getrusage(RUSAGE_SELF, &before);
    calx_status *status = calx_load(path, &v);
    getrusage(RUSAGE_SELF, &after);
    bool right = calx_status_code(status) == code &&
                 strstr(calx_status_message(status), why) != NULL;
    if (!right) fprintf(stderr, "%s\n", calx_status_message(status));
    long kilobytes = after.ru_maxrss - before.ru_maxrss;
    if (kilobytes > 8000) fprintf(stderr, "%ld kilobytes\n", kilobytes);
    _exit(!right ? 1 : kilobytes > 8000 ? 2 : 0);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
}

static void test_bombs(void **state)
{
  (void)state;
  const struct {
    entry entries[3];
    int n;
    calx_code code;
    const char *why;
  } cases[] = {
    // A storage of 6 floats is wanted.
    { { PICKLE(TENSOR("K\6tQK\0K\6\x85K\1\x85")), { "x/data/0", NULL, BOMB } },
      2,
      CALX_DATA_LOSS,
      "has 67108864 bytes, 6 elements of 4 are wanted" },
    // All of it is wanted, for a tensor of 6 floats.
    { { PICKLE(TENSOR("J\0\0\0\1tQK\0K\6\x85K\1\x85")),
        { "x/data/0", NULL, BOMB } },
      2,
      CALX_RESOURCE_EXHAUSTED,
      "of which its tensors need 24" },
    // Past the storage that is claimed.
    { { PICKLE(TENSOR("J\0\0\0\1tQJ\0\0\0\1K\6\x85K\1\x85")),
        { "x/data/0", NULL, BOMB } },
      2,
      CALX_DATA_LOSS,
      "reaches past its storage" },
    { { { "x/data.pkl", NULL, BOMB } },
      1,
      CALX_RESOURCE_EXHAUSTED,
      "its data.pkl unpacks from" },
    { { PICKLE("N"), { "x/byteorder", NULL, BOMB } },
      2,
      CALX_UNIMPLEMENTED,
      "not little-endian" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_refused(pack(cases[i].entries, cases[i].n), cases[i].code,
                  cases[i].why);
  }
  files_in_folder(true);
}

// Zeros pack a thousandfold, and a tensor of them all is read.
static void test_packed_zeros(void **state)
{
  (void)state;
  const entry entries[] = {
    PICKLE(TENSOR("J\0\0\0\1tQK\0J\0\0\0\1\x85K\1\x85")),
    { "x/data/0", NULL, BOMB },
  };
  calx_value *v;
  CHECK_STATUS_OK(calx_load(pack(entries, 2), &v));
  const calx_tensor *t = calx_value_as_tensor(v);
  assert_int_equal(calx_tensor_numel(t), BOMB / 4);
  const float *x = calx_host_data(t);
  for (int i = 0; i < BOMB / 4; i += 1000) assert_true(x[i] == 0);
  calx_value_free(v);
  files_in_folder(true);
}

// One number as a matrix: torch.ones(1).expand(4096, 4096) is 64 MB.
static void test_expanded(void **state)
{
  (void)state;
  static const float seven = 7;
  const entry entries[] = {
    PICKLE(TENSOR("K\1tQK\0M\0\x10M\0\x10\x86K\0K\0\x86")),
    { "x/data/0", &seven, sizeof seven },
  };
  calx_value *v;
  CHECK_STATUS_OK(calx_load(pack(entries, 2), &v));
  const calx_tensor *t = calx_value_as_tensor(v);
  assert_int_equal(calx_tensor_dim(t, 0), 4096);
  assert_int_equal(calx_tensor_numel(t), 4096 * 4096);
  const float *x = calx_host_data(t);
  for (int i = 0; i < 4096 * 4096; i += 999) assert_true(x[i] == 7);
  calx_value_free(v);
  const entry larger[] = {
    // 2 GB
    PICKLE(TENSOR("K\1tQK\0M\0\x80M\0\x40\x86K\0K\0\x86")),
    { "x/data/0", &seven, sizeof seven },
  };
  check_refused(pack(larger, 2), CALX_RESOURCE_EXHAUSTED,
                "save a clone of what is expanded");
  files_in_folder(true);
}

// Of two entries of a name PyTorch reads the last, libzip the first; PyTorch
// does not tell upper from lower case.
static void test_two_of_a_name(void **state)
{
  (void)state;
  static const char *const names[] = { "x/data/9", "x/DATA/0", "x/data.pk9" };
  static const char *const become[] = { "x/data/0", "x/DATA/0", "x/data.pkl" };
  static const float one[2] = { 1, 2 }, two[2] = { 3, 4 };
  for (int i = 0; i < 3; i++) {
    const entry entries[] = {
      PICKLE(TENSOR("K\2tQK\0K\2\x85K\1\x85")),
      { "x/data/0", one, sizeof one },
      { names[i], two, sizeof two },
    };
    const char *path = pack(entries, 3);
    char *file, *at;
    size_t size, n = strlen(names[i]);
    CHECK_STATUS_OK(cx_file_read(path, 0, &file, &size));
    while ((at = memmem(file, size, names[i], n)) != NULL &&
           strcmp(names[i], become[i]) != 0) {
      memcpy(at, become[i], n);
    }
    write_file(path, file, size);
    cx_free(file);
    calx_value *v;
    CHECK_STATUS(CALX_DATA_LOSS, calx_load(path, &v),
                 "it has two entries called");
  }
  files_in_folder(true);
}

// What torch.save makes of torch.nn.Buffer, of a tensor and of a parameter that
// something was hung on.
static void test_tensors_with_attributes(void **state)
{
  (void)state;
  static const float numbers[3] = { 1, 2, 3 };
#define ARGS TENSOR_ARGS("K\3tQK\0K\3\x85K\1\x85")
#define STATE "}X\3\0\0\0tagK\5s"
  const entry pickles[] = {
    PICKLE("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
           "_rebuild_tensor_v2\nctorch\nTensor\n" ARGS STATE "tR"),
    PICKLE("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
           "_rebuild_tensor_v2\nctorch.nn.parameter\nBuffer\n" ARGS STATE "tR"),
    PICKLE("ctorch._utils\n_rebuild_parameter_with_state\n(" TENSOR(
        "K\3tQK\0K\3\x85K\1\x85") "\x88"
                                  "ccollections\nOrderedDict\n)R" STATE "tR"),
  };
  calx_value *v;
  for (int i = 0; i < 3; i++) {
    const entry entries[] = { pickles[i],
                              { "x/data/0", numbers, sizeof numbers } };
    CHECK_STATUS_OK(calx_load(pack(entries, 2), &v));
    CHECK_VALUES(calx_value_as_tensor(v), 0, 1, 2, 3);
    calx_value_free(v);
  }
  // Nothing else is called by that way.
  const entry wrong[] = {
    PICKLE("ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\n"
           "OrderedDict\nctorch\nTensor\n)}tR"),
    PICKLE("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
           "_rebuild_tensor_v2\nctorch\nfloat32\n" ARGS "}tR"),
    PICKLE("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
           "_rebuild_tensor_v2\nctorch\nTensor\n]}tR"),
    PICKLE("ctorch._tensor\n_rebuild_from_type_v2\n)R"),
  };
  for (int i = 0; i < 4; i++) {
    CHECK_STATUS(CALX_DATA_LOSS, calx_load(pack(&wrong[i], 1), &v),
                 "_rebuild_from_type_v2 with other arguments");
  }
  const entry class_called[] = { PICKLE("ctorch\nTensor\n)R") };
  CHECK_STATUS(CALX_UNIMPLEMENTED, calx_load(pack(class_called, 1), &v),
               "a call of a type");
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_bombs),
    SUPPORT_TEST(test_packed_zeros),
    SUPPORT_TEST(test_expanded),
    SUPPORT_TEST(test_two_of_a_name),
    SUPPORT_TEST(test_tensors_with_attributes),
  };
  return cmocka_run_group_tests(tests, NULL, files_end);
}
