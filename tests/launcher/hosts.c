// Launches on several hosts, all of them this machine: by hand, one launcher
// each, and by cx_launcher_hosts_run() through stand-ins for ssh and for the
// launcher there.
#include "launcher/hosts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "../world/port.h"
#include "base/file.h"
#include "spawn.h"
#include "store/client.h"
#include "world/world.h"

// ---- by hand ----------------------------------------------------------------

enum { LIMIT_S = 60 };

static calx_status *nothing(void *user)
{
  (void)user;
  return NULL;
}

static calx_status *join(void *user)
{
  (void)user;
  setenv("CALX_JOIN_TIMEOUT_S", "0.2", 1);
  calx_status *status = cx_world_join();
  shared->seen[own_rank()] = (int)calx_status_code(status);
  return status;
}

static void note_line(void *user, const char *line)
{
  (void)user;
  snprintf(shared->store, sizeof shared->store, "%s", line);
}

// One of two hosts; its exit code is its launcher's.
static pid_t start_host(int host, int port, cx_launcher_fn *fn)
{
  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid != 0) return pid;
  char number[16];
  alarm(LIMIT_S);
  setenv("CALX_NNODES", "2", 1);
  setenv("CALX_NODE_RANK", host == 0 ? "0" : "1", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  snprintf(number, sizeof number, "%d", port);
  setenv("MASTER_PORT", number, 1);
  if (host == 0) calx_log_set(note_line, NULL);
  cx_launcher_exit end;
  calx_status_free(cx_launcher_spawn(
      &(cx_launcher_options){ .processes = 1, .fn = fn }, &end));
  _exit(end.code);
}

static int end_of(pid_t pid)
{
  int how;
  assert_int_equal(waitpid(pid, &how, 0), pid);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
}

static void check_logged(const char *words)
{
  if (strstr(shared->store, words) == NULL) {
    fail_msg("wanted '%s', logged '%s'", words, shared->store);
  }
}

// Host 0's program never joins, and host 1's fails because it waits for it. The
// failure's code is the one that the store uses for a key that is not there.
static void test_failure_ends_the_wait_for_others(void **state)
{
  (void)state;
  int port = free_port();
  pid_t first = start_host(0, port, nothing);
  pid_t second = start_host(1, port, join);
  assert_int_not_equal(end_of(second), 0);
  assert_int_equal(end_of(first), 0);
  assert_int_equal(shared->seen[1], CALX_DEADLINE_EXCEEDED);
  check_logged("did not arrive within");
}

static void test_host_that_never_joins(void **state)
{
  (void)state;
  setenv("CALX_JOIN_TIMEOUT_S", "0.2", 1);
  assert_int_equal(end_of(start_host(0, free_port(), nothing)), 0);
  unsetenv("CALX_JOIN_TIMEOUT_S");
  check_logged("host 1 of 2 has not joined within 0.2");
}

static void ignore_failure(void *user, calx_code code, const char *message)
{
  (void)user;
  (void)code;
  (void)message;
}

// The rank leaves; its launcher has joined, and dies without leaving.
static calx_status *end_with_the_launcher(void *user)
{
  (void)user;
  cx_store_client *client;
  cx_store_request r;
  cx_store_client_options options = { .url = getenv("CALX_STORE"),
                                      .process = 1,
                                      .processes = 2,
                                      .on_failure = ignore_failure };
  CALX_TRY(cx_store_client_open(&options, PATIENCE_MS, &client));
  CALX_TRY(cx_store_client_request(CX_STORE_OP_GET, "calx/joined/1", &r));
  r.wait_ms = PATIENCE_MS;
  CALX_TRY(cx_store_client_call(client, &r, NULL, NULL));
  cx_store_client_close(client, true);
  kill(getppid(), SIGKILL);
  return NULL;
}

static void test_launcher_that_dies(void **state)
{
  (void)state;
  int port = free_port();
  pid_t first = start_host(0, port, nothing);
  pid_t second = start_host(1, port, end_with_the_launcher);
  assert_int_equal(end_of(second), -SIGKILL);
  assert_int_equal(end_of(first), 0);
  check_logged("the launcher of host 1 was lost");
}

// ---- hosts by name ---------------------------------------------------------

// Runs a host's command on this host.
static const char here[] = "sh -c 'exec sh -c \"$1\"'";

// A launcher that records its arguments, and fails the first time.
static const char launcher[] =
    "#!/bin/sh\n"
    "read token attempt\n"
    "echo \"$CALX_NODE_RANK $attempt $MASTER_PORT $MASTER_ADDR\" >> told\n"
    "[ \"$attempt\" != 0 ] || exit 3\n";

