// meet: processes that know nothing of each other but a key-value store form a
// world. What they put there is read with care.
#include <ctype.h>
#include <signal.h>
#include <unistd.h>

#include "runs.h"

// ---- worlds ----

static world world_that_meets(int processes, int devices)
{
  world w = world_new(processes, devices, all_bytes(processes * devices));
  w.store = store_new();
  return w;
}

static void end_world(world *w)
{
  world_join(w);
  store_free(w->store);
  world_free(w);
}

static void run_all_and_check(peer *self)
{
  ARGS(all, PJRT_Client_Devices, .client = self->client);
  HOST_OK(api->PJRT_Client_Devices(&all));
  assert_int_equal(all.num_devices,
                   self->world->processes * self->world->devices);
  run_all(self);
  assert_int_equal(store_values_live(), 0);
}

static void check_world(int processes, int devices)
{
  world w = world_that_meets(processes, devices);
  world_start(&w, run_all_and_check, NULL);
  world_join(&w);
  compare_with_one(&w);
  store_free(w.store);
  world_free(&w);
}

static void test_two_by_two(void **state)
{
  (void)state;
  check_world(2, 2);
}

static void test_three(void **state)
{
  (void)state;
  check_world(3, 1);
}

// Later clients of the same processes meet under other keys.
static void meet_again(peer *self)
{
  static const program p = { "sum", 0, REDUCE(ALL, "add", "f32", "1000xf32"),
                             SAME("1000xf32") };
  unsigned char out[4000], again[4000];
  run_program(&p, 2, self->client, self->process, 1, out);
  PJRT_Client *second = world_client(self->world, self->process);
  run_program(&p, 2, second, self->process, 1, again);
  assert_memory_equal(out, again, sizeof out);
  host_client_free(second);
}

static void test_again(void **state)
{
  (void)state;
  world w = world_that_meets(2, 1);
  world_start(&w, meet_again, NULL);
  end_world(&w);
}

// ---- what goes wrong with a process ----

static PJRT_Error *sum_once(PJRT_LoadedExecutable *e, PJRT_Buffer *in)
{
  PJRT_Buffer *out = NULL, **outs[] = { &out };
  PJRT_Buffer *const *args[] = { &in };
  HOST_OK(world_run(e, 1, 1, args, outs));
  PJRT_Error *error = host_ready(out);
  host_free(out);
  return error;
}

// Each process has a program of its own length.
static void sum_other(peer *self)
{
  static const program programs_of[2] = {
    { "short", 0, REDUCE(ALL, "add", "f32", "4xf32"), SAME("4xf32") },
    { "long", 0, REDUCE(ALL, "add", "f32", "6xf32"), SAME("6xf32") },
  };
  const program *p = &programs_of[self->process];
  char text[4096];
  write_text(p, 2, text);
  PJRT_LoadedExecutable *e = world_program(self->client, text, 2);
  PJRT_Buffer *in = make_argument(host_device(self->client, 0), self->process,
                                  0, p->types[0]);
  HOST_FAILS(9, sum_once(e, in),
             "replica 0 has all_reduce of f32[4], replica 1 has all_reduce of "
             "f32[6]");
  host_free(in);
  host_program_free(e);
}

static void test_different_programs(void **state)
{
  (void)state;
  world w = world_that_meets(2, 1);
  world_start(&w, sum_other, NULL);
  end_world(&w);
}

// Nobody tells the others of the end of process 1.
static void sum_until_lost(peer *self)
{
  static const program p = { "sum", 0, REDUCE(ALL, "add", "f32", "250000xf32"),
                             SAME("250000xf32") };
  char text[4096];
  write_text(&p, 3, text);
  PJRT_LoadedExecutable *e = world_program(self->client, text, 3);
  PJRT_Buffer *in =
      make_argument(host_device(self->client, 0), self->process, 0, p.types[0]);
  for (int i = 0; i < 5; i++) HOST_OK(sum_once(e, in));
  if (self->process == 1) raise(SIGKILL);
  HOST_FAILS(10, sum_once(e, in), "all_reduce");
  char wanted[64];
  snprintf(wanted, sizeof wanted, "process 1 (pid %d), which has device 1, ",
           ((const int *)self->world->shared)[0]);
  assert_non_null(strstr(host_words(), wanted));
  host_free(in);
  host_program_free(e);
}

