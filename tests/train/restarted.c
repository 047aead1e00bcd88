// A job that calx run starts again after a rank was lost goes on from its
// newest checkpoint. Run by restarted.sh: the last rank of the first start ends
// in the middle of an epoch. Prints where each start began and how all ended.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "boring.h"

enum { LOST_AT = 21 };

static void on_train_start(calx_trainer *t, void *self)
{
  (void)self;
  if (!calx_trainer_is_global_zero(t)) return;
  printf("begins at step %lld\n", (long long)calx_trainer_global_step(t));
  fflush(stdout);
}

static void lose_a_rank(calx_trainer *t, void *self, const calx_batch *batch,
                        int64_t i)
{
  (void)self, (void)batch, (void)i;
  const char *restart = getenv("CALX_RESTART");
  const bool is_last = calx_global_ordinal() == calx_world_size() - 1;
  const bool is_first_start = restart == NULL || strcmp(restart, "0") == 0;
  if (is_first_start && is_last && calx_trainer_global_step(t) == LOST_AT) {
    raise(SIGKILL);
  }
}

int main(void)
{
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_train_start = on_train_start,
                                       .on_train_batch_end = lose_a_rank });
  calx_dataset *data = boring_dataset(32);
  calx_loader *loader = calx_loader_new(data, .batch_size = 2);
  calx_callback *c = calx_model_checkpoint(.every_n_train_steps = 4);
  calx_trainer *t = calx_trainer_new(.max_epochs = 4, .no_progress_bar = true,
                                     .callbacks = &c, .n_callbacks = 1);
  calx_status *status = calx_trainer_fit(t, &m, .train_dataloader = loader);
  calx_status_print(stderr, status);
  if (status == NULL && calx_trainer_is_global_zero(t)) {
    printf("ends at step %lld\n", (long long)calx_trainer_global_step(t));
  }
  const int code = calx_trainer_exit_code(t);
  calx_status_free(status);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
  return code;
}
