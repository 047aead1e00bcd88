// ffi: C functions as targets of custom calls.
#include "abi/pjrt_ffi.h"
#include "abi/xla_ffi.h"
#include "host.h"

#define F4 "tensor<4xf32>"
#define F23 "tensor<2x3xf32>"

static const PJRT_FFI_Extension *extension(void)
{
  const PJRT_Extension_Base *base = api->extension_start;
  while (base != NULL && base->type != PJRT_Extension_Type_FFI) {
    base = base->next;
  }
  assert_non_null(base);
  return (const void *)base;
}

static bool answers_version(const XLA_FFI_CallFrame *frame, int major)
{
  const XLA_FFI_Extension_Base *e = frame->extension_start;
  if (e == NULL || e->type != XLA_FFI_Extension_Metadata) return false;
  XLA_FFI_Metadata *m = ((const XLA_FFI_Metadata_Extension *)e)->metadata;
  m->api_version.major_version = major;
  m->api_version.minor_version = XLA_FFI_API_MINOR;
  return true;
}

static XLA_FFI_Error *error_of(const XLA_FFI_CallFrame *frame, const char *why)
{
  XLA_FFI_Error_Create_Args args = { CX_XLA_FFI_NEW(XLA_FFI_Error_Create_Args),
                                     .message = why,
                                     .errc = PJRT_Error_Code_OUT_OF_RANGE };
  return frame->api->XLA_FFI_Error_Create(&args);
}

// The attribute of this name; the names must be sorted.
static const void *attribute(const XLA_FFI_Attrs *attrs, const char *name,
                             XLA_FFI_AttrType type)
{
  const void *found = NULL;
  for (int64_t i = 0; i < attrs->size; i++) {
    const XLA_FFI_ByteSpan *s = attrs->names[i];
    if (i > 0) {
      assert_true(strncmp(attrs->names[i - 1]->ptr, s->ptr, s->len) < 0);
    }
    if (strlen(name) != s->len || memcmp(name, s->ptr, s->len) != 0) continue;
    assert_int_equal(attrs->types[i], type);
    found = attrs->attrs[i];
  }
  assert_non_null(found);
  return found;
}

static float scalar(const XLA_FFI_Attrs *attrs, const char *name)
{
  const XLA_FFI_Scalar *s = attribute(attrs, name, XLA_FFI_AttrType_SCALAR);
  assert_int_equal(s->dtype, XLA_FFI_DataType_F32);
  float v = 0;
  memcpy(&v, s->value, sizeof v);
  return v;
}

// scale * x + the sum of the list.
static XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame)
{
  if (answers_version(frame, XLA_FFI_API_MAJOR)) return NULL;
  assert_int_equal(frame->args.size, 1);
  assert_int_equal(frame->rets.size, 1);
  const XLA_FFI_Attrs *attrs = &frame->attrs;
  const XLA_FFI_Buffer *x = frame->args.args[0];
  const XLA_FFI_Buffer *y = frame->rets.rets[0];
  const XLA_FFI_ByteSpan *text =
      attribute(attrs, "text", XLA_FFI_AttrType_STRING);
  assert_int_equal(text->len, 3);
  const XLA_FFI_Array *list = attribute(attrs, "list", XLA_FFI_AttrType_ARRAY);
  assert_int_equal(list->dtype, XLA_FFI_DataType_S64);
  assert_int_equal(x->dtype, XLA_FFI_DataType_F32);
  assert_int_equal(x->rank, 1);
  assert_int_equal(x->dims[0], 4);
  float more = 0;
  for (size_t i = 0; i < list->size; i++) {
    more += (float)((const int64_t *)list->data)[i];
  }
  for (int64_t i = 0; i < x->dims[0]; i++) {
    ((float *)y->data)[i] =
        scalar(attrs, "by") * ((const float *)x->data)[i] + more;
  }
  return NULL;
}

// The elements as they lie in memory, counted.
static XLA_FFI_Error *in_order(XLA_FFI_CallFrame *frame)
{
  if (answers_version(frame, XLA_FFI_API_MAJOR)) return NULL;
  const XLA_FFI_Buffer *x = frame->args.args[0];
  const XLA_FFI_Buffer *y = frame->rets.rets[0];
  for (int i = 0; i < 6; i++) {
    ((float *)y->data)[i] = 10 * ((const float *)x->data)[i] + (float)i;
  }
  return NULL;
}

static XLA_FFI_Error *fails(XLA_FFI_CallFrame *frame)
{
  if (answers_version(frame, XLA_FFI_API_MAJOR)) return NULL;
  return error_of(frame, "it never works");
}

