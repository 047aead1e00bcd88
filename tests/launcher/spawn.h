// tests/launcher/spawn: what the tests that start processes share.
#ifndef CX_TESTS_LAUNCHER_SPAWN_H
#define CX_TESTS_LAUNCHER_SPAWN_H

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../world/check.h"
#include "base/thread.h"
#include "launcher/spawn.h"

enum { MOST_RANKS = 16 };

// Seen by a launch and all its children.
typedef struct notes {
  _Atomic int count;
  _Atomic int pids[MOST_RANKS], seen[MOST_RANKS];
  char store[128];
} notes;

static notes *shared;

static inline int own_number(const char *name)
{
  const char *text = getenv(name);
  return text != NULL ? atoi(text) : -1;
}

static inline int own_rank(void)
{
  return own_number("CALX_RANK");
}

static inline void pause_ms(int ms)
{
  struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
  nanosleep(&t, NULL);
}

// Whether it runs: a zombie has ended.
static inline bool is_alive(int pid)
{
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  size_t n = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[n] = '\0';
  const char *end = strrchr(line, ')');
  return end != NULL && end[1] != '\0' && end[2] != 'Z' && end[2] != 'X';
}

// All within this time, which is for a machine that has no core to spare.
enum { PATIENCE_MS = 60000 };

static inline void wait_until(bool (*holds)(void), const char *what)
{
  int64_t until = cx_now_ns() + (int64_t)PATIENCE_MS * 1000000;
  while (!holds()) {
    if (cx_now_ns() > until) fail_msg("in vain: %s", what);
    pause_ms(5);
  }
}

// In a child, which ends with 99 where that is too long.
#define WAIT_WHILE(condition)                                             \
  do {                                                                    \
    int64_t until_ = cx_now_ns() + (int64_t)PATIENCE_MS * 1000000;        \
    while (condition) {                                                   \
      if (cx_now_ns() > until_) {                                         \
        fprintf(stderr, "line %d: too long: %s\n", __LINE__, #condition); \
        _exit(99);                                                        \
      }                                                                   \
      pause_ms(1);                                                        \
    }                                                                     \
  } while (0)

static inline int open_files(void)
{
  int n = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) n++;
  closedir(folder);
  return n;
}

// No process, no open file, no socket.
static inline void check_nothing_left(int files_before)
{
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
  assert_int_equal(open_files(), files_before);
  for (int i = 0; i < MOST_RANKS; i++) {
    if (shared->pids[i] != 0) assert_false(is_alive(shared->pids[i]));
  }
  const char *name = strstr(shared->store, "://");
  if (name == NULL) return;
  char line[512];
  FILE *sockets = fopen("/proc/net/unix", "r");
  while (sockets != NULL && fgets(line, sizeof line, sockets) != NULL) {
    if (strstr(line, name + 3) != NULL) fail_msg("a socket is left: %s", line);
  }
  if (sockets != NULL) fclose(sockets);
}

static inline int begin_notes(void **state)
{
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return shared == MAP_FAILED ? -1 : check_alone(state);
}

static inline int end_notes(void **state)
{
  munmap(shared, sizeof *shared);
  return check_end(state);
}

#define SPAWN_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin_notes, end_notes)

// A child reports that it has started.
static inline void note_self(void)
{
  int rank = own_rank();
  shared->pids[rank] = getpid();
  const char *store = getenv("CALX_STORE");
  if (rank == 0 && store != NULL) {
    snprintf(shared->store, sizeof shared->store, "%s", store);
  }
  shared->count++;
}

// … and waits until all are.
static inline void note_and_meet(void)
{
  note_self();
  int world = own_number("CALX_WORLD");
  WAIT_WHILE(shared->count < world);
}

#endif
