// torch: files go to PyTorch and come back. Runs where TEST_TORCH_PYTHON is a
// Python that has torch; what the suite needs of PyTorch otherwise is in the
// oracle's files.
#include "everything.h"
#include "files.h"

static const char *python;

static void run(const char *verb, const char *from, const char *to)
{
  char command[1024];
  snprintf(command, sizeof command, "'%s' '%s/torch_files.py' %s '%s' '%s'",
           python, CX_TEST_DIR, verb, from, to);
  assert_int_equal(system(command), 0);
}

// torch.load(weights_only=True) takes it, and what torch.save makes of it is
// read as the same value.
static void test_pt(void **state)
{
  (void)state;
  const char *from = file_in_folder("calx.pt"),
             *to = file_in_folder("torch.pt");
  calx_value *d = everything(), *read;
  CHECK_STATUS_OK(calx_save(d, from));
  run("pt", from, to);
  CHECK_STATUS_OK(calx_load(to, &read));
  check_equal(d, read);
  calx_value_free(read);
  calx_value_free(d);
  files_in_folder(true);
}

static void test_safetensors(void **state)
{
  (void)state;
  const char *from = file_in_folder("calx.safetensors");
  const char *to = file_in_folder("torch.safetensors");
  calx_value *all = everything(), *d, *read;
  d = calx_value_container(CALX_KIND_DICT);
  for (size_t i = 0; calx_value_item(all, i) != NULL; i++) {
    calx_tensor *t = calx_value_as_tensor(calx_value_item(all, i));
    if (t != NULL) put(d, calx_value_key(all, i), calx_value_tensor(t));
  }
  CHECK_STATUS_OK(calx_save(d, from));
  run("safetensors", from, to);
  if (cx_file_exists(to)) {
    CHECK_STATUS_OK(calx_load(to, &read));
    assert_int_equal(calx_value_count(read), calx_value_count(d));
    for (size_t i = 0; i < calx_value_count(d); i++) {
      check_equal(calx_value_item(d, i),
                  calx_value_get(read, calx_value_key(d, i)));
    }
    calx_value_free(read);
  } else {
    print_message("skipped: this Python has no safetensors\n");
  }
  calx_value_free(d);
  calx_value_free(all);
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_pt),
    SUPPORT_TEST(test_safetensors),
  };
  python = getenv("TEST_TORCH_PYTHON");
  if (python == NULL) {
    printf("0 cases ran, 2 skipped: TEST_TORCH_PYTHON names no Python\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, files_end);
}