static char folder[64], before[4096], path[96];

static int begin_folder(void **state)
{
  snprintf(folder, sizeof folder, "/tmp/calx_hosts_XXXXXX");
  if (mkdtemp(folder) == NULL || getcwd(before, sizeof before) == NULL ||
      chdir(folder) != 0) {
    return -1;
  }
  snprintf(path, sizeof path, "%s/calx", folder);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  ssize_t n = write(fd, launcher, sizeof launcher - 1);
  close(fd);
  return n == (ssize_t)sizeof launcher - 1 ? begin_notes(state) : -1;
}

static int end_folder(void **state)
{
  unlink("told");
  unlink(path);
  if (chdir(before) != 0 || rmdir(folder) != 0) return -1;
  return end_notes(state);
}

#define FOLDER_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin_folder, end_folder)

static int lines_said;
static char said[512];

static void keep_line(void *user, const char *line)
{
  (void)user;
  if (strstr(line, "started again") != NULL) return;
  snprintf(said, sizeof said, "%s", line);
  lines_said++;
}

static calx_status *run_hosts(const char *hosts, const char *connect)
{
  char *argv[] = { (char[]){ "true" }, NULL };
  cx_launcher_exit end;
  lines_said = 0;
  calx_log_set(keep_line, NULL);
  calx_status *status =
      cx_launcher_hosts_run(&(cx_launcher_hosts_options){ .hosts = hosts,
                                                          .connect = connect,
                                                          .calx = path,
                                                          .argv = argv,
                                                          .max_restarts = 1 },
                            &end);
  calx_log_set(NULL, NULL);
  return status;
}

static void test_what_a_host_is_told(void **state)
{
  (void)state;
  char *told;
  size_t size;
  setenv("MASTER_ADDR", "10.0.0.1", 1);
  setenv("MASTER_PORT", "1234", 1);
  setenv("CALX_PORT", "5678", 1);
  check_ok(run_hosts("a", here));
  check_ok(cx_file_read("told", 0, &told, &size));
  assert_string_equal(told, "0 0 5678 10.0.0.1\n0 1 5678 10.0.0.1\n");
  cx_free(told);
  setenv("CALX_PORT", "none", 1);
  check_fails(run_hosts("a", here), CALX_INVALID_ARGUMENT,
              "CALX_PORT is 'none'");
  unsetenv("CALX_PORT");
  setenv("MASTER_PORT", "0000000000000001234", 1);
  unlink("told");
  check_ok(run_hosts("a", here));
  check_ok(cx_file_read("told", 0, &told, &size));
  assert_string_equal(told, "0 0 1234 10.0.0.1\n0 1 1234 10.0.0.1\n");
  cx_free(told);
}

// The first host is this one, by a name of its loopback address.
static void test_own_name_is_no_loopback(void **state)
{
  (void)state;
  char *told, address[64] = "";
  size_t size;
  check_ok(run_hosts("me@localhost,192.0.2.1", here));
  check_ok(cx_file_read("told", 0, &told, &size));
  assert_int_equal(sscanf(told, "%*d %*d %*d %63s", address), 1);
  cx_free(told);
  bool loopback = strcmp(address, "localhost") == 0;
  assert_int_equal(lines_said, loopback ? 1 : 0);
  if (loopback) assert_non_null(strstr(said, "host localhost is this one"));
  assert_int_not_equal(strncmp(address, "127.", 4), 0);
  // If all hosts are this one, the loopback address is right.
  unlink("told");
  check_ok(run_hosts("localhost,127.0.0.1", here));
  check_ok(cx_file_read("told", 0, &told, &size));
  assert_non_null(strstr(told, "localhost"));
  cx_free(told);
  assert_int_equal(lines_said, 0);
}

static void test_no_command_to_connect(void **state)
{
  (void)state;
  check_fails(run_hosts("a", ""), CALX_INVALID_ARGUMENT, "is empty");
  check_fails(run_hosts("a", " \t"), CALX_INVALID_ARGUMENT, "is empty");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SPAWN_TEST(test_failure_ends_the_wait_for_others),
    SPAWN_TEST(test_host_that_never_joins),
    SPAWN_TEST(test_launcher_that_dies),
    FOLDER_TEST(test_what_a_host_is_told),
    FOLDER_TEST(test_own_name_is_no_loopback),
    FOLDER_TEST(test_no_command_to_connect),
  };
  return cmocka_run_group_tests_name("world: hosts", tests, NULL, NULL);
}
