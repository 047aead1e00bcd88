// table: every slot is there, answers, and survives arguments of any size.
#include "abi/pjrt_layouts.h"
#include "host.h"

typedef struct slot {
  const char *name;
  PJRT_Error *(*function)(void *args);
  size_t size;  // of the arguments
} slot;

#define ROW(name) { #name, call_##name, name##_Args_STRUCT_SIZE },
#define WRAP(name)                           \
  static PJRT_Error *call_##name(void *args) \
  {                                          \
    return api->name((name##_Args *)args);   \
  }
#define WRAP_VOID(name)                      \
  static PJRT_Error *call_##name(void *args) \
  {                                          \
    api->name((name##_Args *)args);          \
    return NULL;                             \
  }
CX_PJRT_FUNCTIONS(WRAP, WRAP_VOID)
static const slot slots[] = { CX_PJRT_FUNCTIONS(ROW, ROW) };
#define SLOTS (sizeof slots / sizeof *slots)

static void test_version(void **state)
{
  (void)state;
  assert_int_equal(api->struct_size, 1120);
  assert_int_equal(api->pjrt_api_version.major_version, 0);
  assert_int_equal(api->pjrt_api_version.minor_version, 104);
  assert_int_equal(SLOTS, 138);
  const unsigned char *at = (const unsigned char *)api;
  for (size_t i = offsetof(PJRT_Api, PJRT_Error_Destroy); i < sizeof *api;
       i += sizeof(void *)) {
    void *function = NULL;
    memcpy(&function, at + i, sizeof function);
    assert_non_null(function);
  }
}

// Nothing behind the size that the caller tells is touched.
static void test_sizes(void **state)
{
  (void)state;
  for (size_t i = 0; i < SLOTS; i++) {
    const slot *s = &slots[i];
    for (size_t size = 0; size < s->size; size++) {
      unsigned char args[512];
      memset(args, 0xa5, sizeof args);
      memset(args, 0, size < 8 ? 8 : size);
      memcpy(args, &size, sizeof size);
      int code = host_take(s->function(args));
      if (strcmp(s->name, "PJRT_Client_Create") == 0 && code == 0) {
        PJRT_Client *client = NULL;  // of a caller from before 0.61
        memcpy(&client, args + offsetof(PJRT_Client_Create_Args, client),
               sizeof client);
        host_client_free(client);
      }
      for (size_t k = size < 8 ? 8 : size; k < sizeof args; k++) {
        if (args[k] != 0xa5) fail_msg("%s: byte %zu of %zu", s->name, k, size);
      }
      if (code == PJRT_Error_Code_UNIMPLEMENTED) {
        assert_non_null(strstr(host_words(), s->name));
      } else if (size < 16 && code != 0) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "Unexpected %s_Args size: expected",
                 s->name);
        if (strstr(host_words(), wanted) == NULL) {
          fail_msg("%s: %s", s->name, host_words());
        }
        assert_int_equal(code, PJRT_Error_Code_INVALID_ARGUMENT);
      }
    }
  }
}

static void test_nothing_given(void **state)
{
  (void)state;
  for (size_t i = 0; i < SLOTS; i++) {
    const slot *s = &slots[i];
    (void)host_take(s->function(NULL));
    unsigned char args[512] = { 0 };
    memcpy(args, &s->size, sizeof s->size);
    if (strcmp(s->name, "PJRT_Client_Create") == 0 ||
        strcmp(s->name, "PJRT_TopologyDescription_Create") == 0 ||
        strcmp(s->name, "PJRT_Event_Create") == 0 ||
        strcmp(s->name, "PJRT_ExecuteContext_Create") == 0) {
      continue;  // these need nothing
    }
    int code = host_take(s->function(args));
    if (code == PJRT_Error_Code_INVALID_ARGUMENT) {
      bool told = strstr(host_words(), "NULL") != NULL ||
                  strstr(host_words(), "no serialised") != NULL;
      if (!told) fail_msg("%s: %s", s->name, host_words());
    }
  }
}

static void test_larger_structs(void **state)
{
  (void)state;
  struct {
    PJRT_Plugin_Attributes_Args args;
    char more[64];
  } larger = { .args = { .struct_size = sizeof larger } };
  HOST_OK(api->PJRT_Plugin_Attributes(&larger.args));
  assert_true(larger.args.num_attributes >= 2);
}

static void test_attributes(void **state)
{
  (void)state;
  HOST_OK(CALL(PJRT_Plugin_Initialize, 0));
  ARGS(args, PJRT_Plugin_Attributes, 0);
  HOST_OK(api->PJRT_Plugin_Attributes(&args));
  bool found = false;
  for (size_t i = 0; i < args.num_attributes; i++) {
    const PJRT_NamedValue *v = &args.attributes[i];
    assert_int_equal(v->struct_size, PJRT_NamedValue_STRUCT_SIZE);
    if (strncmp(v->name, "stablehlo_current_version", v->name_size) != 0) {
      continue;
    }
    found = true;
    assert_int_equal(v->type, PJRT_NamedValue_kInt64List);
    assert_int_equal(v->value_size, 3);
    assert_int_equal(v->int64_array_value[0], 1);
    assert_int_equal(v->int64_array_value[1], 13);
    assert_int_equal(v->int64_array_value[2], 0);
  }
  assert_true(found);
}

static void check_layout(const PJRT_Layouts_Extension *e,
                         PJRT_Layouts_MemoryLayout *layout, const char *wanted)
{
  PJRT_Layouts_MemoryLayout_Serialize_Args text = {
    CX_PJRT_ARGS(PJRT_Layouts_MemoryLayout_Serialize_Args), .layout = layout
  };
  HOST_OK(e->PJRT_Layouts_MemoryLayout_Serialize(&text));
  assert_int_equal(text.serialized_bytes_size, strlen(wanted));
  assert_memory_equal(text.serialized_bytes, wanted, strlen(wanted));
  text.serialized_layout_deleter(text.serialized_layout);
  PJRT_Layouts_MemoryLayout_Destroy_Args end = {
    CX_PJRT_ARGS(PJRT_Layouts_MemoryLayout_Destroy_Args), .layout = layout
  };
  HOST_OK(e->PJRT_Layouts_MemoryLayout_Destroy(&end));
}

static void test_layouts(void **state)
{
  (void)state;
  const PJRT_Extension_Base *base = api->extension_start;
  while (base != NULL && base->type != PJRT_Extension_Type_Layouts) {
    base = base->next;
  }
  assert_non_null(base);
  const PJRT_Layouts_Extension *e = (const void *)base;
  assert_int_equal(e->base.struct_size, PJRT_Layouts_Extension_STRUCT_SIZE);
  PJRT_Client *client = host_client(1);
  int64_t dims[] = { 2, 3, 4 };
  float data[24] = { 0 };
  PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args of_client = {
    CX_PJRT_ARGS(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args),
    .client = client, .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2
  };
  HOST_OK(e->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&of_client));
  check_layout(e, of_client.layout, "{1,0}");
  of_client.num_dims = 1000;
  HOST_FAILS(3, e->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&of_client),
             "1000 dimensions");
  PJRT_Buffer *b =
      host_buffer(host_device(client, 0), PJRT_Buffer_Type_F32, data, 3, dims);
  PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args of_buffer = {
    CX_PJRT_ARGS(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args), .buffer = b
  };
  HOST_OK(e->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&of_buffer));
  check_layout(e, of_buffer.layout, "{2,1,0}");
  PJRT_LoadedExecutable *loaded =
      host_program(client, BINARY("add", "tensor<2x2xf32>"));
  ARGS(get, PJRT_LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  HOST_OK(api->PJRT_LoadedExecutable_GetExecutable(&get));
  PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args params = {
    CX_PJRT_ARGS(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args),
    .executable = get.executable
  };
  HOST_OK(e->PJRT_Layouts_PJRT_Executable_GetParameterLayouts(&params));
  assert_int_equal(params.num_parameters, 2);
  check_layout(e, params.layouts[1], "{1,0}");
  HOST_OK(CALL(PJRT_Executable_Destroy, .executable = get.executable));
  host_program_free(loaded);
  host_free(b);
  host_client_free(client);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_version),       HOST_TEST(test_sizes),
    HOST_TEST(test_nothing_given), HOST_TEST(test_larger_structs),
    HOST_TEST(test_attributes),    HOST_TEST(test_layouts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
