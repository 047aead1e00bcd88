// Tells sick leaves from healthy ones with EfficientNet on all devices at once,
// as "Training on a TPU in parallel using PyTorch XLA" does for Kaggle's Plant
// Pathology 2020.
//
//   CPU_NUM_DEVICES=4 efficientnet [--data DIR] [--model b0] [--folds N]
//       [--image-size S] [--epochs N] [--batch-size B] [--lr X] [--bf16]
//       [--no_dropout] [--target PCT] [--save FILE] [--seed N]
//
// DIR holds train.csv, a column for each class, and images/*.jpg. Without it,
// drawn leaves. Of five folds N (1) are validated in turn, each on a model that
// has learned from the others; the result is the mean of their best accuracies.
// The batch size and the rate are each rank's. Exit code 21: below --target.
#include <calx/calx.h>
#include <string.h>

#include "accuracy.h"
#include "args.h"
#include "efficientnet.h"
#include "epoch.h"
#include "folds.h"
#include "leaves.h"

#define BELOW "the accuracy is below"

typedef struct {
  arguments a;
  leaves data;
} job;

static calx_status *train(efficientnet *m, calx_optimizer *opt,
                          calx_loader *loader, bool bf16, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "leaves", &line);
  calx_module_train(m->root, true);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    if (bf16) calx_autocast_begin(CALX_BF16);
    calx_tensor *logits = calx_forward(m->root, batch.data);
    calx_tensor *loss = calx_cross_entropy(logits, batch.target);
    if (bf16) calx_autocast_end();
    calx_backward(loss);
    loss = calx_dist_step(opt, loss);  // mean over the ranks
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size * calx_world_size());
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

static calx_status *save(efficientnet *m, const char *path)
{
  calx_value *dict;
  CALX_TRY(calx_module_state_dict(m->root, &dict));
  calx_status *status = calx_save(dict, path);  // the first rank writes
  calx_value_free(dict);
  return status;
}

static calx_status *fold(const job *j, int64_t k, double *best)
{
  efficientnet m;
  double accuracy = 0;
  int64_t classes = calx_dataset_class_count(j->data.sets[0]);
  CALX_TRY(efficientnet_init(
      &m, j->a.model, classes > 0 ? classes : LEAF_CLASSES, j->a.no_dropout));
  calx_optimizer *opt =
      calx_adamw(m.root, .lr = j->a.lr * calx_world_size(), .eps = 1e-3);
  calx_dataset *parts[] = { fold_of(j->data.sets[0], k, false),
                            fold_of(j->data.sets[1], k, true) };
  calx_sampler *samplers[2];
  calx_loader *loaders[2];
  for (int i = 0; i < 2; i++) {
    samplers[i] = calx_distributed_sampler(parts[i], .no_shuffle = i == 1,
                                           .seed = (uint64_t)j->a.seed);
    calx_loader *loader =
        calx_loader_new(parts[i], .batch_size = j->a.batch_size,
                        .sampler = samplers[i], .drop_last = i == 0);
    loaders[i] = calx_mp_device_loader(loader, calx_device_current());
    calx_loader_free(loader);
  }
  calx_lr_scheduler *rate = calx_cosine_annealing_lr(opt, j->a.epochs);
  calx_status *status = calx_lr_scheduler_error(rate);
  for (int64_t e = 1; status == NULL && e <= j->a.epochs; e++) {
    status = train(&m, opt, loaders[0], j->a.bf16, e);
    calx_lr_scheduler_step(rate);
    if (status == NULL) status = accuracy_of(m.root, loaders[1], &accuracy);
    if (status != NULL) break;
    calx_master_print("Epoch %ld accuracy %.2f%%\n", (long)e, accuracy);
    *best = accuracy > *best ? accuracy : *best;
  }
  if (status == NULL && j->a.save != NULL) status = save(&m, j->a.save);
  for (int i = 0; i < 2; i++) {
    calx_loader_free(loaders[i]), calx_sampler_free(samplers[i]);
    calx_dataset_free(parts[i]);
  }
  calx_lr_scheduler_free(rate), calx_optimizer_free(opt);
  calx_module_free(m.root);
  return status;
}

static calx_status *rank(int index, void *user)
{
  (void)index;
  const job *j = user;
  double mean = 0;
  calx_manual_seed((uint64_t)j->a.seed);  // all ranks begin with equal weights
  for (int64_t k = 0; k < j->a.folds; k++) {
    double best = 0;
    CALX_TRY(fold(j, k, &best));
    calx_master_print("Fold %ld accuracy %.2f%%\n", (long)k, best);
    mean += best / (double)j->a.folds;
  }
  if (mean >= j->a.target) return NULL;
  return calx_status_new(CALX_OUT_OF_RANGE, BELOW " %.2f%%: %.2f%%",
                         j->a.target, mean);
}

int main(int argc, char **argv)
{
  job j = { .a = { .model = "b0",
                   .folds = 1,
                   .epochs = 10,
                   .batch_size = 32,
                   .lr = 3e-3,
                   .image_size = 224 } };
  args_read(argc, argv,
            "efficientnet [--data DIR] [--model b0] [--folds N] "
            "[--image-size S] [--epochs N] [--batch-size B] [--lr X] [--bf16] "
            "[--no_dropout] [--target PCT] [--save FILE] [--seed N]",
            &j.a);
  uint64_t seed = (uint64_t)j.a.seed;
  leaves_open(&j.data, j.a.data, j.a.image_size, &seed);
  calx_status *status = calx_launch(rank, &j);
  // The rank that failed may be in another process: its message comes here.
  bool below = strstr(calx_status_message(status), BELOW) != NULL;
  calx_status_print(stderr, status);
  if (status != NULL) return below ? 21 : 1;
  leaves_close(&j.data);
  calx_shutdown();
  return 0;
}
