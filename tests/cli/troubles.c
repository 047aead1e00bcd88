// troubles: what Lightning's page on TPUs lists under "Troubleshooting", on
// purpose; the error goes to standard error.
//
//   troubles device    uses a device
//   troubles launch    uses one and then starts ranks
//   troubles field     wants something in a batch that is no tensor
#include <calx/calx.h>
#include <stdio.h>
#include <string.h>

static calx_status *use_device(void)
{
  calx_scope *scope = calx_scope_begin();
  calx_sync(calx_neg(calx_ones(CALX_SHAPE(4))));
  return calx_scope_end(scope);
}

static calx_status *rank(int index, void *user)
{
  (void)index, (void)user;
  return use_device();
}

static calx_status *launch_late(void)
{
  calx_status *status = use_device();
  return status != NULL ? status : calx_launch(rank, NULL);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  (void)user, (void)index, (void)fields;
  return NULL;
}

// A pointer to something of the program's own, as Python's loaders give it.
static calx_status *ask_for_pointers(void)
{
  const calx_field field = { "meta", (calx_dtype)99, 0, { 0 } };
  calx_dataset *set = calx_dataset_new(8, &field, 1, get, NULL, NULL);
  calx_loader *loader = calx_loader_new(set, .batch_size = 4);
  calx_batch batch;
  calx_scope *scope = calx_scope_begin();
  while (calx_loader_next(loader, &batch)) {
  }
  calx_status *status = calx_scope_end(scope);
  calx_loader_free(loader);
  calx_dataset_free(set);
  return status;
}

int main(int argc, char **argv)
{
  const char *which = argc > 1 ? argv[1] : "";
  calx_status *status = strcmp(which, "device") == 0   ? use_device()
                        : strcmp(which, "launch") == 0 ? launch_late()
                                                       : ask_for_pointers();
  const bool failed = status != NULL;
  calx_status_print(stderr, status);
  calx_status_free(status);
  calx_shutdown();
  return failed;
}
