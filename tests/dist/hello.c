// hello: one program for all launchers. Each rank says where it is and what it
// heard of the others; with --train it also trains, and all must end with the
// same weights. Public headers only, as any user's program.
//
//   hello [--train] [--fail HOW [RANK]]
//
// HOW: raise (a status), exit (with 7), kill, stop (until it is killed); it
// befalls RANK (else the last) while the others wait for it. Exit status: 0; 1
// after an error, which is on standard error.
#include <calx/calx.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 5, ROWS = 8, MOST_RANKS = 64 };

typedef struct asked {
  bool train;
  const char *how;
  int who;  // -1: the last one
} asked;

// ---- who is there -----------------------------------------------------------

static void add(const double *const *values, size_t ranks, size_t count,
                double *out)
{
  for (size_t k = 0; k < count; k++) {
    out[k] = 0;
    for (size_t r = 0; r < ranks; r++) out[k] += values[r][k];
  }
}

// In one write, so that the ranks' lines stay whole.
static void say(const char *line)
{
  size_t n = strlen(line);
  if (write(STDOUT_FILENO, line, n) != (ssize_t)n) abort();
}

static calx_status *greet(void)
{
  int n = calx_world_size();
  char mine[16], line[1024], *all[MOST_RANKS];
  double sum = calx_global_ordinal();
  if (n > MOST_RANKS) {
    return calx_status_new(CALX_OUT_OF_RANGE, "%d ranks, at most %d", n,
                           MOST_RANKS);
  }
  CALX_TRY(calx_mesh_reduce("ordinals", &sum, 1, add, &sum));
  snprintf(mine, sizeof mine, "%d.%d", calx_global_ordinal(),
           calx_host_index());
  CALX_TRY(calx_rendezvous("hello", mine, strlen(mine), all, NULL));
  int used = snprintf(
      line, sizeof line,
      "rank %d/%d local %d/%d process %d/%d host %d/%d on %s "
      "sum %g met",
      calx_global_ordinal(), n, calx_local_ordinal(), calx_local_world_size(),
      calx_process_index(), calx_process_count(), calx_host_index(),
      calx_host_count(), calx_device_name(calx_device_current()), sum);
  for (int i = 0; i < n; i++) {
    used += snprintf(line + used, sizeof line - (size_t)used, " %s", all[i]);
    calx_string_free(all[i]);
  }
  snprintf(line + used, sizeof line - (size_t)used, "\n");
  say(line);
  return NULL;
}

// ---- training ---------------------------------------------------------------

typedef struct net {
  calx_module *root, *in, *out;
} net;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  net *n = self;
  return calx_forward(n->out, calx_relu(calx_forward(n->in, x)));
}

// Other rows on each rank; target: their sum.
static void fill(float *rows, float *sums, int rank, int step)
{
  uint32_t random = (uint32_t)(rank * STEPS + step + 1);
  for (int i = 0; i < ROWS; i++) {
    sums[i] = 0;
    for (int k = 0; k < 4; k++) {
      random = random * 1664525u + 1013904223u;
      rows[4 * i + k] = (float)(random >> 8) / 16777216.0f;
      sums[i] += rows[4 * i + k];
    }
  }
}

static calx_status *take_step(net *n, calx_optimizer *opt, int step,
                              double *loss)
{
  float rows[ROWS * 4], sums[ROWS];
  fill(rows, sums, calx_global_ordinal(), step);
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *x = calx_tensor_from(rows, CALX_F32, CALX_SHAPE(ROWS, 4));
  calx_tensor *y = calx_tensor_from(sums, CALX_F32, CALX_SHAPE(ROWS, 1));
  calx_tensor *error = calx_sub(calx_forward(n->root, x), y);
  calx_tensor *here = calx_mean(calx_mul(error, error));
  calx_backward(here);
  *loss = calx_item(calx_dist_step(opt, here));
  return calx_scope_end(scope);
}

typedef struct digest {
  uint64_t hash;  // FNV-1a
  calx_status *status;
} digest;

static void digest_entry(void *user, const char *path, calx_entry_kind kind,
                         calx_tensor *t)
{
  digest *d = user;
  float values[256];
  size_t size = (size_t)calx_tensor_numel(t) * sizeof(float);
  (void)path;
  (void)kind;
  if (d->status == NULL) d->status = calx_tensor_read(t, values, size);
  if (d->status != NULL) return;
  const unsigned char *bytes = (const unsigned char *)values;
  for (size_t i = 0; i < size; i++) {
    d->hash = (d->hash ^ bytes[i]) * 0x100000001b3u;
  }
}

