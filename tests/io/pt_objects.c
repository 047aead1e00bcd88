// pt_objects: what checkpoints have beside tensors: objects of Python's
// classes, which are read as plain values, or, in Lightning's checkpoints, are
// None.
#include "archive.h"
#include "calx/io.h"

// A text of one digit's length, and an item of a dict.
#define WORD(n, word) "X" n "\0\0\0" word
#define VERSION WORD("\x19", "pytorch-lightning_version") WORD("\5", "2.6.6")
#define HYPER WORD("\x10", "hyper_parameters")

static calx_status *load_pickle(const void *pickle, size_t size,
                                calx_value **out)
{
  const entry e = { "x/data.pkl", pickle, size };
  return calx_load(pack(&e, 1), out);
}

// Protocol 2 and the end are added.
#define LOAD(text, out) \
  load_pickle("\x80\2" text ".", sizeof("\x80\2" text ".") - 1, out)

static void check_text(const calx_value *dict, const char *key,
                       const char *wanted)
{
  const char *text = calx_value_as_string(calx_value_get(dict, key));
  assert_non_null(text);
  assert_string_equal(text, wanted);
}

// Of any file.
static void test_known(void **state)
{
  (void)state;
  calx_value *v;
  // argparse.Namespace(a=1, b=SimpleNamespace(c=None))
  CHECK_STATUS_OK(LOAD(
      "cargparse\nNamespace\n)\x81}(" WORD("\1", "a") "K\1" WORD(
          "\1", "b") "ctypes\nSimpleNamespace\n)R}" WORD("\1", "c") "Nsbub",
      &v));
  assert_int_equal(calx_value_kind(v), CALX_KIND_DICT);
  assert_int_equal(calx_value_as_int(calx_value_get(v, "a")), 1);
  assert_int_equal(calx_value_count(calx_value_get(v, "b")), 1);
  calx_value_free(v);
  // defaultdict(list, a=1), an AttributeDict with b, a frozenset
  CHECK_STATUS_OK(LOAD(
      "(ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R" WORD(
          "\1",
          "a") "K\1s"
               "cpytorch_lightning.utilities.parsing\nAttributeDict\n)\x81" WORD(
                   "\1", "b") "K\2s"
                              "c__builtin__\nfrozenset\n](K\1K\2e\x85Rt",
      &v));
  assert_int_equal(
      calx_value_as_int(calx_value_get(calx_value_item(v, 0), "a")), 1);
  assert_int_equal(
      calx_value_as_int(calx_value_get(calx_value_item(v, 1), "b")), 2);
  assert_int_equal(calx_value_kind(calx_value_item(v, 2)), CALX_KIND_SET);
  assert_int_equal(calx_value_count(calx_value_item(v, 2)), 2);
  calx_value_free(v);
  // Counter({1: 2}), as MultiStepLR keeps its milestones
  CHECK_STATUS_OK(LOAD("ccollections\nCounter\n}K\1K\2s\x85R", &v));
  assert_int_equal(calx_value_as_int(calx_value_get_at(v, 1)), 2);
  calx_value_free(v);
  // Paths: /tmp/x, a/b, .
  CHECK_STATUS_OK(
      LOAD("}(" WORD("\1", "a") "cpathlib\nPosixPath\n" WORD("\1", "/")
               WORD("\3", "tmp") WORD("\1", "x") "\x87R" WORD(
                   "\1", "b") "cpathlib\nPosixPath\n" WORD("\1", "a")
                   WORD("\1", "b") "\x86R" WORD("\1",
                                                "c") "cpathlib\nPosixPath\n)Ru",
           &v));
  check_text(v, "a", "/tmp/x");
  check_text(v, "b", "a/b");
  check_text(v, "c", ".");
  calx_value_free(v);
  files_in_folder(true);
}

// numpy's dtype of this name and byte order.
#define DTYPE(name, order)                                     \
  "cnumpy\ndtype\n" WORD("\2", name) "\x89\x88\x87R(K\3" WORD( \
      "\1", order) "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
#define SCALAR(name, order, n, bytes) \
  "cnumpy._core.multiarray\nscalar\n" DTYPE(name, order) "C" n bytes "\x86R"

static void test_numpy(void **state)
{
  (void)state;
  calx_value *v;
  CHECK_STATUS_OK(LOAD("(" SCALAR("f8", "<", "\x8", "\0\0\0\0\0\0\xd0?")
                           SCALAR("f4", "<", "\4", "\0\0\0?")
                               SCALAR("i4", "<", "\4", "\xf9\xff\xff\xff")
                                   SCALAR("b1", "|", "\1", "\1") "t",
                       &v));
  const calx_kind kinds[] = { CALX_KIND_FLOAT, CALX_KIND_FLOAT, CALX_KIND_INT,
                              CALX_KIND_BOOL };
  const double values[] = { 0.25, 0.5, -7, 1 };
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(calx_value_kind(calx_value_item(v, i)), kinds[i]);
    CHECK_CLOSE(calx_value_as_float(calx_value_item(v, i)), values[i], 0);
  }
  calx_value_free(v);
  static const char wanted[] = "it wants 'numpy._core.multiarray.scalar'";
  CHECK_STATUS(CALX_UNIMPLEMENTED, LOAD(SCALAR("f4", ">", "\4", "?\0\0\0"), &v),
               wanted);
  CHECK_STATUS(CALX_UNIMPLEMENTED, LOAD(SCALAR("f4", "<", "\3", "?\0\0"), &v),
               wanted);
  CHECK_STATUS(CALX_UNIMPLEMENTED, LOAD(SCALAR("U1", "<", "\4", "?\0\0\0"), &v),
               wanted);
  files_in_folder(true);
}

