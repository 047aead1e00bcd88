// tokenizer: tokens beside those of a plain implementation in Python
// (tokenizer_reference.py), decoding, blocks of a text, damaged files.
#include "calx/text.h"
#include "check.h"
#include "io/files.h"

static char folder[64];

static const char *in_folder(const char *name)
{
  static char paths[4][128];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int make_folder(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/calx_tokens_XXXXXX");
  assert_non_null(mkdtemp(folder));
  char command[512];
  snprintf(command, sizeof command, "python3 '%s/tokenizer_reference.py' '%s'",
           CX_TEST_DIR, folder);
  return system(command);
}

static int remove_folder(void **state)
{
  (void)state;
  const char *const names[] = { "vocab.json", "merges.txt", "cases.bin",
                                "text.txt" };
  for (int i = 0; i < 4; i++) remove(in_folder(names[i]));
  return rmdir(folder);
}

static calx_tokenizer *small(void)
{
  calx_tokenizer *t =
      calx_gpt2_tokenizer(in_folder("vocab.json"), in_folder("merges.txt"));
  if (calx_tokenizer_error(t) != NULL) {
    fail_msg("%s", calx_status_message(calx_tokenizer_error(t)));
  }
  return t;
}

// ---- against the reference --------------------------------------------------

static uint32_t take_u32(const char **at)
{
  uint32_t n;
  memcpy(&n, *at, 4);
  *at += 4;
  return n;
}

static void check_case(const calx_tokenizer *t, const char **at, int number)
{
  calx_scope *scope = calx_scope_begin();
  uint32_t bytes = take_u32(at);
  const char *text = *at;
  *at += bytes;
  uint32_t count = take_u32(at);
  calx_tensor *tokens = calx_tokenizer_encode(t, text, bytes);
  assert_null(calx_tensor_error(tokens));
  const int64_t *ids = calx_host_data(tokens);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t expected = take_u32(at);
    if (i < calx_tensor_numel(tokens) && ids[i] == expected) continue;
    fail_msg("text %d '%.*s': token %u of %u is %lld of %lld, expected %u",
             number, bytes < 60 ? (int)bytes : 60, text, i, count,
             (long long)ids[i], (long long)calx_tensor_numel(tokens), expected);
  }
  assert_int_equal(calx_tensor_numel(tokens), count);
  char *back;
  size_t back_bytes;
  CHECK_OK(calx_tokenizer_decode(t, ids, count, &back, &back_bytes));
  assert_int_equal(back_bytes, bytes);
  assert_memory_equal(back, text, bytes);
  calx_string_free(back);
  CHECK_OK(calx_scope_end(scope));
}

static void test_reference(void **state)
{
  (void)state;
  calx_tokenizer *t = small();
  char *cases;
  size_t size;
  CHECK_OK(cx_file_read(in_folder("cases.bin"), 0, &cases, &size));
  int n = 0;
  for (const char *at = cases; at < cases + size; n++) check_case(t, &at, n);
  assert_true(n > 900);
  cx_free(cases);
  calx_tokenizer_free(t);
}

static void test_ids(void **state)
{
  (void)state;
  calx_tokenizer *t = small();
  int64_t end = calx_tokenizer_id(t, "<|endoftext|>");
  assert_in_range(end, 0, calx_tokenizer_size(t) - 1);
  assert_int_equal(calx_tokenizer_id(t, "no such token"), -1);
  assert_int_equal(calx_tokenizer_id(t, ""), -1);
  assert_int_equal(calx_tokenizer_id(t, NULL), -1);
  assert_int_equal(calx_tokenizer_id(NULL, "a"), -1);
  const int64_t ids[] = { end, calx_tokenizer_id(t, " the") };
  char *text;
  CHECK_OK(calx_tokenizer_decode(t, ids, 2, &text, NULL));
  assert_string_equal(text, "<|endoftext|> the");
  calx_string_free(text);
  calx_tokenizer_free(t);
}

static void test_bytes(void **state)
{
  (void)state;
  calx_tokenizer *t = calx_byte_tokenizer();
  assert_int_equal(calx_tokenizer_size(t), 256);
  assert_int_equal(calx_tokenizer_id(t, "A"), 65);
  assert_int_equal(calx_tokenizer_id(t, "AB"), -1);
  char text[5000];
  for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * 7);
  calx_tensor *tokens = calx_tokenizer_encode(t, text, sizeof text);
  const int64_t *ids = calx_host_data(tokens);
  assert_int_equal(calx_tensor_numel(tokens), sizeof text);
  for (size_t i = 0; i < sizeof text; i++) {
    assert_int_equal(ids[i], (unsigned char)text[i]);
  }
  char *back;
  size_t bytes;
  CHECK_OK(calx_tokenizer_decode(t, ids, sizeof text, &back, &bytes));
  assert_int_equal(bytes, sizeof text);
  assert_memory_equal(back, text, bytes);
  calx_string_free(back);
  assert_int_equal(calx_tensor_numel(calx_tokenizer_encode(t, NULL, 0)), 0);
  calx_tokenizer_free(t);
}

