// execute: launches on one device: arguments, donation, errors, order.
#include <pthread.h>
#include <stdatomic.h>

#include "host.h"

#define F4 "tensor<4xf32>"
#define ADD BINARY("add", F4)

// (x, y) -> (x + y, x - y), the first in x's memory where that is given away
#define TWO                                                                   \
  PROGRAM("(" F4 ", " F4 ") -> (" F4 ", " F4 ")",                             \
          ", arg_attrs = [{tf.aliasing_output = 0 : i32}, {}]",               \
          "  ^bb0(%a: " F4 ", %b: " F4                                        \
          "):\n"                                                              \
          "    %0 = \"stablehlo.add\"(%a, %b) : (" F4 ", " F4 ") -> " F4      \
          "\n"                                                                \
          "    %1 = \"stablehlo.subtract\"(%a, %b) : (" F4 ", " F4 ") -> " F4 \
          "\n"                                                                \
          "    \"func.return\"(%0, %1) : (" F4 ", " F4 ") -> ()\n")

typedef struct fixture {
  PJRT_Client *client;
  PJRT_Device *device;
  PJRT_LoadedExecutable *program;
} fixture;

static fixture setup(const char *text)
{
  fixture f = { .client = host_client(2) };
  f.device = host_device(f.client, 0);
  f.program = host_program(f.client, text);
  return f;
}

static void teardown(fixture *f)
{
  host_program_free(f->program);
  host_client_free(f->client);
}

static void *address(PJRT_Buffer *buffer)
{
  ARGS(args, PJRT_Buffer_OpaqueDeviceMemoryDataPointer, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&args));
  return args.device_memory_ptr;
}

static void test_add(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  PJRT_Buffer *a = host_floats(f.device, 4, 1);
  PJRT_Buffer *b = host_floats(f.device, 4, 10);
  PJRT_Buffer *args[] = { a, b };
  for (int i = 0; i < 3; i++) {
    PJRT_Buffer *sum = NULL;
    HOST_OK(host_run(f.program, NULL, args, 2, &sum));
    host_check_floats(sum, 4, 11, 2);
    HOST_OK(host_ready(sum));
    host_free(sum);
  }
  PJRT_Buffer *same[] = { a, a };
  PJRT_Buffer *twice = NULL;
  HOST_OK(host_run(f.program, f.device, same, 2, &twice));
  host_check_floats(twice, 4, 2, 2);
  host_free(twice);
  host_free(a);
  host_free(b);
  teardown(&f);
}

static void test_complete_events(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  PJRT_Buffer *a = host_floats(f.device, 4, 1);
  PJRT_Buffer *args[] = { a, a };
  PJRT_Buffer *sum = NULL;
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { &sum };
  PJRT_Event *event = NULL;
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  ARGS(run, PJRT_LoadedExecutable_Execute, .executable = f.program,
       .options = &options, .argument_lists = lists, .num_devices = 1,
       .num_args = 2, .output_lists = outs, .device_complete_events = &event);
  HOST_OK(api->PJRT_LoadedExecutable_Execute(&run));
  HOST_OK(host_wait(event));
  host_free(sum);
  // A caller of 0.39 knows less of the options.
  options.struct_size = 72;
  run.device_complete_events = NULL;
  HOST_OK(api->PJRT_LoadedExecutable_Execute(&run));
  host_free(sum);
  options.struct_size = 71;
  HOST_FAILS(3, api->PJRT_LoadedExecutable_Execute(&run),
             "Unexpected PJRT_ExecuteOptions size");
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.num_send_ops = 1;
  HOST_FAILS(12, api->PJRT_LoadedExecutable_Execute(&run), "send");
  options.num_send_ops = 0;
  run.options = NULL;
  HOST_FAILS(3, api->PJRT_LoadedExecutable_Execute(&run), "options is NULL");
  run.options = &options;
  run.argument_lists = NULL;
  HOST_FAILS(3, api->PJRT_LoadedExecutable_Execute(&run), "NULL");
  host_free(a);
  teardown(&f);
}

