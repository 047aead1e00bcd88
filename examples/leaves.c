// Tells sick leaves from healthy ones on all devices at once, step by step as
// "Training on a TPU in parallel using PyTorch XLA" does it for Kaggle's Plant
// Pathology: distributed samplers, a ParallelLoader, optimizer_step,
// validation over all ranks, master_print and save.
//
//   CPU_NUM_DEVICES=4 leaves [--epochs N] [--batch-size B] [--lr X]
//                            [--target PCT] [--seed N] [--save FILE]
//
// The leaves are drawn: no file is needed. Exit code 21: the best accuracy
// stayed below --target.
#include <calx/calx.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"

enum { SIDE = 32, CLASSES = 4 };  // healthy, scab, rust, both

// ---- the leaves -------------------------------------------------------------

static double chance(uint64_t *state)  // [0, 1), after D. Knuth's MMIX
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 40) * 0x1p-24;
}

static void blot(float *image, double x, double y, double radius,
                 const float color[3])
{
  for (int i = 0; i < SIDE * SIDE; i++) {
    double d = hypot(i % SIDE - x, i / SIDE - y) / radius;
    for (int c = 0; c < 3 && d < 1; c++) image[c * SIDE * SIDE + i] = color[c];
  }
}

// A leaf of some green on some ground, f32 (3, SIDE, SIDE) in [-1, 1], with
// dark spots of scab and orange ones of rust.
static calx_status *draw(void *user, int64_t index, void *const *fields)
{
  static const float spots[2][3] = { { -0.8F, -0.7F, -0.9F },
                                     { 0.7F, 0.1F, -0.7F } };
  uint64_t state = (uint64_t)index * 2654435761u + *(uint64_t *)user;
  float *image = fields[0];
  for (int k = 0; k < 20; k++) chance(&state);
  int64_t class = (int64_t)(chance(&state) * CLASSES);
  double angle = chance(&state) * 3.14159, length = 12 + 4 * chance(&state);
  double width = 6 + 3 * chance(&state), light = chance(&state) * 0.6 - 0.3;
  for (int i = 0; i < SIDE * SIDE; i++) {
    double x = i % SIDE - SIDE / 2, y = i / SIDE - SIDE / 2;
    double u = x * cos(angle) + y * sin(angle);
    double v = y * cos(angle) - x * sin(angle);
    bool leaf = u * u / (length * length) + v * v / (width * width) < 1;
    for (int c = 0; c < 3; c++) {
      double base = leaf ? (c == 1 ? 0.4 : -0.5) : -0.1 * c;
      double noise = 0.3 * (chance(&state) - 0.5);
      image[c * SIDE * SIDE + i] = (float)(base + light + noise);
    }
  }
  for (int sick = 0; sick < 2; sick++) {
    int count = (class >> sick & 1) != 0 ? 2 + (int)(4 * chance(&state)) : 0;
    for (int k = 0; k < count; k++) {
      double u = (chance(&state) - 0.5) * length * 1.4;
      double v = (chance(&state) - 0.5) * width;
      double x = u * cos(angle) - v * sin(angle) + SIDE / 2;
      double y = u * sin(angle) + v * cos(angle) + SIDE / 2;
      blot(image, x, y, 1.2 + 1.3 * chance(&state), spots[sick]);
    }
  }
  *(int64_t *)fields[1] = class;
  return NULL;
}

static calx_dataset *leaves(int64_t size, uint64_t *seed)
{
  static const calx_field fields[] = {
    { "image", CALX_F32, 3, { 3, SIDE, SIDE } }, { "class", CALX_I64, 0, { 0 } }
  };
  return calx_dataset_new(size, fields, 2, draw, seed, NULL);
}

// ---- the model --------------------------------------------------------------

typedef struct {
  calx_module *root, *conv[2], *bn[2], *fc;
} net;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  net *m = self;
  for (int i = 0; i < 2; i++) {
    x = calx_forward(m->bn[i], calx_forward(m->conv[i], x));
    x = calx_max_pool2d(calx_relu(x), 2);
  }
  return calx_forward(m->fc, calx_flatten(x, .start_dim = 1));
}

static calx_status *net_init(net *m)
{
  m->root = calx_module_new("Leaves", forward, m);
  m->conv[0] = calx_nn_conv2d(m->root, "conv1", 3, 16, 3, .padding = { 1 });
  m->bn[0] = calx_nn_batch_norm2d(m->root, "bn1", 16);
  m->conv[1] = calx_nn_conv2d(m->root, "conv2", 16, 32, 3, .padding = { 1 });
  m->bn[1] = calx_nn_batch_norm2d(m->root, "bn2", 32);
  m->fc = calx_nn_linear(m->root, "fc", 32 * (SIDE / 4) * (SIDE / 4), CLASSES);
  return calx_module_error(m->root);
}

// ---- training ---------------------------------------------------------------

#define BELOW "the best accuracy is below"

typedef struct {
  long epochs, batch_size;
  uint64_t seed;
  double lr, target;
  const char *save;
  calx_dataset *train, *valid;
} run;

static calx_status *train(net *m, calx_optimizer *opt, calx_loader *loader)
{
  calx_batch batch;
  if (calx_loader_size(loader) == 0) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "--batch-size is more than there are leaves for a "
                           "rank");
  }
  calx_status *status = NULL;
  calx_progress *line =
      calx_progress_new("train", calx_loader_size(loader), .unit = "leaves");
  calx_module_train(m->root, true);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss =
        calx_cross_entropy(calx_forward(m->root, batch.data), batch.target);
    calx_backward(loss);
    loss = calx_dist_step(opt, loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size * calx_world_size());
    status = calx_scope_end(scope);
  }
  calx_progress_end(line);
  return status != NULL ? status : calx_scope_take_error();
}