// ---- blocks -----------------------------------------------------------------

static void test_blocks(void **state)
{
  (void)state;
  write_file(in_folder("text.txt"), "abcdefghij", 10);
  calx_tokenizer *t = calx_byte_tokenizer();
  calx_dataset *d = calx_dataset_text(in_folder("text.txt"), t, 3);
  calx_tokenizer_free(t);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 3);
  int64_t data[4], target[4];
  CHECK_OK(calx_dataset_get(d, 2, (void *[]){ data, target }));
  for (int i = 0; i < 3; i++) {
    assert_int_equal(data[i], 'g' + i);
    assert_int_equal(target[i], 'h' + i);
  }
  calx_dataset_free(d);
  const int64_t ids[] = { 5, 6, 7, 8, 9 };
  calx_tensor *tokens = calx_host_tensor(ids, CALX_I64, CALX_SHAPE(5));
  const struct {
    int64_t block, stride, size;
  } rows[] = { { 4, 0, 1 }, { 3, 0, 1 }, { 3, 1, 2 }, { 2, 1, 3 },
               { 1, 0, 4 }, { 1, 3, 2 }, { 2, 9, 1 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    d = calx_dataset_tokens(tokens, rows[i].block, .stride = rows[i].stride);
    assert_int_equal(calx_dataset_size(d), rows[i].size);
    int64_t last = rows[i].size - 1;
    CHECK_OK(calx_dataset_get(d, last, (void *[]){ data, target }));
    int64_t step = rows[i].stride == 0 ? rows[i].block : rows[i].stride;
    assert_int_equal(data[0], 5 + last * step);
    calx_dataset_free(d);
  }
}

static void block_fails(calx_dataset *d, calx_code code, const char *says)
{
  CHECK_SAYS(code, calx_dataset_error(d), says);
  calx_dataset_free(d);
}

static void test_block_errors(void **state)
{
  (void)state;
  const int64_t ids[] = { 1, -2, 3 };
  const float floats[] = { 1, 2 };
  calx_tensor *tokens = calx_host_tensor(ids, CALX_I64, CALX_SHAPE(1));
  const calx_code bad = CALX_INVALID_ARGUMENT;
  block_fails(calx_dataset_tokens(tokens, 1), bad, "1 tokens");
  block_fails(calx_dataset_tokens(tokens, INT64_MAX), bad, "1 tokens");
  block_fails(calx_dataset_tokens(tokens, 0), bad, "blocks of 0");
  block_fails(calx_dataset_tokens(tokens, 1, .stride = -1), bad, "-1 apart");
  block_fails(calx_dataset_tokens(NULL, 1), bad, "NULL");
  tokens = calx_host_tensor(ids, CALX_I64, CALX_SHAPE(3));
  block_fails(calx_dataset_tokens(tokens, 1), bad, "token 1 is -2");
  tokens = calx_host_tensor(floats, CALX_F32, CALX_SHAPE(2));
  block_fails(calx_dataset_tokens(tokens, 1), bad, "f32");
  calx_tokenizer *t = calx_byte_tokenizer();
  block_fails(calx_dataset_text("/nowhere", t, 4), CALX_NOT_FOUND, "/nowhere");
  block_fails(calx_dataset_text(NULL, t, 4), bad, "path");
  block_fails(calx_dataset_text("/nowhere", NULL, 4), bad, "tokenizer");
  calx_tokenizer_free(t);
}

// ---- damaged files ----------------------------------------------------------

static void load_fails(const char *vocab, const char *merges, const char *says)
{
  write_file(in_folder("text.txt"), vocab, strlen(vocab));
  char other[] = "/tmp/calx_merges_XXXXXX";
  close(mkstemp(other));
  write_file(other, merges, strlen(merges));
  calx_tokenizer *t = calx_gpt2_tokenizer(in_folder("text.txt"), other);
  CHECK_SAYS(CALX_DATA_LOSS, calx_tokenizer_error(t), says);
  assert_int_equal(calx_tokenizer_size(t), 0);
  assert_int_equal(calx_tokenizer_id(t, "a"), -1);
  calx_tokenizer_free(t);
  remove(other);
}

#define ABC "{\"a\": 0, \"b\": 1, \"ab\": 2}"

