// abi: the declarations of src/abi have the sizes and offsets of the interface,
// whose numbers stand for themselves in abi.def, field by field.
#include "abi/pjrt.h"

#include "check.h"

typedef struct number {
  const char *type;
  const char *field;  // NULL: the struct itself
  size_t found[2];
  size_t wanted[2];
} number;

#define CX_ABI_STRUCT(type, size, struct_size) \
  { #type, NULL, { sizeof(type), 0 }, { size, 0 } },
#define CX_ABI_FIELD(type, field, offset, bytes)           \
  { #type,                                                 \
    #field,                                                \
    { offsetof(type, field), sizeof(((type *)0)->field) }, \
    { offset, bytes } },
static const number numbers[] = {
#include "abi.def"
};
#undef CX_ABI_STRUCT
#undef CX_ABI_FIELD

static void test_sizes_and_offsets(void **state)
{
  (void)state;
  size_t n = sizeof numbers / sizeof *numbers;
  size_t structs = 0;
  for (size_t i = 0; i < n; i++) {
    const number *x = &numbers[i];
    structs += x->field == NULL;
    if (x->found[0] == x->wanted[0] && x->found[1] == x->wanted[1]) continue;
    fail_msg("%s.%s: wants %zu, %zu, has %zu, %zu", x->type,
             x->field == NULL ? "" : x->field, x->wanted[0], x->wanted[1],
             x->found[0], x->found[1]);
  }
  print_message("abi: %zu structs, %zu fields\n", structs, n - structs);
  assert_int_equal(structs, 164);
}

// The size that goes into struct_size: up to the end of the last field.
static void test_struct_sizes(void **state)
{
  (void)state;
  assert_int_equal(PJRT_Api_STRUCT_SIZE, 1144);
  assert_int_equal(PJRT_Event_IsReady_Args_STRUCT_SIZE, 25);
  assert_int_equal(sizeof(PJRT_Event_IsReady_Args), 32);
  PJRT_Error_GetCode_Args args = { CX_PJRT_ARGS(PJRT_Error_GetCode_Args) };
  assert_int_equal(args.struct_size, 28);
  assert_null(args.extension_start);
}

static void test_table(void **state)
{
  (void)state;
  static const char *const names[] = {
#define NAME(name) #name,
    CX_PJRT_FUNCTIONS(NAME, NAME)
#undef NAME
  };
  size_t n = sizeof names / sizeof *names;
  assert_int_equal(n, 138);
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < i; j++) assert_string_not_equal(names[i], names[j]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_sizes_and_offsets),
    CHECK_TEST(test_struct_sizes),
    CHECK_TEST(test_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