static void test_wrong_arguments(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  PJRT_Buffer *a = host_floats(f.device, 4, 1);
  PJRT_Buffer *far = host_floats(host_device(f.client, 1), 4, 1);
  int32_t data[4] = { 0 };
  PJRT_Buffer *ints =
      host_buffer(f.device, PJRT_Buffer_Type_S32, data, 1, (int64_t[]){ 4 });
  PJRT_Buffer *square =
      host_buffer(f.device, PJRT_Buffer_Type_F32, data, 2, (int64_t[]){ 2, 2 });
  PJRT_Buffer *out = NULL;
  struct {
    PJRT_Buffer *b;
    const char *text;
  } cases[] = {
    { ints,
      "argument 1 of 'test': wanted f32[4] on device 0, found s32[4] on "
      "device 0" },
    { square, "found f32[2,2]" },
    { far, "found f32[4] on device 1" },
    { NULL, "argument 1 of 'test' is NULL" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PJRT_Buffer *args[] = { a, cases[i].b };
    HOST_FAILS(3, host_run(f.program, NULL, args, 2, &out), cases[i].text);
  }
  PJRT_Buffer *args[] = { a, a, a };
  HOST_FAILS(3, host_run(f.program, NULL, args, 3, &out),
             "Execution supplied 3 buffers but compiled program expected 2");
  HOST_FAILS(3, host_run(f.program, host_device(f.client, 1), args, 2, &out),
             "not for device 1");
  HOST_OK(CALL(PJRT_Buffer_Delete, .buffer = square));
  host_free(ints);
  host_free(square);
  host_free(far);
  host_free(a);
  teardown(&f);
}

// ---- donation ----

static void test_donation(void **state)
{
  (void)state;
  fixture f = setup(TWO);
  PJRT_Buffer *a = host_floats(f.device, 4, 1);
  PJRT_Buffer *b = host_floats(f.device, 4, 10);
  PJRT_Buffer *out[2];
  const void *memory = address(a);
  PJRT_Buffer *args[] = { a, b };
  HOST_OK(host_run(f.program, NULL, args, 2, out));
  assert_true(host_is_deleted(a));
  assert_false(host_is_deleted(b));
  host_check_floats(out[0], 4, 11, 2);
  host_check_floats(out[1], 4, -9, 0);
  assert_ptr_equal(address(out[0]), memory);
  host_free(out[0]);
  host_free(out[1]);
  HOST_FAILS(3, host_run(f.program, NULL, args, 2, out),
             "Buffer has been deleted or donated");
  assert_false(host_is_deleted(b));
  // What a failed call had taken is given back.
  PJRT_Buffer *dead_second[] = { b, a };
  HOST_FAILS(3, host_run(f.program, NULL, dead_second, 2, out), "argument 1");
  assert_false(host_is_deleted(b));
  PJRT_Buffer *twice[] = { b, b };
  HOST_FAILS(3, host_run(f.program, NULL, twice, 2, out),
             "argument 1 of 'test' is the buffer that argument 0 donates");
  assert_false(host_is_deleted(b));
  host_check_floats(b, 4, 10, 1);
  host_free(a);
  host_free(b);
  teardown(&f);
}

static void test_not_donated(void **state)
{
  (void)state;
  fixture f = setup(TWO);
  PJRT_Buffer *a = host_floats(f.device, 4, 1);
  PJRT_Buffer *out[2];
  PJRT_Buffer *args[] = { a, a };
  PJRT_Buffer *const *lists[] = { args };
  PJRT_Buffer **outs[] = { out };
  int64_t kept[] = { 0, 77, -5 };
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions),
                                  .non_donatable_input_indices = kept,
                                  .num_non_donatable_input_indices = 3 };
  HOST_OK(CALL(PJRT_LoadedExecutable_Execute, .executable = f.program,
               .options = &options, .argument_lists = lists, .num_devices = 1,
               .num_args = 2, .output_lists = outs));
  assert_false(host_is_deleted(a));
  host_check_floats(out[0], 4, 2, 2);
  host_check_floats(a, 4, 1, 1);
  host_free(out[0]);
  host_free(out[1]);
  // Nor what the caller reads directly.
  HOST_OK(CALL(PJRT_Buffer_IncreaseExternalReferenceCount, .buffer = a));
  HOST_OK(host_run(f.program, NULL, args, 2, out));
  assert_false(host_is_deleted(a));
  host_check_floats(out[0], 4, 2, 2);
  host_check_floats(a, 4, 1, 1);
  host_free(out[0]);
  host_free(out[1]);
  HOST_OK(CALL(PJRT_Buffer_DecreaseExternalReferenceCount, .buffer = a));
  host_free(a);
  teardown(&f);
}

