// Learns the column "price" of a CSV file from its other columns.
//
//   regression [--data FILE] [--epochs N] [--batch-size B] [--lr X]
//              [--target PCT] [--seed N]
//
// Without --data the file is drawn. A fifth of the rows tests. Exit code 21:
// less than --target percent of the variance of their prices is explained.
#include <calx/calx.h>

#include "args.h"
#include "epoch.h"
#include "houses.h"

typedef struct {
  calx_module *root, *input, *fc1, *fc2, *fc3;
  calx_tensor *mean, *std;  // of the prices
} regression;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  regression *m = self;
  x = calx_silu(calx_forward(m->fc1, calx_forward(m->input, x)));
  x = calx_silu(calx_forward(m->fc2, x));
  x = calx_squeeze(calx_forward(m->fc3, x), 1);
  return calx_add(calx_mul(x, m->std), m->mean);
}

static calx_status *init(regression *m, const calx_dataset *set, double *prices)
{
  int64_t columns = calx_dataset_field(set, 0)->dims[0];
  m->root = calx_module_new("Regression", forward, m);
  m->input = calx_nn_batch_norm1d(m->root, "input", columns, .no_affine = true);
  m->fc1 = calx_nn_linear(m->root, "fc1", columns, 64);
  m->fc2 = calx_nn_linear(m->root, "fc2", 64, 64);
  m->fc3 = calx_nn_linear(m->root, "fc3", 64, 1);
  m->mean =
      calx_module_buffer(m->root, "mean", calx_full(CALX_SHAPE(1), prices[0]));
  m->std =
      calx_module_buffer(m->root, "std", calx_full(CALX_SHAPE(1), prices[1]));
  return calx_module_error(m->root);
}

// Mean and standard deviation of a dataset's prices.
static calx_status *statistics(const calx_dataset *set, double out[2])
{
  double n = (double)calx_dataset_size(set), sum = 0, squares = 0;
  float price, *row = malloc(4 * (size_t)calx_dataset_field(set, 0)->dims[0]);
  calx_status *status = NULL;
  for (int64_t i = 0; status == NULL && row != NULL && i < (int64_t)n; i++) {
    status = calx_dataset_get(set, i, (void *[]){ row, &price });
    sum += (double)price, squares += (double)price * (double)price;
  }
  free(row);
  out[0] = sum / n, out[1] = sqrt(squares / n - out[0] * out[0]);
  return status;
}

static calx_status *train(regression *m, calx_optimizer *opt,
                          calx_loader *loader, int64_t epoch)
{
  calx_batch batch;
  calx_progress *line;
  calx_status *status = epoch_begin(epoch, loader, "rows", &line);
  calx_module_train(m->root, true);
  while (status == NULL && calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_optimizer_zero_grad(opt);
    calx_tensor *price = calx_forward(m->root, batch.data);
    calx_tensor *missed = calx_div(calx_sub(price, batch.target), m->std);
    calx_tensor *loss = calx_mean(calx_square(missed));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    calx_progress_value(line, "loss", loss);
    calx_progress_step(line, batch.size);
    status = calx_scope_end(scope);
  }
  return epoch_end(line, status);
}

// How much of the variance of the test's prices the model explains.
static calx_status *test(regression *m, calx_loader *loader, double std,
                         double *percent)
{
  calx_batch batch;
  double squares = 0, all = 0;
  calx_module_train(m->root, false);
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    calx_no_grad_begin();  // ends with the scope
    calx_tensor *price = calx_forward(m->root, batch.data);
    squares +=
        calx_item(calx_mse_loss(price, batch.target, .reduction = CALX_SUM));
    all += (double)batch.size;
    CALX_TRY(calx_scope_end(scope));
  }
  *percent = 100 * (1 - squares / all / (std * std));
  return calx_scope_take_error();
}

static calx_status *run(const arguments *a, calx_dataset *const *sets,
                        double *percent)
{
  regression m;
  double train_prices[2], test_prices[2];
  CALX_TRY(statistics(sets[0], train_prices));
  CALX_TRY(statistics(sets[1], test_prices));
  CALX_TRY(init(&m, sets[0], train_prices));
  calx_optimizer *opt = calx_adamw(m.root, .lr = a->lr);
  calx_loader *batches =
      calx_loader_new(sets[0], .batch_size = a->batch_size, .shuffle = true,
                      .drop_last = true, .seed = (uint64_t)a->seed);
  calx_loader *tests = calx_loader_new(sets[1], .batch_size = a->batch_size);
  calx_lr_scheduler *rate = calx_cosine_annealing_lr(opt, a->epochs);
  calx_status *status = calx_lr_scheduler_error(rate);
  for (int64_t e = 1; status == NULL && e <= a->epochs; e++) {
    status = train(&m, opt, batches, e);
    calx_lr_scheduler_step(rate);
    if (status == NULL) status = test(&m, tests, test_prices[1], percent);
    if (status == NULL) printf("Epoch %ld: %.2f%%\n", (long)e, *percent);
  }
  calx_loader_free(batches), calx_loader_free(tests);
  calx_lr_scheduler_free(rate), calx_optimizer_free(opt);
  calx_module_free(m.root);
  return status;
}

int main(int argc, char **argv)
{
  arguments a = { .epochs = 30, .batch_size = 200, .lr = 0.01 };
  args_read(argc, argv,
            "regression [--data FILE] [--epochs N] [--batch-size B] [--lr X] "
            "[--target PCT] [--seed N]",
            &a);
  uint64_t seed = (uint64_t)a.seed;
  char *file = a.data == NULL ? houses_draw(5000, seed) : NULL;
  if (file != NULL) a.data = file;
  calx_dataset *sets[2], *rows = calx_dataset_csv(a.data, .target = "price");
  if (file != NULL) unlink(file), free(file);
  double percent = 0, parts[] = { 0.8, 0.2 };
  calx_manual_seed(seed);
  calx_status *status = calx_random_split(rows, parts, 2, sets);
  if (status == NULL) status = run(&a, sets, &percent);
  if (status != NULL) return calx_status_print(stderr, status), 1;
  calx_dataset_free(sets[0]), calx_dataset_free(sets[1]);
  calx_dataset_free(rows);
  calx_shutdown();
  return percent >= a.target ? 0 : 21;
}