static calx_status *train_net(net *n)
{
  calx_optimizer *opt = calx_sgd(n->root, .lr = 0.05, .momentum = 0.9);
  calx_status *status = calx_optimizer_error(opt);
  double loss = 0;
  for (int i = 0; i < STEPS && status == NULL; i++) {
    status = take_step(n, opt, i, &loss);
  }
  digest d = { .hash = 0xcbf29ce484222325u };
  if (status == NULL) {
    calx_module_visit(n->root, digest_entry, &d);
    status = d.status;
  }
  calx_optimizer_free(opt);
  if (status != NULL) return status;
  char line[128];
  snprintf(line, sizeof line, "rank %d trained to %.9g, weights %016llx\n",
           calx_global_ordinal(), loss, (unsigned long long)d.hash);
  say(line);
  return NULL;
}

// What torchrun's own test of two ranks expects, for any number of them.
static calx_status *reduce(void)
{
  int n = calx_world_size(), rank = calx_global_ordinal();
  float mine[2] = { (float)(1 + 2 * rank), (float)(2 + 2 * rank) }, sum[2];
  float parts[2 * MOST_RANKS], part[2], all[MOST_RANKS];
  for (int i = 0; i < 2 * n; i++) parts[i] = (float)i;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *a = calx_all_reduce(
      calx_tensor_from(mine, CALX_F32, CALX_SHAPE(2)), CALX_REDUCE_SUM);
  calx_tensor *b = calx_reduce_scatter(
      calx_tensor_from(parts, CALX_F32, CALX_SHAPE(2 * n)), CALX_REDUCE_SUM, 0);
  float ordinal = (float)rank;
  calx_tensor *c =
      calx_all_gather(calx_tensor_from(&ordinal, CALX_F32, CALX_SHAPE(1)), 0);
  CALX_TRY(calx_tensor_read(a, sum, sizeof sum));
  CALX_TRY(calx_tensor_read(b, part, sizeof part));
  CALX_TRY(calx_tensor_read(c, all, (size_t)n * sizeof *all));
  CALX_TRY(calx_scope_end(scope));
  bool right = sum[0] == (float)(n * n) && sum[1] == (float)(n * n + n);
  right &= part[0] == (float)(2 * rank * n);
  right &= part[1] == (float)((2 * rank + 1) * n);
  for (int i = 0; i < n; i++) right &= all[i] == (float)i;
  if (right) return NULL;
  return calx_status_new(
      CALX_INTERNAL, "wrong: all_reduce %g %g, reduce_scatter %g %g",
      (double)sum[0], (double)sum[1], (double)part[0], (double)part[1]);
}

static calx_status *train(void)
{
  CALX_TRY(reduce());
  net n;
  calx_manual_seed(7);
  n.root = calx_module_new("Net", forward, &n);
  n.in = calx_nn_linear(n.root, "in", 4, 16);
  n.out = calx_nn_linear(n.root, "out", 16, 1);
  calx_status *status = calx_module_error(n.root);
  if (status == NULL) status = train_net(&n);
  calx_module_free(n.root);
  return status;
}

// ---- harm -------------------------------------------------------------------

static calx_status *come_to_harm(const char *how)
{
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "stop") == 0) raise(SIGSTOP);
  if (strcmp(how, "exit") == 0) _exit(7);
  return calx_status_new(CALX_DATA_LOSS, "batch 7 has no target");
}

static calx_status *rank(int index, void *user)
{
  const asked *a = user;
  CALX_TRY(greet());
  if (a->train) CALX_TRY(train());
  if (a->how == NULL) return NULL;
  int who = a->who >= 0 ? a->who : calx_world_size() - 1;
  if (index == who) CALX_TRY(come_to_harm(a->how));
  return calx_rendezvous("the end", NULL, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
  asked a = { .who = -1 };
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--train") == 0) {
      a.train = true;
    } else if (strcmp(argv[i], "--fail") == 0 && i + 1 < argc) {
      a.how = argv[++i];
      if (i + 1 < argc && argv[i + 1][0] != '-') a.who = atoi(argv[++i]);
    } else {
      fprintf(stderr, "hello [--train] [--fail HOW [RANK]]\n");
      return 2;
    }
  }
  calx_status *status = calx_launch(rank, &a);
  bool well = status == NULL;
  calx_status_print(stderr, status);
  calx_status_free(status);
  if (well) calx_shutdown();
  return well ? 0 : 1;
}
