// A run of the trainer that is killed at any moment and goes on from its last
// checkpoint ends with the same weights, bit for bit, as one that nobody
// disturbed. Convolutions are chosen by measuring: each process compiles anew,
// and the checkpoint has the choices.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "calx/calx.h"
#include "support/long.h"
#include "support/mnist_net.h"
#include "support/support.h"

enum { SAMPLES = 96, BATCH = 4, EPOCHS = 4, EVERY = 2, PATH = 128 };

static char folder[32];
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

static calx_module *model(calx_trainer *t, void *self)
{
  (void)t;
  mnist_net *net = self;
  calx_status_free(mnist_net_make(net, CALX_F32));
  return net->root;
}

static void optimizers(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(
      t, calx_sgd(((mnist_net *)self)->root, .lr = 0.05, .momentum = 0.9));
}

static calx_tensor *training_step(calx_trainer *t, void *self,
                                  const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  calx_tensor *y = calx_forward(((mnist_net *)self)->root, batch->data);
  return calx_nll_loss(y, batch->target);
}

typedef struct paths {
  char last[PATH], first[PATH], end[PATH];
} paths;

static void save(calx_trainer *t, void *self, const calx_batch *batch,
                 int64_t i)
{
  (void)self, (void)batch, (void)i;
  const paths *p = calx_trainer_user(t);
  const int64_t step = calx_trainer_global_step(t);
  if (step % EVERY == 0) {
    CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, p->last));
  }
  if (step == EVERY) {
    CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, p->first));
  }
  if (calx_trainer_is_global_zero(t)) {
    assert_int_equal(write(says, ".", 1), 1);
  }
}

static calx_status *train(paths *p)
{
  static const calx_field fields[] = {
    { .name = "data", .dtype = CALX_F32, .rank = 3, .dims = { 1, 28, 28 } },
    { .name = "target", .dtype = CALX_I64 },
  };
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(mnist_net), .user = p,
                            .configure_model = model,
                            .configure_optimizers = optimizers,
                            .training_step = training_step,
                            .hooks = { .on_train_batch_end = save });
  calx_dataset *data =
      calx_dataset_new(SAMPLES, fields, 2, get_sample, NULL, NULL);
  calx_loader *loader = calx_loader_new(data, .batch_size = BATCH,
                                        .shuffle = true, .drop_last = true);
  calx_trainer *t =
      calx_trainer_new(.max_epochs = EPOCHS, .seed = 11, .barebones = true);
  calx_status *status =
      calx_trainer_fit(t, &m, .train_dataloader = loader,
                       .ckpt_path = cx_file_exists(p->last) ? p->last : NULL);
  if (status == NULL) {
    status = calx_trainer_save_checkpoint(t, p->end, .weights_only = true);
  }
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

// ---- runs that are killed ---------------------------------------------------

typedef struct job {
  pid_t pid;
  int heard;
} job;

// With an empty folder of compiled programs.
static job start(const char *devices, paths *p)
{
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  job j = { .pid = fork(), .heard = ends[0] };
  if (j.pid == 0) {
    char cache[PATH + 16];
    close(ends[0]);
    says = ends[1];
    snprintf(cache, sizeof cache, "%s/cache-%d", folder, getpid());
    setenv("CALX_CACHE_DIR", cache, 1);
    setenv("CPU_NUM_DEVICES", devices, 1);
    calx_status *status = train(p);
    calx_status_print(stderr, status);
    _exit(status != NULL);
  }
  close(ends[1]);
  return j;
}

static bool hear(const job *j, int n)
{
  char byte;
  for (; n > 0; n--) {
    if (read(j->heard, &byte, 1) != 1) return false;
  }
  return true;
}

static int end_job(const job *j)
{
  int how;
  while (hear(j, 1)) continue;
  close(j->heard);
  assert_int_equal(waitpid(j->pid, &how, 0), j->pid);
  return how;
}

static void make_paths(const char *name, paths *out)
{
  char place[PATH - 32];
  snprintf(place, sizeof place, "%s/%s", folder, name);
  mkdir(place, 0700);
  snprintf(out->last, PATH, "%s/last.ckpt", place);
  snprintf(out->first, PATH, "%s/first.ckpt", place);
  snprintf(out->end, PATH, "%s/end.safetensors", place);
}

static void copy_file(const char *from, const char *to)
{
  char *data;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(from, 0, &data, &size));
  CHECK_STATUS_OK(cx_file_write(to, data, size));
  cx_free(data);
}

static void check_equal(const char *a, const char *b)
{
  char *one, *two;
  size_t n, m;
  CHECK_STATUS_OK(cx_file_read(a, 0, &one, &n));
  CHECK_STATUS_OK(cx_file_read(b, 0, &two, &m));
  assert_int_equal(n, m);
  assert_memory_equal(one, two, n);
  cx_free(one);
  cx_free(two);
}

static uint64_t random_number(void)
{
  static uint64_t seed = 88172645463325252u;
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

// How often it was killed before its end.
static int kill_and_resume(const char *devices, int kills, paths *p)
{
  int killed = 0;
  for (int i = 0; i < kills; i++) {
    const job j = start(devices, p);
    hear(&j, (int)(random_number() % 40));
    usleep((useconds_t)(random_number() >> 8) % 20000);
    kill(j.pid, SIGKILL);
    const int how = end_job(&j);
    if (!WIFSIGNALED(how)) break;
    killed++;
  }
  const job j = start(devices, p);
  assert_int_equal(end_job(&j), 0);
  return killed;
}

static void check_world(const char *devices)
{
  const int wanted = (int)long_or(100, 4);
  paths whole, cut;
  make_paths("whole", &whole);
  make_paths("cut", &cut);
  const job j = start(devices, &whole);
  assert_int_equal(end_job(&j), 0);
  int killed = 0;
  for (int i = 0; killed < wanted && i < 10 * wanted; i++) {
    copy_file(whole.first, cut.last);
    killed += kill_and_resume(devices, 4, &cut);
    check_equal(whole.end, cut.end);
  }
  assert_true(killed >= wanted);
  print_message("%d kills\n", killed);
  unlink(whole.last);
  unlink(cut.last);
}

static void test_one_rank(void **state)
{
  (void)state;
  check_world("1");
}

static void test_four_ranks(void **state)
{
  (void)state;
  check_world("4");
}

static int begin(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/calx-killed-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int end(void **state)
{
  (void)state;
  char command[PATH + 16];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_rank),
    cmocka_unit_test(test_four_ranks),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
