// fuzz/exported: any bytes as the manifest of an exported model, beside a
// program and weights that are right.
//
// What is loaded is run. What is refused must say why and leave nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "calx/export.h"
#include "calx/io.h"
#include "calx/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/calx_exported_XXXXXX", manifest[64];

static void check(int right)
{
  if (!right) abort();
}

static void check_status(calx_status *status)
{
  if (status != NULL) fprintf(stderr, "%s\n", calx_status_message(status));
  check(status == NULL);
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  calx_module *const *m = self;
  return calx_mul(x, calx_module_find(*m, "w"));
}

static void remove_folder(void)
{
  static const char *const names[] = { "manifest.json", "model.mlir",
                                       "weights.safetensors" };
  for (size_t i = 0; i < 3; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

// y = w x, of f32[3]. Its manifest is the corpus's first file.
static void prepare(void)
{
  setenv("CALX_PLUGIN", "calx", 0);
  check(mkdtemp(folder) != NULL);
  atexit(remove_folder);
  snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
  calx_module *m = calx_module_new("Scale", forward, &m);
  calx_scope *scope = calx_scope_begin();
  calx_module_param(m, "w", calx_ones_with(CALX_SHAPE(3), NULL));
  calx_tensor *x = calx_ones_with(CALX_SHAPE(3), NULL);
  calx_module_train(m, false);
  check_status(calx_export_with(m, &x, 1, folder, NULL));
  check_status(calx_scope_end(scope));
  calx_module_free(m);
}

static void use(calx_exported *e)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_ones_with(CALX_SHAPE(3), NULL),
              *y = calx_exported_forward(e, x);
  float values[3] = { 0 };
  check_status(calx_tensor_read(y, values, sizeof values));
  check(values[2] == 1.0F);
  check_status(calx_scope_end(scope));
}

// A scope's tensors are forgotten when the next one ends.
static void forget_ended(void)
{
  check_status(calx_scope_end(calx_scope_begin()));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (manifest[0] == '\0') prepare();
  check_status(cx_file_write(manifest, data, size));
  calx_exported *e;
  forget_ended();
  long blocks = cx_alloc_live();
  calx_status *status = calx_exported_load_with(folder, NULL, &e);
  if (status == NULL) {
    use(e);
    calx_exported_free(e);
    return 0;
  }
  check(e == NULL && *calx_status_message(status) != '\0');
  calx_status_free(status);
  forget_ended();
  check(cx_alloc_live() == blocks);
  return 0;
}
