// peer: one process of a world of several hosts, for whoever starts such: by
// torchrun's variables, mpirun or srun.
//
//   peer all      runs every collective and compares with one process
//   peer small    one collective, and the end
//   peer loop N   sums until one fails, and says why: exit status 3. After five
//                 rounds process N is lost
//
// PEER_APART=1: each process is a host of its own. PEER_MPI: the shim of an MPI
// that the process itself begins and ends, as a program does that uses MPI.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "runs.h"
#include "world/world.h"

static world here_world(void)
{
  const cx_world_info *here = cx_world_self();
  world w = { .processes = here->processes,
              .devices = 1,
              .hosts = here->hosts,
              .apart = getenv("PEER_APART") != NULL };
  assert_true(w.processes <= WORLD_MOST);
  if (w.apart) w.hosts = w.processes;
  for (int i = 0; i < w.hosts; i++) w.per_host[i] = w.processes / w.hosts;
  return w;
}

static void compare_all(const world *w, PJRT_Client *client, int process)
{
  const int n = w->processes;
  unsigned char *found = malloc(all_bytes(n) + 1);
  unsigned char *wanted = malloc(all_bytes(n) + 1);
  PJRT_Client *alone = host_client(n);
  int ran = 0;
  runs_exact = true;
  for (int i = 0; i < n_programs; i++) {
    const program *p = &programs[i];
    if (!fits(p, n) || strcmp(p->name, "any region") == 0) continue;
    const size_t bytes = result_bytes(p);
    run_program(p, n, client, process, 1, found);
    run_program(p, n, alone, 0, n, wanted);
    if (memcmp(wanted + (size_t)process * bytes, found, bytes) != 0) {
      fail_msg("%s: other values than in one process", p->name);
    }
    ran++;
  }
  printf("process %d: %d programs\n", process, ran);
  host_client_free(alone);
  free(found);
  free(wanted);
}

static const program sum = { "sum",
                             0,
                             "%r = \"stablehlo.cross-replica-sum\"(%0) "
                             "<{replica_groups = dense<[%A]> : "
                             "tensor<1x%Nxi64>}> : (tensor<300000xf32>) -> "
                             "tensor<300000xf32>\n"
                             "return %r : tensor<300000xf32>",
                             { "300000xf32" },
                             { "300000xf32" } };

static int loop(const world *w, PJRT_Client *client, int process, int lost)
{
  char text[8192];
  write_text(&sum, w->processes, text);
  PJRT_LoadedExecutable *e = world_program(client, text, w->processes);
  PJRT_Device *device = host_device(client, 0);
  PJRT_Buffer *in = make_argument(device, process, 0, sum.types[0]);
  PJRT_Buffer *const *args[] = { &in };
  int code = 0;
  for (int i = 0; code == 0; i++) {
    PJRT_Buffer *out = NULL, **outs[] = { &out };
    if (i == 5) {
      printf("process %d: five rounds\n", process);
      fflush(stdout);
      if (process == lost) raise(SIGKILL);
    }
    HOST_OK(world_run(e, 1, 1, args, outs));
    code = host_take(host_ready(out));
    if (code != 0) printf("process %d: %s\n", process, host_words());
    host_free(out);
  }
  host_free(in);
  host_program_free(e);
  return 3;
}

// ---- MPI of the program ----

static void *find(void *library, const char *name)
{
  void *found = dlsym(library, name);
  if (found == NULL) fail_msg("%s", dlerror());
  return found;
}

static void *begin_mpi(const char *shim)
{
  enum { MULTIPLE = 3 };
  int level = 0;
  int (*init)(int *, char ***, int, int *) = NULL;
  if (shim == NULL) return NULL;
  void *library = dlopen(shim, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) fail_msg("%s", dlerror());
  void *found = find(library, "MPI_Init_thread");
  memcpy(&init, &found, sizeof init);
  assert_int_equal(init(NULL, NULL, MULTIPLE, &level), 0);
  assert_int_equal(level, MULTIPLE);
  return library;
}

static void end_mpi(void *library)
{
  int (*finalize)(void) = NULL;
  if (library == NULL) return;
  void *found = find(library, "MPI_Finalize");
  memcpy(&finalize, &found, sizeof finalize);
  assert_int_equal(finalize(), 0);
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "all";
  setenv("CMOCKA_TEST_ABORT", "1", 1);
  alarm(60);
  void *mpi = begin_mpi(getenv("PEER_MPI"));
  host_begin(NULL);
  calx_status *status = cx_world_join();
  if (status != NULL) fail_msg("%s", calx_status_message(status));
  const world w = here_world();
  const int process = cx_world_self()->process;
  PJRT_Client *client = world_client(&w, process);
  int end = 0;
  if (strcmp(what, "all") == 0) compare_all(&w, client, process);
  if (strcmp(what, "small") == 0) {
    static unsigned char out[1200000];
    run_program(&sum, w.processes, client, process, 1, out);
  }
  if (strcmp(what, "loop") == 0) {
    end = loop(&w, client, process, argc > 2 ? atoi(argv[2]) : -1);
  }
  host_client_free(client);
  cx_world_leave(NULL);
  end_mpi(mpi);
  return end;
}