static XLA_FFI_Error *newer(XLA_FFI_CallFrame *frame)
{
  assert_true(answers_version(frame, XLA_FFI_API_MAJOR + 1));
  return NULL;
}

// The user data of the launch.
static int64_t data_type;
static XLA_FFI_Error *reads_data(XLA_FFI_CallFrame *frame)
{
  if (answers_version(frame, XLA_FFI_API_MAJOR)) return NULL;
  XLA_FFI_TypeId type = { data_type };
  XLA_FFI_ExecutionContext_Get_Args get = {
    CX_XLA_FFI_NEW(XLA_FFI_ExecutionContext_Get_Args), .ctx = frame->ctx,
    .type_id = &type
  };
  XLA_FFI_Error *error = frame->api->XLA_FFI_ExecutionContext_Get(&get);
  if (error != NULL) return error;
  const XLA_FFI_Buffer *y = frame->rets.rets[0];
  for (int i = 0; i < 4; i++) ((float *)y->data)[i] = *(const float *)get.data;
  return NULL;
}

static PJRT_Error *add(const char *name, XLA_FFI_Handler *handler)
{
  PJRT_FFI_Register_Handler_Args args = {
    CX_PJRT_ARGS(PJRT_FFI_Register_Handler_Args), .target_name = name,
    .target_name_size = strlen(name)
  };
  memcpy(&args.handler, &handler, sizeof handler);
  return extension()->register_handler(&args);
}

// A program of one custom call of one operand, of this type.
#define CALLS(name, more, type)                                           \
  "func.func @main(%x: " type ") -> " type                                \
  " {\n  %0 = \"stablehlo.custom_call\"(%x) <{call_target_name = \"" name \
  "\"" more " : (" type ") -> " type "\n  return %0 : " type "\n}"
#define TYPED ", api_version = 4 : i32"

typedef struct fixture {
  PJRT_Client *client;
  PJRT_LoadedExecutable *program;
  PJRT_Buffer *x;
} fixture;

static fixture setup(const char *text, size_t rank, const int64_t *dims)
{
  static const float data[] = { 1, 2, 3, 4, 5, 6 };
  fixture f = { .client = host_client(1) };
  f.program = host_program(f.client, text);
  f.x = host_buffer(host_device(f.client, 0), PJRT_Buffer_Type_F32, data, rank,
                    dims);
  return f;
}

static void teardown(fixture *f)
{
  host_free(f->x);
  host_program_free(f->program);
  host_client_free(f->client);
}

static void test_call(void **state)
{
  (void)state;
  const int64_t four = 4;
  HOST_OK(add("test_scale", scale));
  HOST_OK(add("test_scale", scale));  // again, the same
  HOST_FAILS(6, add("test_scale", fails), "'test_scale' is registered already");
  fixture f = setup(
      CALLS("test_scale",
            TYPED ", backend_config = {text = \"abc\", by = 3.0 : f32, list = "
                  "array<i64: 4, 6>}}>",
            F4),
      1, &four);
  PJRT_Buffer *y = NULL;
  HOST_OK(host_run(f.program, NULL, &f.x, 1, &y));
  host_check_floats(y, 4, 13, 3);
  host_free(y);
  teardown(&f);
}

// JAX writes the attributes beside an empty configuration.
static void test_attributes_of_jax(void **state)
{
  (void)state;
  const int64_t four = 4;
  HOST_OK(add("test_scale", scale));
  fixture f = setup(
      CALLS("test_scale",
            ", backend_config = \"\"}> {mhlo.backend_config = {by = 2.0 : f32, "
            "list = array<i64>, text = \"abc\"}}",
            F4),
      1, &four);
  PJRT_Buffer *y = NULL;
  HOST_OK(host_run(f.program, NULL, &f.x, 1, &y));
  host_check_floats(y, 4, 2, 2);
  host_free(y);
  teardown(&f);
}

// The handler sees the columns one after the other, of operand and result.
static void test_layouts(void **state)
{
  (void)state;
  const int64_t dims[] = { 2, 3 };
  HOST_OK(add("test_in_order", in_order));
  fixture f = setup(
      CALLS("test_in_order",
            TYPED ", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
                  "result_layouts = [dense<[0, 1]> : tensor<2xindex>]}>",
            F23),
      2, dims);
  PJRT_Buffer *y = NULL;
  HOST_OK(host_run(f.program, NULL, &f.x, 1, &y));
  float got[6] = { 0 };
  host_read(y, got, sizeof got);
  const float wanted[] = { 10, 22, 34, 41, 53, 65 };
  assert_memory_equal(got, wanted, sizeof wanted);
  host_free(y);
  teardown(&f);
}