// A donated argument whose memory others still see: they see the old values.
static void test_donation_of_shared_memory(void **state)
{
  (void)state;
  fixture f = setup(TWO);
  float *data = aligned_alloc(64, 64);
  assert_non_null(data);
  for (int i = 0; i < 4; i++) data[i] = (float)i;
  ARGS(lend, PJRT_Client_BufferFromHostBuffer, .client = f.client, .data = data,
       .type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ 4 }, .num_dims = 1,
       .host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy,
       .device = f.device);
  HOST_OK(api->PJRT_Client_BufferFromHostBuffer(&lend));
  PJRT_Buffer *one = host_floats(f.device, 4, 1);
  PJRT_Buffer *out[2];
  PJRT_Buffer *args[] = { lend.buffer, one };
  HOST_OK(host_run(f.program, NULL, args, 2, out));
  host_check_floats(out[0], 4, 1, 2);
  for (int i = 0; i < 4; i++) assert_true(data[i] == (float)i);
  assert_true(host_is_deleted(lend.buffer));
  HOST_OK(host_wait(lend.done_with_host_buffer));  // nobody reads it any more
  host_free(lend.buffer);
  host_free(out[1]);
  ARGS(cast, PJRT_Buffer_Bitcast, .buffer = out[0],
       .element_type = PJRT_Buffer_Type_F32, .dims = (int64_t[]){ 4 },
       .num_dims = 1);
  HOST_OK(api->PJRT_Buffer_Bitcast(&cast));
  PJRT_Buffer *next[2];
  PJRT_Buffer *again[] = { out[0], one };
  HOST_OK(host_run(f.program, NULL, again, 2, next));
  host_check_floats(next[0], 4, 2, 3);
  host_check_floats(cast.out_buffer, 4, 1, 2);
  host_free(cast.out_buffer);
  host_free(next[0]);
  host_free(next[1]);
  host_free(out[0]);
  host_free(one);
  free(data);
  teardown(&f);
}

// ---- pending and failed arguments ----

static void test_pending_argument(void **state)
{
  (void)state;
  fixture f = setup(TWO);
  host_pending p = host_promise(f.client, 0, 4);
  PJRT_Buffer *one = host_floats(f.device, 4, 1);
  PJRT_Buffer *out[2], *next[2];
  PJRT_Buffer *args[] = { p.buffer, one };
  HOST_OK(host_run(f.program, NULL, args, 2, out));
  assert_true(host_is_deleted(p.buffer));
  PJRT_Buffer *again[] = { out[0], one };
  HOST_OK(host_run(f.program, NULL, again, 2, next));
  float back[4] = { 0 };
  ARGS(read, PJRT_Buffer_ToHostBuffer, .src = next[0], .dst = back,
       .dst_size = sizeof back);
  HOST_OK(api->PJRT_Buffer_ToHostBuffer(&read));
  // All handles go while everything waits.
  host_free(p.buffer);
  host_free(one);
  host_free(out[0]);
  host_free(out[1]);
  host_free(next[0]);
  host_free(next[1]);
  host_program_free(f.program);
  host_fulfil(&p, 5);
  HOST_OK(host_wait(read.event));
  for (int i = 0; i < 4; i++) assert_true(back[i] == (float)(7 + 3 * i));
  host_client_free(f.client);
}

static void test_failed_argument(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  host_pending p = host_promise(f.client, 0, 4);
  PJRT_Buffer *args[] = { p.buffer, p.buffer };
  PJRT_Buffer *sum = NULL;
  PJRT_Buffer *next = NULL;
  HOST_OK(host_run(f.program, NULL, args, 2, &sum));
  PJRT_Buffer *again[] = { sum, sum };
  HOST_OK(host_run(f.program, NULL, again, 2, &next));
  host_break(&p, "the wire was cut");
  HOST_FAILS(10, host_ready(next), "the wire was cut");
  HOST_FAILS(10, host_ready(sum), "argument 0 of program 'test'");
  PJRT_Buffer *late = NULL;
  HOST_OK(host_run(f.program, NULL, args, 2, &late));  // told by the result
  HOST_FAILS(10, host_ready(late), "the wire was cut");
  host_free(late);
  host_free(next);
  host_free(sum);
  host_free(p.buffer);
  teardown(&f);
}