static void write_pid_and_sum(peer *self)
{
  if (self->process == 1) ((int *)self->world->shared)[0] = getpid();
  sum_until_lost(self);
}

static void test_killed(void **state)
{
  (void)state;
  world w = world_that_meets(3, 1);
  world_start(&w, write_pid_and_sum, NULL);
  world_lost(&w, 1, SIGKILL);
  end_world(&w);
}

// A process that has done its part may end, whatever the others still do.
static void end_early(peer *self)
{
  static const program sum = { "sum", 0, REDUCE(ALL, "add", "f32", "4xf32"),
                               SAME("4xf32") };
  unsigned char out[16];
  run_program(&sum, 3, self->client, self->process, 1, out);
  if (self->process == 2) return;
  if (self->process == 0) usleep(300000);
  run_program(&sum, 2, self->client, self->process, 1, out);
}

static void test_early_end(void **state)
{
  (void)state;
  world w = world_that_meets(3, 1);
  world_start(&w, end_early, NULL);
  end_world(&w);
}

// ---- what others put ----

// A store for one process: it answers for all others.
typedef struct liar {
  char own[256];       // the record of the process itself
  const char *record;  // of the others; NULL: they do not arrive
  size_t record_size;  // 0: strlen(record)
  const char *odd;     // of process 1, where it differs; NULL: it does not
  const char *answer;  // to all other keys
  const char *made;    // to the last one, where it differs; NULL: it does not
  int process;
  bool refuses;
  bool gave_up;  // the process
  int asked;     // the last process that a key without a record was asked of
} liar;

static PJRT_Error *keep_own(PJRT_KeyValuePutCallback_Args *args)
{
  liar *l = args->user_arg;
  if (l->refuses) {
    return store_refuse(args->callback_error, PJRT_Error_Code_ALREADY_EXISTS,
                        "no room");
  }
  if (args->value_size == 2 && memcmp(args->value, "no", 2) == 0) {
    l->gave_up = true;
  } else if (memmem(args->key, args->key_size, "/process/", 9) != NULL) {
    snprintf(l->own, sizeof l->own, "%.*s", (int)args->value_size, args->value);
  }
  return NULL;
}

// "$D", "$P", "$H" and "$B" stand for the parts of the own record.
static void write_record(const liar *l, const char *from, char *out,
                         size_t room)
{
  char parts[4][64] = { "" };
  assert_int_equal(sscanf(l->own, "%63s %63s %63s %63s", parts[0], parts[1],
                          parts[2], parts[3]),
                   4);
  size_t n = 0;
  for (const char *c = from; *c != '\0' && n + 64 < room; c++) {
    const char *names = "DPHB",
               *which = c[0] == '$' ? strchr(names, c[1]) : NULL;
    if (which == NULL) {
      out[n++] = *c;
      continue;
    }
    n += (size_t)snprintf(out + n, room - n, "%s", parts[which - names]);
    c++;
  }
  out[n] = '\0';
}

static PJRT_Error *tell_lies(PJRT_KeyValueGetCallback_Args *args)
{
  liar *l = args->user_arg;
  char text[512];
  const int of = args->key[args->key_size - 1] - '0';
  const bool record = memmem(args->key, args->key_size, "/process/", 9) != NULL;
  assert_true(isdigit((unsigned char)args->key[args->key_size - 1]));
  assert_true(args->timeout_in_ms > 0 && args->timeout_in_ms <= 7000);
  if (record && of == l->process)
    return store_answer(args, l->own, strlen(l->own));
  if (!record) l->asked = of;
  const bool made = memmem(args->key, args->key_size, "/made/", 6) != NULL;
  const char *from = made && l->made != NULL     ? l->made
                     : !record                   ? l->answer
                     : of == 1 && l->odd != NULL ? l->odd
                                                 : l->record;
  if (from == NULL) {
    return store_refuse(args->callback_error, PJRT_Error_Code_DEADLINE_EXCEEDED,
                        "nothing came");
  }
  if (record && l->record_size != 0)
    return store_answer(args, from, l->record_size);
  write_record(l, from, text, sizeof text);
  return store_answer(args, text, strlen(text));
}

