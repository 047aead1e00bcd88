// killed: a training run of the convolutional network that is killed at any
// moment and goes on from its last checkpoint ends with the same file, bit for
// bit, as one that nobody disturbed. On 1 rank, on 4 that are threads and on 4
// that are processes.
#include <signal.h>
#include <sys/wait.h>

#include "base/file.h"
#include "calx/autograd.h"
#include "calx/data.h"
#include "calx/io.h"
#include "ranks.h"
#include "support/long.h"
#include "support/mnist_net.h"
#include "support/wait.h"

enum { SAMPLES = 96, BATCH = 4, STEPS = 20, EVERY = 2, PATH = 96 };

static char folder[64];
static int says;  // each step of the first rank is a byte here

// ---- the run ----------------------------------------------------------------

static calx_status *get_sample(void *user, int64_t index, void *const *fields)
{
  (void)user;
  float *x = fields[0];
  for (int i = 0; i < 28 * 28; i++) {
    x[i] = (float)((index * 31 + i * (index % 7 + 3)) % 97) / 97 - 0.5f;
  }
  *(int64_t *)fields[1] = index % 10;
  return NULL;
}

typedef struct training {
  mnist_net net;
  calx_optimizer *opt;
  calx_dataset *data;
  calx_sampler *sampler;
  calx_loader *loader;
} training;

static calx_status *begin(training *t)
{
  const calx_field fields[] = {
    { .name = "data", .dtype = CALX_F32, .rank = 3, .dims = { 1, 28, 28 } },
    { .name = "target", .dtype = CALX_I64 },
  };
  calx_manual_seed(11);
  CALX_TRY(mnist_net_make(&t->net, CALX_F32));
  t->opt = calx_sgd(t->net.root, .lr = 0.05, .momentum = 0.9);
  t->data = calx_dataset_new(SAMPLES, fields, 2, get_sample, NULL, NULL);
  t->sampler = calx_distributed_sampler(t->data, .seed = 3);
  t->loader = calx_loader_new(t->data, .batch_size = BATCH,
                              .sampler = t->sampler, .drop_last = true);
  return cx_status_copy(calx_optimizer_error(t->opt));
}

static void end(training *t)
{
  calx_loader_free(t->loader);
  calx_sampler_free(t->sampler);
  calx_dataset_free(t->data);
  calx_optimizer_free(t->opt);
  calx_module_free(t->net.root);
}

static calx_status *resume(training *t, const char *path)
{
  calx_checkpoint c = { .size = sizeof c,
                        .model = t->net.root,
                        .optimizer = t->opt };
  if (!cx_file_exists(path)) return NULL;
  CALX_TRY(calx_checkpoint_load(path, &c));
  calx_value_free(c.user);
  return calx_loader_load_state(t->loader, c.loader);
}

static calx_status *save(const training *t, const char *path)
{
  const calx_checkpoint c = { .size = sizeof c,
                              .model = t->net.root,
                              .optimizer = t->opt,
                              .loader = calx_loader_state(t->loader) };
  return calx_checkpoint_save(path, &c);
}

static calx_status *step(training *t)
{
  calx_batch b;
  while (!calx_loader_next(t->loader, &b)) {
    CALX_TRY(calx_scope_take_error());  // the end of an epoch
  }
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(t->opt);
  calx_tensor *y = calx_forward(t->net.root, b.data);
  calx_tensor *loss = calx_nll_loss(y, b.target);
  calx_backward(loss);
  calx_item(calx_dist_step(t->opt, loss));
  return calx_scope_end(scope);
}

static calx_status *steps(training *t, const char *path)
{
  for (int64_t n = calx_optimizer_steps(t->opt); n < STEPS; n++) {
    CALX_TRY(step(t));
    if ((n + 1) % EVERY == 0) CALX_TRY(save(t, path));
    bool first = calx_global_ordinal() == 0;
    RANK_CHECK(!first || write(says, ".", 1) == 1);
  }
  return NULL;
}

