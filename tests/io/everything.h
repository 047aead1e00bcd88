// everything: a value with all that a file can hold, and values compared.
#ifndef CX_TESTS_IO_EVERYTHING_H
#define CX_TESTS_IO_EVERYTHING_H

#include "calx/io.h"
#include "support/support.h"

static inline calx_value *host(calx_dtype dtype, calx_dims shape)
{
  unsigned char data[512];
  for (size_t i = 0; i < sizeof data; i++) {
    data[i] = (unsigned char)(dtype == CALX_BOOL ? i & 1 : i * 37);
  }
  calx_scope *s = calx_scope_begin();
  calx_value *v = calx_value_tensor(calx_host_tensor(data, dtype, shape));
  CHECK_STATUS_OK(calx_scope_end(s));
  return v;
}

static inline void put(calx_value *to, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(key == NULL ? calx_value_append(to, v)
                              : calx_value_set(to, key, v));
}

static inline calx_value *everything(void)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  for (int t = CALX_BOOL; t <= CALX_C128; t++) {
    put(d, calx_dtype_name((calx_dtype)t),
        host((calx_dtype)t, CALX_SHAPE(3, 5)));
  }
  put(d, "rank 0", host(CALX_F64, CALX_SCALAR));
  put(d, "empty", host(CALX_F32, CALX_SHAPE(0, 4)));
  put(d, "rank 8", host(CALX_I16, CALX_SHAPE(1, 2, 1, 2, 1, 2, 1, 2)));
  put(d, "again",
      calx_value_tensor(calx_value_as_tensor(calx_value_get(d, "f32"))));
  const int64_t numbers[] = { 0,     1,          255,        256,       65535,
                              65536, 2147483647, 2147483648, INT64_MAX, -1,
                              -128,  -32769,     INT64_MIN };
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    put(list, NULL, calx_value_int(numbers[i]));
  }
  put(list, NULL, calx_value_float(-0.1));
  put(list, NULL, calx_value_none());
  put(list, NULL, calx_value_bool(true));
  put(list, NULL, calx_value_bool(false));
  put(list, NULL, calx_value_string("é\"\n"));
  put(list, NULL, calx_value_string(""));
  put(list, NULL, calx_value_bytes("\0\x7f\x80\xc3\xff", 5));
  put(d, "list", list);
  calx_value *states = calx_value_container(CALX_KIND_DICT);
  for (int n = 0; n < 6; n++) {
    calx_value *tuple = calx_value_container(CALX_KIND_TUPLE);
    for (int i = 0; i < n; i++) put(tuple, NULL, calx_value_int(i));
    CHECK_STATUS_OK(calx_value_set_at(states, n - 1, tuple));
  }
  put(d, "by number", states);
  calx_value *set = calx_value_container(CALX_KIND_SET);
  put(set, NULL, calx_value_int(3));
  put(d, "set", set);
  put(d, "empty set", calx_value_container(CALX_KIND_SET));
  put(d, "empty list", calx_value_container(CALX_KIND_LIST));
  put(d, "empty dict", calx_value_container(CALX_KIND_DICT));
  return d;
}

static inline void check_equal(const calx_value *a, const calx_value *b)
{
  assert_int_equal(calx_value_kind(a), calx_value_kind(b));
  assert_int_equal(calx_value_count(a), calx_value_count(b));
  switch (calx_value_kind(a)) {
    case CALX_KIND_TENSOR: {
      const calx_tensor *x = calx_value_as_tensor(a);
      const calx_tensor *y = calx_value_as_tensor(b);
      assert_true(cx_graph_shape_equal(cx_lazy_tensor_shape(x),
                                       cx_lazy_tensor_shape(y)));
      size_t bytes =
          (size_t)calx_tensor_numel(x) * calx_dtype_size(calx_tensor_dtype(x));
      if (bytes != 0) {
        assert_memory_equal(calx_host_data(x), calx_host_data(y), bytes);
      }
      break;
    }
    case CALX_KIND_STRING:
    case CALX_KIND_BYTES:
      assert_memory_equal(calx_value_as_string(a), calx_value_as_string(b),
                          calx_value_count(a) + 1);
      break;
    case CALX_KIND_FLOAT:
      CHECK_CLOSE(calx_value_as_float(a), calx_value_as_float(b), 0);
      break;
    default: assert_int_equal(calx_value_as_int(a), calx_value_as_int(b));
  }
  for (size_t i = 0; calx_value_item(a, i) != NULL; i++) {
    const char *key = calx_value_key(a, i);
    if (key != NULL) assert_string_equal(key, calx_value_key(b, i));
    assert_int_equal(calx_value_key_number(a, i), calx_value_key_number(b, i));
    check_equal(calx_value_item(a, i), calx_value_item(b, i));
  }
}

#endif
