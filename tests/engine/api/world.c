// world: see world.h. The children are made before anybody has threads.
#include "world.h"

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world/world.h"

enum { LIMIT_S = 100 };

world world_new(int processes, int devices, size_t shared_bytes)
{
  world w = { .processes = processes, .devices = devices };
  assert_null(cx_world_segment_create(processes, &w.segment));
  w.shared = mmap(NULL, shared_bytes + 1, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(w.shared != MAP_FAILED);
  return w;
}

static int free_port(void)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(s, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(s, (struct sockaddr *)&address, &size), 0);
  close(s);
  return ntohs(address.sin_port);
}

world world_of_hosts(int hosts, const int *per_host, int devices,
                     size_t shared_bytes)
{
  int n = 0;
  for (int i = 0; i < hosts; i++) n += per_host[i];
  world w = world_new(n, devices, shared_bytes);
  w.hosts = hosts;
  memcpy(w.per_host, per_host, (size_t)hosts * sizeof *per_host);
  w.port = free_port();
  return w;
}

typedef struct place {
  int host, first, n;  // the host, its first process and how many
} place;

static place place_of(const world *w, int process)
{
  place p = { 0, 0, w->hosts == 0 ? w->processes : w->per_host[0] };
  while (process >= p.first + p.n) {
    p.first += p.n;
    p.n = w->per_host[++p.host];
  }
  return p;
}

PJRT_Client *world_client(const world *w, int process)
{
  if (w->store != NULL) {
    PJRT_Client *client = NULL;
    const store_callbacks by = store_callbacks_of(w->store);
    HOST_OK(store_client(&by, process, w->processes, w->devices, &client));
    return client;
  }
  const place p = place_of(w, process);
  const struct {
    const char *name;
    int64_t value;
  } told[] = { { "cpu_device_count", w->devices },
               { "node_id", process },
               { "num_nodes", w->processes },
               { CALX_OPTION_HOST, p.host },
               { CALX_OPTION_HOSTS, w->hosts == 0 ? 1 : w->hosts },
               { CALX_OPTION_HOST_FIRST, p.first },
               { CALX_OPTION_HOST_PROCESSES, p.n },
               { CALX_OPTION_SEGMENT_FD,
                 w->hosts == 0 ? w->segment.fd : cx_world_segment_fd() } };
  enum { TOLD = sizeof told / sizeof *told };
  PJRT_NamedValue options[TOLD];
  for (int i = 0; i < TOLD; i++) {
    options[i] = (PJRT_NamedValue){
      CX_PJRT_ARGS(PJRT_NamedValue),     .name = told[i].name,
      .name_size = strlen(told[i].name), .type = PJRT_NamedValue_kInt64,
      .int64_value = told[i].value,      .value_size = 1
    };
  }
  ARGS(args, PJRT_Client_Create, .create_options = options,
       .num_options = w->apart ? TOLD - 1 : TOLD);
  HOST_OK(api->PJRT_Client_Create(&args));
  return args.client;
}

static void set_number(const char *name, int value)
{
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

// As torchrun's agents would tell it.
static void join_world(const world *w, int process)
{
  const place p = place_of(w, process);
  set_number("RANK", process);
  set_number("WORLD_SIZE", w->processes);
  set_number("LOCAL_RANK", process - p.first);
  set_number("LOCAL_WORLD_SIZE", p.n);
  set_number("GROUP_RANK", p.host);
  set_number("GROUP_WORLD_SIZE", w->hosts);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  set_number("MASTER_PORT", w->port);
  calx_status *status = cx_world_join();
  if (status != NULL) fail_msg("%s", calx_status_message(status));
}

// A check that fails must end the child, not go on with the next test.
static void live(const world *w, int process, peer_fn *fn, const void *user)
{
  setenv("CMOCKA_TEST_ABORT", "1", 1);
  alarm(LIMIT_S);
  if (w->hosts != 0) join_world(w, process);
  peer self = { w, process, world_client(w, process), user };
  fn(&self);
  host_client_free(self.client);
  cx_world_leave(NULL);
  _exit(host_end(NULL));
}

void world_start(world *w, peer_fn *fn, const void *user)
{
  for (int i = 0; i < w->processes; i++) {
    w->pids[i] = fork();
    assert_true(w->pids[i] >= 0);
    if (w->pids[i] == 0) live(w, i, fn, user);
  }
}

void world_lost(world *w, int process, int signal)
{
  int status = -1;
  assert_int_equal(waitpid(w->pids[process], &status, 0), w->pids[process]);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), signal);
  w->pids[process] = -1;
}

void world_join(world *w)
{
  int bad = 0;
  for (int i = 0; i < w->processes; i++) {
    int status = -1;
    if (w->pids[i] < 0) continue;
    assert_int_equal(waitpid(w->pids[i], &status, 0), w->pids[i]);
    if (status == 0) continue;
    print_error("process %d ended with status %x\n", i, (unsigned)status);
    bad++;
  }
  assert_int_equal(bad, 0);
}

void world_free(world *w)
{
  cx_world_segment_close(&w->segment);
}

PJRT_LoadedExecutable *world_program(PJRT_Client *client, const char *text,
                                     int replicas)
{
  PJRT_LoadedExecutable *e = NULL;
  host_options o = host_replicas(replicas, 1);
  HOST_OK(host_compile(client, text, o.bytes, o.size, &e));
  return e;
}

PJRT_Error *world_run(PJRT_LoadedExecutable *program, size_t n_devices,
                      size_t n_args, PJRT_Buffer *const *const *args,
                      PJRT_Buffer **const *outs)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  return CALL(PJRT_LoadedExecutable_Execute, .executable = program,
              .options = &options, .argument_lists = args,
              .num_devices = n_devices, .num_args = n_args,
              .output_lists = outs);
}