static void mean(const double *const *values, size_t ranks, size_t count,
                 double *out)
{
  for (size_t k = 0; k < count; k++) {
    double sum = 0;
    for (size_t r = 0; r < ranks; r++) sum += values[r][k];
    out[k] = sum / (double)ranks;
  }
}

static calx_status *validate(net *m, calx_loader *loader, double *accuracy)
{
  calx_batch batch;
  double right = 0, all = 0;
  calx_module_train(m->root, false);
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();
    calx_tensor *guess =
        calx_argmax(calx_forward(m->root, batch.data), .dims = CALX_DIMS(1));
    right += calx_item(calx_sum(calx_eq(guess, batch.target)));
    all += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  CALX_TRY(calx_scope_take_error());
  double mine = 100 * right / all;
  return calx_mesh_reduce("valid", &mine, 1, mean, accuracy);
}

static calx_status *save(net *m, const char *path)
{
  calx_value *dict;
  CALX_TRY(calx_module_state_dict(m->root, &dict));
  calx_status *status = calx_save(dict, path);  // the first rank writes
  calx_value_free(dict);
  return status;
}

static calx_status *rank(int index, void *user)
{
  (void)index;
  run *r = user;
  net m;
  calx_device *device = calx_device_current();
  calx_manual_seed(r->seed);
  calx_status *status = net_init(&m);
  double lr = r->lr * calx_world_size();
  calx_optimizer *opt = calx_adam(m.root, .lr = lr != 0 ? lr : CALX_ZERO);
  calx_sampler *train_sampler =
      calx_distributed_sampler(r->train, .num_replicas = calx_world_size(),
                               .rank = calx_global_ordinal(), .seed = r->seed);
  calx_sampler *valid_sampler = calx_distributed_sampler(
      r->valid, .num_replicas = calx_world_size(),
      .rank = calx_global_ordinal(), .no_shuffle = true);
  calx_loader *train_loader =
      calx_loader_new(r->train, .batch_size = r->batch_size,
                      .sampler = train_sampler, .drop_last = true);
  calx_loader *valid_loader = calx_loader_new(
      r->valid, .batch_size = r->batch_size, .sampler = valid_sampler);
  calx_parallel_loader *train_para =
      calx_parallel_loader_new(train_loader, &device, 1);
  calx_parallel_loader *valid_para =
      calx_parallel_loader_new(valid_loader, &device, 1);
  if (status == NULL) status = calx_optimizer_error(opt);
  double accuracy = 0, best = 0;
  for (long epoch = 1; status == NULL && epoch <= r->epochs; epoch++) {
    status = train(&m, opt, calx_per_device_loader(train_para, device));
    if (status == NULL) {
      status =
          validate(&m, calx_per_device_loader(valid_para, device), &accuracy);
    }
    if (status != NULL) break;
    calx_master_print("Epoch %ld accuracy %.2f%%\n", epoch, accuracy);
    best = accuracy > best ? accuracy : best;
  }
  if (status == NULL && r->save != NULL) status = save(&m, r->save);
  if (status == NULL && best < r->target) {
    status = calx_status_new(CALX_OUT_OF_RANGE, BELOW " %.2f%%: %.2f%%",
                             r->target, best);
  }
  calx_parallel_loader_free(train_para), calx_parallel_loader_free(valid_para);
  calx_loader_free(train_loader), calx_loader_free(valid_loader);
  calx_sampler_free(train_sampler), calx_sampler_free(valid_sampler);
  calx_optimizer_free(opt), calx_module_free(m.root);
  return status;
}

int main(int argc, char **argv)
{
  run r = { .epochs = 5, .batch_size = 32, .lr = 1e-3 };
  static const struct option names[] = {
    { "epochs", 1, 0, 'e' }, { "batch-size", 1, 0, 'b' },
    { "lr", 1, 0, 'l' },     { "target", 1, 0, 't' },
    { "seed", 1, 0, 's' },   { "save", 1, 0, 'f' },
    { "help", 0, 0, 'h' },   { 0, 0, 0, 0 }
  };
  for (int o; (o = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (o) {
      case 'e': r.epochs = arg_count(argv, "epochs", 1, 1000000); break;
      case 'b': r.batch_size = arg_count(argv, "batch-size", 1, 1 << 20); break;
      case 'l': r.lr = arg_number(argv, "lr", 1e30); break;
      case 't': r.target = arg_number(argv, "target", 100); break;
      case 's': r.seed = (uint64_t)arg_count(argv, "seed", 0, INT64_MAX); break;
      case 'f': r.save = optarg; break;
      default:
        puts(
            "leaves [--epochs N] [--batch-size B] [--lr X] [--target PCT] "
            "[--seed N] [--save FILE]");
        return o == 'h' ? 0 : 2;
    }
  }
  arg_end(argc, argv);
  uint64_t seeds[] = { r.seed, ~r.seed };
  r.train = leaves(4096, &seeds[0]), r.valid = leaves(1024, &seeds[1]);
  calx_status *status = calx_launch(rank, &r);
  // The rank that failed may be in another process: its message comes here.
  bool below = strstr(calx_status_message(status), BELOW) != NULL;
  calx_status_print(stderr, status);
  if (status != NULL) return below ? 21 : 1;
  calx_dataset_free(r.train), calx_dataset_free(r.valid);
  calx_shutdown();
  return 0;
}
