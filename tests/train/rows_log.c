// Where logged values appear: with loggers, on the progress bar, for callbacks.
// By row of Lightning's acceptance list.
#include "boring.h"
#include "rows.h"
#include "train/internal.h"

typedef struct names {
  char callback[1024], bar[1024];
} names;

static void add_name(char *list, size_t size, const char *name)
{
  const size_t at = strlen(list);
  snprintf(list + at, size - at, "%s ", name);
}

// At the end of the run, when the epoch's values are known.
static void list_names(calx_trainer *t, void *self)
{
  (void)self;
  names *n = calx_trainer_user(t);
  *n = (names){ 0 };
  for (size_t i = 0; i < t->n_metrics; i++) {
    add_name(n->callback, sizeof n->callback, t->metrics[i].name);
  }
  for (size_t i = 0; i < t->n_bar; i++) {
    add_name(n->bar, sizeof n->bar, t->bar[i].name);
  }
}

#define MODULE(...)                                                \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),               \
                        .configure_model = boring_model,           \
                        .configure_optimizers = boring_optimizers, \
                        .training_step = boring_step, __VA_ARGS__)
#define TRAINER(...)                                                       \
  calx_trainer_new(.devices = 1, .max_epochs = 1, .no_progress_bar = true, \
                   .no_checkpointing = true, .no_model_summary = true,     \
                   .num_sanity_val_steps = 0, .log_every_n_steps = 1,      \
                   __VA_ARGS__)

// ---- row D1 -----------------------------------------------------------------

static calx_tensor *log_all(calx_trainer *t, void *self,
                            const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_log(t, "default", loss);
  calx_trainer_log(t, "l_s", loss, .on_step = 1, .on_epoch = 0);
  calx_trainer_log(t, "l_e", loss, .on_step = 0, .on_epoch = 1);
  calx_trainer_log(t, "l_se", loss, .on_step = 1, .on_epoch = 1);
  calx_trainer_log(t, "p_s", loss, .on_step = 1, .on_epoch = 0,
                   .prog_bar = true, .no_logger = true);
  calx_trainer_log(t, "p_e", loss, .on_step = 0, .on_epoch = 1,
                   .prog_bar = true, .no_logger = true);
  calx_trainer_log(t, "p_se", loss, .on_step = 1, .on_epoch = 1,
                   .prog_bar = true, .no_logger = true);
  return loss;
}

// The names in lines "3 a=1 b=2", each once, in the order of their coming.
static const char *logged_names(const rows *r)
{
  static char list[1024];
  strcpy(list, " ");
  for (const char *p = r->text; (p = strchr(p, ' ')) != NULL;) {
    char name[64];
    p++;
    snprintf(name, sizeof name, " %.*s ", (int)strcspn(p, "="), p);
    if (strstr(list, name) != NULL) continue;
    strncat(list, name + 1, sizeof list - 1 - strlen(list));
  }
  return list + 1;
}

static void test_row_D1(void **state)
{
  (void)state;
  names n;
  rows written = { "" };
  calx_logger *logger = rows_logger(&written);
  calx_lightning_module m =
      MODULE(.user = &n, .hooks = { .on_train_end = list_names });
  m.training_step = log_all;
  calx_dataset *data = boring_dataset(4);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = TRAINER(.loggers = &logger, .n_loggers = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
  assert_string_equal(logged_names(&written),
                      "default l_s l_se_step epoch l_e l_se_epoch ");
  assert_string_equal(n.bar, "p_s p_se_step p_e p_se_epoch ");
  assert_string_equal(n.callback,
                      "default l_s l_se_step l_se p_s p_se_step p_se l_e "
                      "l_se_epoch p_e p_se_epoch ");
  calx_trainer_free(t);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- rows D2 and D7 ---------------------------------------------------------

static calx_tensor *log_validation(calx_trainer *t, void *self,
                                   const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch;
  calx_trainer_log(t, "a", calx_full(CALX_SHAPE(1), (double)i));
  calx_trainer_log(t, "b", calx_full(CALX_SHAPE(1), (double)i), .on_step = 1,
                   .on_epoch = 1);
  return NULL;
}

static void test_row_D2(void **state)
{
  (void)state;
  names n;
  rows written = { "" };
  calx_logger *logger = rows_logger(&written);
  const calx_lightning_module m =
      MODULE(.user = &n, .validation_step = log_validation,
             .hooks = { .on_validation_end = list_names });
  calx_dataset *data = boring_dataset(3);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = TRAINER(.loggers = &logger, .n_loggers = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader,
                                   .val_dataloader = loader));
  assert_string_equal(n.callback, "a b b_epoch ");
  assert_string_equal(written.text,
                      "0 b_step=0\n1 b_step=1\n2 b_step=2\n"
                      "2 a=1 b_epoch=1 epoch=0\n");
  calx_trainer_free(t);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static calx_tensor *log_test(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_trainer_log(t, "test_loss", boring_loss(self, batch), .on_step = 1,
                   .on_epoch = 1);
  return NULL;
}

static void test_row_D7(void **state)
{
  (void)state;
  names n;
  rows written = { "" };
  calx_logger *logger = rows_logger(&written);
  const calx_lightning_module m =
      MODULE(.user = &n, .test_step = log_test,
             .hooks = { .on_test_end = list_names });
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = TRAINER(.loggers = &logger, .n_loggers = 1);
  CHECK_STATUS_OK(calx_trainer_test(
      t, &m, .dataloaders = (const calx_loader *const[]){ loader, loader },
      .n_dataloaders = 2, .not_verbose = true));
  assert_string_equal(n.callback,
                      "test_loss/dataloader_idx_0 "
                      "test_loss_epoch/dataloader_idx_0 "
                      "test_loss/dataloader_idx_1 "
                      "test_loss_epoch/dataloader_idx_1 ");
  assert_string_equal(logged_names(&written),
                      "test_loss_step/dataloader_idx_0 "
                      "test_loss_step/dataloader_idx_1 "
                      "test_loss_epoch/dataloader_idx_0 "
                      "test_loss_epoch/dataloader_idx_1 epoch ");
  calx_trainer_free(t);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_D1),
    SUPPORT_TEST(test_row_D2),
    SUPPORT_TEST(test_row_D7),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
