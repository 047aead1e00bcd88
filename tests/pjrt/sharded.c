// sharded: uploads of tensors that are split among devices, on the fake plugin:
// whose data is borrowed, and that its end is told once.
#include "fixture.h"
#include "spmd/placement.h"

enum { ROWS = 4, COLUMNS = 8 };

static float data[ROWS * COLUMNS];

// f32[4,8] on a mesh of 4 devices, with its rows split or its columns.
static calx_status *upload(bool rows, void (*done)(void *user), void *user,
                           cx_pjrt_buffer **out)
{
  const int64_t dims[] = { ROWS, COLUMNS };
  const cx_spmd_axes axis = 1, none = 0;
  const cx_spmd_axes split[] = { rows ? axis : none, rows ? none : axis };
  const cx_spmd_mesh *mesh = cx_spmd_mesh_of_all(FIXTURE_DEVICES);
  cx_pjrt_shape shape;
  for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = (float)i;
  assert_true(cx_pjrt_shape_make(CALX_F32, dims, 2, &shape));
  return cx_pjrt_sharded_from_host(client, &shape,
                                   cx_spmd_placement_of(mesh, split, 2), data,
                                   CX_PJRT_BORROW, done, user, out);
}

static void check_all(cx_pjrt_buffer *b, float first)
{
  float back[ROWS * COLUMNS];
  CHECK_OK(cx_pjrt_buffer_to_host(b, back, sizeof back));
  assert_float_equal(back[0], first, 0.0F);
  for (int i = 1; i < ROWS * COLUMNS; i++) {
    assert_float_equal(back[i], (float)i, 0.0F);
  }
  cx_pjrt_buffer_release(b);
}

static void test_rows_are_borrowed(void **state)
{
  (void)state;
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  fixture_set("async=1;hold=1");
  CHECK_OK(upload(true, count, &done, &b));
  assert_int_equal(atomic_load(&done), 0);
  data[0] = 99;  // not read yet
  fixture_set("hold=0");
  wait_until(&done, 1);
  check_all(b, 99);
  assert_int_equal(atomic_load(&done), 1);
  cx_spmd_placements_free();
}

static void test_columns_are_copied(void **state)
{
  (void)state;
  atomic_int done = 0;
  cx_pjrt_buffer *b = NULL;
  fixture_set("async=1");
  CHECK_OK(upload(false, count, &done, &b));
  assert_int_equal(atomic_load(&done), 1);
  data[0] = 99;
  check_all(b, 0);
  assert_int_equal(atomic_load(&done), 1);
  cx_spmd_placements_free();
}

static void test_failed_shards(void **state)
{
  (void)state;
  for (int shard = 1; shard <= FIXTURE_DEVICES; shard++) {
    for (int rows = 0; rows < 2; rows++) {
      char setting[80];
      atomic_int done = 0;
      cx_pjrt_buffer *b = NULL;
      snprintf(setting, sizeof setting,
               "async=1;fail=PJRT_Client_BufferFromHostBuffer@%d:8:full",
               shard);
      fixture_set("reset");
      fixture_set(setting);
      CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, upload(rows != 0, count, &done, &b),
                  "full");
      assert_null(b);
      wait_until(&done, 1);
      assert_int_equal(atomic_load(&done), 1);
    }
  }
  cx_spmd_placements_free();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FIXTURE_TEST(test_rows_are_borrowed),
    FIXTURE_TEST(test_columns_are_copied),
    FIXTURE_TEST(test_failed_shards),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