static liar check_lie(liar l, int processes, int code, const char *words)
{
  PJRT_Client *client = NULL;
  const store_callbacks by = { tell_lies, keep_own, &l };
  HOST_FAILS(code, store_client(&by, l.process, processes, 1, &client), words);
  assert_null(client);
  assert_int_equal(store_values_live(), 0);
  assert_true(l.gave_up || l.refuses);
  return l;
}

static const char *const same = "$D $P $H $B";
static const char *const elsewhere =
    "$D $P 00000000000000000000000000000000 $B";

static void test_records(void **state)
{
  (void)state;
  static const char zeros[300] = { 0 };
  static const char *const damaged[] = {
    "",
    "1",
    "x 5 $H $B",
    "$D -5 $H $B",
    "$D 0 $H $B",
    "$D $P $H",
    "$D $P $H $Bf",
    "$D $P $H $B and more",
    "$D 99999999999999999999 $H $B",
    "\033[2J 1 1 1",
  };
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "7", 1);
  check_lie((liar){ .record = NULL }, 2, 4, "process 1 of 2 was awaited");
  check_lie((liar){ .record = NULL }, 2, 4, "at most 7 s");
  check_lie((liar){ .refuses = true }, 2, 6, "no room");
  check_lie((liar){ .record = "no" }, 2, 10, "process 1 could not make its");
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    check_lie((liar){ .record = damaged[i] }, 2, 15, "does not understand");
  }
  check_lie((liar){ .record = zeros, .record_size = 20 }, 2, 15, "understand");
  check_lie((liar){ .record = zeros, .record_size = 300 }, 2, 15,
            "has 300 bytes");
  check_lie((liar){ .record = "7 $P $H $B" }, 2, 3,
            "process 1 has 7 devices, process 0 has 1");
  check_lie((liar){ .record = "$D $P $H 00000000000000000000000000000000" }, 2,
            9, "processes 1 and 0 have different builds");
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
}

static void test_hosts(void **state)
{
  (void)state;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "7", 1);
  check_lie((liar){ .record = same, .odd = elsewhere }, 3, 3,
            "processes 0 and 2 are of one host, process 1 between them");
  // One process on each of two hosts, and two after one: by MPI.
  check_lie((liar){ .record = elsewhere }, 2, 9, "none of PMI_FD, PMI_PORT");
  check_lie((liar){ .record = elsewhere, .answer = "yes" }, 3, 9, "PMI_PORT");
  // The second process of the second host asks the first one.
  const liar l = check_lie(
      (liar){ .process = 2, .record = elsewhere, .odd = same, .answer = "x" },
      3, 15, "which process 1 makes");
  assert_int_equal(l.asked, 1);
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
}

static void test_segment(void **state)
{
  (void)state;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "7", 1);
  check_lie((liar){ .record = same, .answer = "no" }, 2, 10,
            "process 1 could not make its client");
  check_lie((liar){ .record = same, .answer = "yes", .made = "no" }, 2, 10,
            "could not make its client");
  check_lie((liar){ .record = same }, 2, 4, "process 1 of 2 was awaited");
  check_lie((liar){ .process = 1, .record = same, .answer = "no" }, 2, 10,
            "process 0 could not make its client");
  check_lie((liar){ .process = 1, .record = same, .answer = "-1" }, 2, 15,
            "'-1' is no number of a descriptor");
  check_lie((liar){ .process = 1, .record = same, .answer = "12abc" }, 2, 15,
            "'12abc' is no number of a descriptor");
  check_lie((liar){ .process = 1, .record = same, .answer = "9999" }, 2, 9,
            "cannot open '/proc/");
  check_lie(
      (liar){ .process = 1, .record = "$D 999999999 $H $B", .answer = "0" }, 2,
      9, "cannot open '/proc/999999999/fd/0'");
  int pipe_of[2];
  char number[16];
  assert_int_equal(pipe(pipe_of), 0);
  snprintf(number, sizeof number, "%d", pipe_of[0]);
  check_lie((liar){ .process = 1, .record = same, .answer = number }, 2, 3,
            "is no shared segment");
  close(pipe_of[0]);
  close(pipe_of[1]);
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_two_by_two), HOST_TEST(test_three),
    HOST_TEST(test_again),      HOST_TEST(test_different_programs),
    HOST_TEST(test_killed),     HOST_TEST(test_early_end),
    HOST_TEST(test_records),    HOST_TEST(test_hosts),
    HOST_TEST(test_segment)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