// ---- what is not read -------------------------------------------------------

static char logged[1024];

static void note(void *user, const char *line)
{
  (void)user;
  snprintf(logged, sizeof logged, "%s", line);
}

// Each of these in `hyper_parameters` is None, and a file with it alone is
// refused.
static void test_foreign(void **state)
{
  (void)state;
#define CASE(text)                                           \
  {                                                          \
    "\x80\2}(" VERSION HYPER "}(" WORD("\1", "a")            \
        text WORD("\1", "b") "K\5uu.",                       \
        sizeof("\x80\2}(" VERSION HYPER "}(" WORD("\1", "a") \
                   text WORD("\1", "b") "K\5uu.") -          \
            1,                                               \
        "\x80\2" text ".", sizeof("\x80\2" text ".") - 1     \
  }
  static const struct {
    const char *inside;
    size_t inside_size;
    const char *alone;
    size_t alone_size;
  } cases[] = {
    CASE("cx\nC\n)\x81"),
    CASE("cx\nC\n)}\x92"),
    CASE("cx\nC\n)R)R"),
    CASE("cx\nC\n)\x81}b"),
    CASE("cx\nC\n)\x81(K\1K\2e"),
    CASE("cx\nC\n)\x81K\1a"),
    CASE("cx\nC\n)\x81(K\1Nu"),
    CASE("ctorch\nfloat32\n"),
    CASE("c__builtin__\nint\n"),
    CASE("\x8a\x9\0\0\0\0\0\0\0\0\1"),
    CASE("ctorch._utils\n_rebuild_sparse_tensor\n)R"),
    CASE("cargparse\nNamespace\nK\1\x85\x81"),
    CASE("cpathlib\nPosixPath\nK\1\x85R"),
    CASE("(" WORD("\7", "storage") "ctorch\nQInt8Storage\n" WORD("\1", "0")
             WORD("\3", "cpu") "K\1tQ"),
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calx_value *v;
    logged[0] = '\0';
    CHECK_STATUS_OK(load_pickle(cases[i].inside, cases[i].inside_size, &v));
    const calx_value *hyper = calx_value_get(v, "hyper_parameters");
    assert_int_equal(calx_value_count(hyper), 2);
    assert_int_equal(calx_value_kind(calx_value_get(hyper, "a")),
                     CALX_KIND_NONE);
    assert_int_equal(calx_value_as_int(calx_value_get(hyper, "b")), 5);
    assert_non_null(strstr(logged,
                           "1 value that calx does not read is None, "
                           "the first in 'hyper_parameters': "));
    calx_value_free(v);
    CHECK_STATUS(CALX_UNIMPLEMENTED,
                 load_pickle(cases[i].alone, cases[i].alone_size, &v),
                 "made.pt");
  }
  files_in_folder(true);
}

// Keys that a value cannot have, containers that are too deep.
static void test_foreign_items(void **state)
{
  (void)state;
  calx_value *v;
  CHECK_STATUS_OK(LOAD("}(" VERSION HYPER
                       "}(NK\1K\1\x85K\2cx\nC\nK\3G\0\0\0\0\0\0\0\0K\4u"
                       "X\x09\0\0\0callbacks]q\0h\0au",
                       &v));
  const calx_value *hyper = calx_value_get(v, "hyper_parameters");
  assert_int_equal(calx_value_count(hyper), 1);
  assert_int_equal(calx_value_as_int(calx_value_get(hyper, "x.C")), 3);
  assert_int_equal(calx_value_kind(calx_value_get(v, "callbacks")),
                   CALX_KIND_LIST);
  assert_non_null(strstr(logged,
                         "4 values that calx does not read are None, "
                         "the first in 'hyper_parameters': "));
  assert_non_null(strstr(logged, "a dict with a None as key"));
  calx_value_free(v);
  files_in_folder(true);
}

// In the states themselves nothing is left out, nor in another program's file.
static void test_strict(void **state)
{
  (void)state;
  calx_value *v;
  static const char wanted[] =
      "it wants 'x.C', and nothing in a file is run: tensors, dicts, lists, "
      "numbers and texts are read";
  CHECK_STATUS(CALX_UNIMPLEMENTED,
               LOAD("}(" VERSION WORD("\xa", "state_dict") "}" WORD(
                        "\1", "a") "cx\nC\n)Rsu",
                    &v),
               wanted);
  CHECK_STATUS(
      CALX_UNIMPLEMENTED,
      LOAD("}(" VERSION WORD("\x10", "optimizer_states") "]cx\nC\n)Rau", &v),
      wanted);
  CHECK_STATUS(CALX_UNIMPLEMENTED, LOAD("}(" HYPER "cx\nC\n)Ru", &v), wanted);
  CHECK_STATUS(CALX_UNIMPLEMENTED, LOAD("](" VERSION "cx\nC\n)Re", &v), wanted);
  CHECK_STATUS(CALX_UNIMPLEMENTED, LOAD("}(" VERSION "NK\1u", &v),
               "a dict with a None as key");
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_known),   SUPPORT_TEST(test_numpy),
    SUPPORT_TEST(test_foreign), SUPPORT_TEST(test_foreign_items),
    SUPPORT_TEST(test_strict),
  };
  calx_log_set(note, NULL);
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