static void test_user_data(void **state)
{
  (void)state;
  const int64_t four = 4;
  float value = 7;
  HOST_OK(add("test_reads_data", reads_data));
  PJRT_FFI_Type_Register_Args type = {
    CX_PJRT_ARGS(PJRT_FFI_Type_Register_Args), .type_name = "float",
    .type_name_size = 5
  };
  HOST_OK(extension()->type_register(&type));
  assert_int_not_equal(type.type_id, 0);
  data_type = type.type_id;
  fixture f = setup(CALLS("test_reads_data", TYPED "}>", F4), 1, &four);
  ARGS(made, PJRT_ExecuteContext_Create, 0);
  HOST_OK(api->PJRT_ExecuteContext_Create(&made));
  PJRT_FFI_UserData_Add_Args data = { CX_PJRT_ARGS(PJRT_FFI_UserData_Add_Args),
                                      .context = made.context,
                                      .user_data = { type.type_id, &value } };
  HOST_OK(extension()->user_data_add(&data));
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions),
                                  .context = made.context };
  PJRT_Buffer *y = NULL;
  PJRT_Buffer **results = &y;
  PJRT_Buffer *const *lists = &f.x;
  HOST_OK(CALL(PJRT_LoadedExecutable_Execute, .executable = f.program,
               .options = &options, .argument_lists = &lists, .num_devices = 1,
               .num_args = 1, .output_lists = &results));
  HOST_OK(CALL(PJRT_ExecuteContext_Destroy, .context = made.context));
  host_check_floats(y, 4, 7, 0);
  host_free(y);
  HOST_OK(host_run(f.program, NULL, &f.x, 1, &y));
  HOST_FAILS(5, host_ready(y), "no user data");
  host_free(y);
  teardown(&f);
}

// The interpreter refuses a call when it comes to it.
static void check_refused(const fixture *f, const char *text, const char *why)
{
  PJRT_LoadedExecutable *program = host_program(f->client, text);
  PJRT_Buffer *y = NULL;
  HOST_OK(host_run(program, NULL, &f->x, 1, &y));
  HOST_FAILS(12, host_ready(y), why);
  host_free(y);
  host_program_free(program);
}

// A function goes before the engine's own target of the same name. The two
// differ in what they take: LAPACK's has more results.
static void test_before_lapack(void **state)
{
  (void)state;
  const int64_t dims[] = { 2, 3 };
  const char *text = CALLS("lapack_sgees_ffi", TYPED "}>", F23);
  fixture f = setup(text, 2, dims);
  PJRT_Buffer *y = NULL;
  HOST_OK(host_run(f.program, NULL, &f.x, 1, &y));
  HOST_FAILS(3, host_ready(y), "custom_call 'lapack_sgees_ffi'");
  host_free(y);
  HOST_OK(add("lapack_sgees_ffi", in_order));
  PJRT_LoadedExecutable *after = host_program(f.client, text);
  HOST_OK(host_run(after, NULL, &f.x, 1, &y));
  host_check_floats(y, 6, 10, 11);
  host_free(y);
  host_program_free(after);
  teardown(&f);
}

static void test_errors(void **state)
{
  (void)state;
  const int64_t four = 4;
  HOST_FAILS(3, add("test_newer", newer), "version 1 of XLA's FFI");
  HOST_FAILS(3, add("", fails), "needs a name");
  HOST_FAILS(3, add("test_null", NULL), "a function");
  HOST_OK(add("test_fails", fails));
  fixture f = setup(CALLS("test_fails", TYPED "}>", F4), 1, &four);
  PJRT_Buffer *y = NULL;
  HOST_OK(host_run(f.program, NULL, &f.x, 1, &y));
  HOST_FAILS(11, host_ready(y), "it never works; custom call 'test_fails'");
  host_free(y);
  check_refused(&f, CALLS("test_absent", TYPED "}>", F4),
                "there is no target 'test_absent': no function is registered "
                "for it, and the CPU engine has lapack_?trsm_ffi, ");
  check_refused(&f, CALLS("test_fails", ", api_version = 2 : i32}>", F4),
                "api_version 2");
  teardown(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_call),          HOST_TEST(test_attributes_of_jax),
    HOST_TEST(test_layouts),       HOST_TEST(test_user_data),
    HOST_TEST(test_before_lapack), HOST_TEST(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