static void test_closed_client(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  PJRT_Buffer *a = host_floats(f.device, 4, 1);
  PJRT_Buffer *args[] = { a, a };
  PJRT_Buffer *sum = NULL;
  HOST_OK(host_run(f.program, NULL, args, 2, &sum));
  host_client_free(f.client);
  host_check_floats(sum, 4, 2, 2);
  host_free(sum);
  HOST_FAILS(9, host_run(f.program, NULL, args, 2, &sum), "was destroyed");
  host_free(a);
  host_program_free(f.program);
}

// What is queued is run before the client is gone.
static void test_closing_waits(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  host_pending p = host_promise(f.client, 0, 4);
  PJRT_Buffer *args[] = { p.buffer, p.buffer };
  PJRT_Buffer *sum = NULL;
  HOST_OK(host_run(f.program, NULL, args, 2, &sum));
  host_fulfil(&p, 1);
  host_client_free(f.client);
  HOST_OK(host_ready(sum));
  host_check_floats(sum, 4, 2, 2);
  host_free(sum);
  host_free(p.buffer);
  host_program_free(f.program);
}

// ---- order, and threads ----

static atomic_int seen;

static void in_order(PJRT_Error *error, void *user)
{
  (void)host_take(error);
  if (atomic_fetch_add(&seen, 1) != (intptr_t)user) atomic_store(&seen, 1000);
}

static void test_order(void **state)
{
  (void)state;
  fixture f = setup(ADD);
  host_pending p = host_promise(f.client, 0, 4);
  PJRT_Buffer *one = host_floats(f.device, 4, 0);
  PJRT_Buffer *chain = p.buffer;
  atomic_store(&seen, 0);
  for (intptr_t i = 0; i < 20; i++) {
    PJRT_Buffer *args[] = { chain, one };
    PJRT_Buffer *next = NULL;
    HOST_OK(host_run(f.program, NULL, args, 2, &next));
    ARGS(ready, PJRT_Buffer_ReadyEvent, .buffer = next);
    HOST_OK(api->PJRT_Buffer_ReadyEvent(&ready));
    HOST_OK(CALL(PJRT_Event_OnReady, .event = ready.event, .callback = in_order,
                 .user_arg = (void *)i));
    HOST_OK(CALL(PJRT_Event_Destroy, .event = ready.event));
    host_free(chain);
    chain = next;
  }
  assert_int_equal(atomic_load(&seen), 0);
  host_fulfil(&p, 1);
  host_check_floats(chain, 4, 1, 21);
  host_free(chain);
  host_free(one);
  teardown(&f);
  assert_int_equal(atomic_load(&seen), 20);
}

static void *add_often(void *user)
{
  fixture *f = user;
  PJRT_Buffer *one = host_floats(f->device, 4, 1);
  PJRT_Buffer *sum = host_floats(f->device, 4, 1);
  for (int i = 0; i < 50; i++) {
    PJRT_Buffer *args[] = { sum, one };
    PJRT_Buffer *out[2];
    HOST_OK(host_run(f->program, NULL, args, 2, out));
    host_free(sum);
    host_free(out[1]);
    sum = out[0];
  }
  host_check_floats(sum, 4, 51, 51);
  host_free(sum);
  host_free(one);
  return NULL;
}

static void test_threads(void **state)
{
  (void)state;
  fixture f = setup(TWO);
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, add_often, &f), 0);
  }
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  teardown(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_add),
    HOST_TEST(test_complete_events),
    HOST_TEST(test_wrong_arguments),
    HOST_TEST(test_donation),
    HOST_TEST(test_not_donated),
    HOST_TEST(test_donation_of_shared_memory),
    HOST_TEST(test_pending_argument),
    HOST_TEST(test_failed_argument),
    HOST_TEST(test_closed_client),
    HOST_TEST(test_closing_waits),
    HOST_TEST(test_order),
    HOST_TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
