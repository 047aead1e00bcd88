// checkpoint_damage: a checkpoint with other values or bytes somewhere is taken
// or refused.
#include "checkpoint_run.h"

static uint32_t drawn(uint32_t below)
{
  static uint32_t x = 1;
  x = x * 1664525 + 1013904223;
  return (x >> 8) % below;
}

static calx_value *draw_value(void)
{
  switch (drawn(9)) {
    case 0: return calx_value_none();
    case 1: return calx_value_bool(true);
    case 2: return calx_value_int(-1);
    case 3: return calx_value_int(INT64_MAX);
    case 4: return calx_value_float((double)NAN);
    case 5: return calx_value_string("x");
    case 6: return calx_value_container(CALX_KIND_LIST);
    case 7: return calx_value_container(CALX_KIND_TUPLE);
    default: return calx_value_container(CALX_KIND_DICT);
  }
}

// Another value somewhere in the tree.
static void damage(calx_value *dict)
{
  for (;;) {
    size_t i = drawn((uint32_t)calx_value_count(dict));
    calx_value *item = calx_value_item(dict, i);
    if (calx_value_kind(item) == CALX_KIND_LIST) {
      item = calx_value_item(item, 0);
    }
    if (calx_value_kind(item) == CALX_KIND_DICT && calx_value_count(item) > 0 &&
        drawn(6) > 0) {
      dict = item;
      continue;
    }
    const char *key = calx_value_key(dict, i);
    CHECK_STATUS_OK(
        key != NULL ? calx_value_set(dict, key, draw_value())
                    : calx_value_set_at(dict, calx_value_key_number(dict, i),
                                        draw_value()));
    return;
  }
}

// Whatever the checkpoint holds, it is taken or refused.
static void get_all(run *r, const calx_value *checkpoint)
{
  cx_train_states states = run_states(r);
  cx_train_progress progress;
  cx_train_own own;
  bool found;
  calx_status_free(cx_train_loops_get(checkpoint, &progress));
  calx_status_free(cx_train_own_get(checkpoint, &own, &found));
  calx_status_free(cx_train_states_get(&states, false, checkpoint));
}

static void test_other_values(void **state)
{
  (void)state;
  run a = run_begin(RUN_ADAM, 1, 1);
  run_until(&a, 0, 2);
  const char *path = file_in_folder("run.ckpt");
  calx_value *c = run_checkpoint(&a);
  CHECK_STATUS_OK(calx_save(c, path));
  calx_value_free(c);
  for (int i = 0; i < 500; i++) {
    CHECK_STATUS_OK(calx_load(path, &c));
    damage(c);
    get_all(&a, c);
    calx_value_free(c);
  }
  run_end(&a);
  files_in_folder(true);
}

// A flipped bit of the file: checksums find nearly all.
static void test_other_bytes(void **state)
{
  (void)state;
  run a = run_begin(RUN_SGD, 1, 1);
  run_until(&a, 0, 2);
  const char *path = file_in_folder("run.ckpt");
  char *file;
  size_t size, read = 0;
  calx_value *c = run_checkpoint(&a);
  CHECK_STATUS_OK(calx_save(c, path));
  calx_value_free(c);
  CHECK_STATUS_OK(cx_file_read(path, 0, &file, &size));
  for (int i = 0; i < 500; i++) {
    uint32_t at = drawn((uint32_t)size);
    char old = file[at];
    file[at] = (char)(old ^ (1 << drawn(8)));
    write_file(path, file, size);
    file[at] = old;
    calx_status *status = calx_load(path, &c);
    if (status == NULL) {
      get_all(&a, c);
      calx_value_free(c);
      read++;
    }
    calx_status_free(status);
  }
  assert_in_range(read, 1, 499);
  cx_free(file);
  run_end(&a);
  files_in_folder(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_other_values),
    SUPPORT_TEST(test_other_bytes),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