static calx_status *rank(int index, void *user)
{
  (void)index;
  training t = { .opt = NULL };
  calx_status *status = begin(&t);
  if (status == NULL) status = resume(&t, user);
  // Nobody saves before all have loaded.
  if (status == NULL) status = calx_rendezvous("loaded", NULL, 0, NULL, NULL);
  if (status == NULL) status = steps(&t, user);
  end(&t);
  return status;
}

// ---- runs that are killed ---------------------------------------------------

typedef struct job {
  pid_t pid;
  int heard;
} job;

static job start(int processes, int devices, char *path)
{
  int ends[2];
  job j;
  assert_int_equal(pipe(ends), 0);
  j.pid = fork();
  assert_true(j.pid >= 0);
  if (j.pid == 0) {
    char text[16];
    close(ends[0]);
    says = ends[1];
    setenv("CALX_DETERMINISTIC", "1", 1);
    snprintf(text, sizeof text, "%d", processes);
    setenv("CALX_PROCESSES", text, 1);
    set_devices(devices);
    calx_status *status = calx_launch(rank, path);
    if (status != NULL) calx_status_print(stderr, status);
    _exit(status == NULL ? 0 : 1);
  }
  close(ends[1]);
  j.heard = ends[0];
  return j;
}

// Until it has done so many steps more; false: it has come to its end.
static bool hear(const job *j, int n)
{
  char byte;
  for (; n > 0; n--) {
    if (read(j->heard, &byte, 1) != 1) return false;
  }
  return true;
}

// All of its processes are gone when the last one's end of the pipe is.
static int end_job(job *j)
{
  int how;
  while (hear(j, 1)) continue;
  close(j->heard);
  assert_int_equal(waitpid(j->pid, &how, 0), j->pid);
  return how;
}

static char *path_in(const char *name, char out[PATH])
{
  snprintf(out, PATH, "%s/%s", folder, name);
  mkdir(out, 0700);
  strcat(out, "/run.pt");
  return out;
}

// Kills it `kills` times, at steps and moments that the seed decides; how often
// it was not at its end by then.
static int kill_and_resume(int processes, int devices, int kills, char *path,
                           uint64_t *seed)
{
  int killed = 0;
  for (int i = 0; i < kills; i++) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    job j = start(processes, devices, path);
    hear(&j, (int)(*seed % 5));
    usleep((useconds_t)(*seed >> 8) % 8000);
    kill(j.pid, SIGKILL);
    int how = end_job(&j);
    killed += WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    if (!WIFSIGNALED(how)) break;
  }
  job j = start(processes, devices, path);
  assert_int_equal(end_job(&j), 0);
  return killed;
}

// A run that comes to its end before it is killed counts for nothing.
static void check_world(int processes, int devices)
{
  int wanted = (int)long_or(30, 3), killed = 0;
  uint64_t seed = 88172645463325252u + (uint64_t)(processes * 10 + devices);
  char whole[PATH], cut[PATH], *one, *two;
  size_t n, m;
  job j = start(processes, devices, path_in("whole", whole));
  assert_int_equal(end_job(&j), 0);
  CHECK_STATUS_OK(cx_file_read(whole, 0, &one, &n));
  assert_int_equal(unlink(whole), 0);
  for (int i = 0; killed < wanted && i < 10 * wanted; i++) {
    killed +=
        kill_and_resume(processes, devices, 4, path_in("cut", cut), &seed);
    CHECK_STATUS_OK(cx_file_read(cut, 0, &two, &m));
    assert_int_equal(m, n);
    assert_memory_equal(one, two, n);
    cx_free(two);
    assert_int_equal(unlink(cut), 0);
  }
  assert_true(killed >= wanted);
  print_message("%d kills\n", killed);
  cx_free(one);
}

static void test_one_rank(void **state)
{
  (void)state;
  check_world(1, 1);
}

static void test_four_threads(void **state)
{
  (void)state;
  check_world(1, 4);
}

static void test_four_processes(void **state)
{
  (void)state;
  check_world(4, 1);
}

static int begin_folder(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/calx_killed_XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int end_folder(void **state)
{
  (void)state;
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_rank),
    cmocka_unit_test(test_four_threads),
    cmocka_unit_test(test_four_processes),
  };
  return cmocka_run_group_tests(tests, begin_folder, end_folder);
}