static void test_damage(void **state)
{
  (void)state;
  load_fails("", "", "line 1");
  load_fails("[1]", "", "no object");
  load_fails("{}", "", "no object");
  load_fails("{\"a\": 0, \"b\": 2}", "", "'b' has no number");
  load_fails("{\"a\": 0, \"b\": -1}", "", "'b' has no number");
  load_fails("{\"a\": 0, \"b\": \"1\"}", "", "'b' has no number");
  load_fails("{\"a\": 0, \"b\": 0}", "", "number of another");
  load_fails("{\"a\": 0, \"a\": 1}", "", "duplicate");
  load_fails("{\"a\": 0, \"\": 1}", "", "is empty");
  load_fails("{\"a\": 0, \" \": 1}", "", "no byte");
  load_fails("{\"a\": 0, \"\\u0150\": 1}", "", "no byte");
  load_fails("{\"a\": 0, \"\\u65e5\": 1}", "", "no byte");
  load_fails(ABC, "ab\n", "line 1: 'ab' is no pair");
  load_fails(ABC, "#version: 0.2\na \n", "line 2: 'a ' is no pair");
  load_fails(ABC, " b", "is no pair");
  load_fails(ABC, "a b\nb a\n", "line 2: 'b a' makes");
  load_fails(ABC, "a c\n", "makes, or is made of");
  load_fails(ABC, "a b\na b\n", "line 2: 'a b' is there twice");
  load_fails(ABC, "a b c\n", "no byte");
  load_fails(ABC, "a \xc4z\n", "no byte");
  calx_tokenizer *t = calx_gpt2_tokenizer(NULL, "merges");
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_tokenizer_error(t), "vocabulary");
  calx_tokenizer_free(t);
  t = calx_gpt2_tokenizer("/nowhere", "/nowhere");
  CHECK_SAYS(CALX_NOT_FOUND, calx_tokenizer_error(t), "/nowhere");
  calx_tensor *tokens = calx_tokenizer_encode(t, "a", 1);
  CHECK_SAYS(CALX_NOT_FOUND, calx_tensor_error(tokens), "/nowhere");
  calx_status_free(calx_scope_take_error());
  calx_tokenizer_free(t);
}

static void encode_fails(const calx_tokenizer *t, const char *text,
                         size_t bytes, const char *says)
{
  calx_tensor *tokens = calx_tokenizer_encode(t, text, bytes);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_tensor_error(tokens), says);
  calx_status_free(calx_scope_take_error());
}

static void test_calls(void **state)
{
  (void)state;
  write_file(in_folder("text.txt"), ABC, strlen(ABC));
  char other[] = "/tmp/calx_merges_XXXXXX";
  close(mkstemp(other));
  write_file(other, "a b\r\n", 5);
  calx_tokenizer *t = calx_gpt2_tokenizer(in_folder("text.txt"), other);
  remove(other);
  const int64_t *ids = calx_host_data(calx_tokenizer_encode(t, "abba", 4));
  assert_true(ids[0] == 2 && ids[1] == 1 && ids[2] == 0);
  encode_fails(t, "abc", 3, "byte 0x63");
  encode_fails(NULL, "a", 1, "tokenizer is NULL");
  encode_fails(t, NULL, 1, "text is NULL");
  encode_fails(t, "a", SIZE_MAX, "the most");
  char *text;
  const int64_t bad[] = { 0, 3 }, negative[] = { -1 };
  const calx_code code = CALX_INVALID_ARGUMENT;
  CHECK_FAILS(code, calx_tokenizer_decode(t, bad, 2, &text, NULL),
              "number 1 is 3, there are 3");
  assert_null(text);
  CHECK_FAILS(code, calx_tokenizer_decode(t, negative, 1, &text, NULL), "-1");
  CHECK_FAILS(code, calx_tokenizer_decode(t, NULL, 1, &text, NULL), "NULL");
  CHECK_FAILS(code, calx_tokenizer_decode(NULL, bad, 1, &text, NULL), "NULL");
  CHECK_FAILS(code, calx_tokenizer_decode(t, bad, 1, NULL, NULL), "NULL");
  CHECK_OK(calx_tokenizer_decode(t, NULL, 0, &text, NULL));
  assert_string_equal(text, "");
  calx_string_free(text);
  calx_tokenizer_free(t);
  calx_tokenizer_free(NULL);
}

static void test_no_memory(void **state)
{
  (void)state;
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 200);
    cx_alloc_fail_at(n);
    calx_tokenizer *t =
        calx_gpt2_tokenizer(in_folder("vocab.json"), in_folder("merges.txt"));
    calx_tensor *tokens = calx_tokenizer_encode(t, "the banana", 10);
    cx_alloc_fail_at(-1);
    const calx_status *error = calx_tensor_error(tokens);
    whole = error == NULL;
    if (!whole) {
      CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
      calx_status_free(calx_scope_take_error());
    }
    calx_tokenizer_free(t);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_reference),    CHECK_TEST(test_ids),
    CHECK_TEST(test_bytes),        CHECK_TEST(test_blocks),
    CHECK_TEST(test_block_errors), CHECK_TEST(test_damage),
    CHECK_TEST(test_calls),        CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_tokenizer", tests, make_folder,
                                     remove_folder);
}
