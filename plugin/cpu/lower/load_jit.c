// lower/load_jit: loads the jit, libcalx_jit.so, when something is compiled for
// the first time. kernel/library.h says where it is.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/thread.h"
#include "kernel/library.h"
#include "lower/compile.h"
#include "lower/lower.h"

#define JIT_FILE "libcalx_jit.so"

static cx_mutex jit_lock = CX_MUTEX_INIT;
static const cpu_jit_api *jit_api;

bool cpu_lower_jit_path(size_t i, cx_text *out)
{
  const char *asked = cx_env_text("CALX_JIT");
  if (asked != NULL) {
    cx_text_clear(out);
    cx_text_append(out, asked);
    return i == 0;
  }
  return cpu_kernel_library_path(i, JIT_FILE, out);
}

static calx_status *open_jit(const cpu_jit_api **out)
{
  cx_text path = { 0 }, looked = { 0 };
  void *handle = NULL;
  for (size_t i = 0; handle == NULL && cpu_lower_jit_path(i, &path); i++) {
    handle = cpu_kernel_library_open(&path, RTLD_LOCAL, &looked);
  }
  cx_text_free(&path);
  const cpu_jit_api *(*get)(void) = NULL;
  void *symbol = handle == NULL ? NULL : dlsym(handle, "cpu_jit_get_api");
  memcpy(&get, &symbol, sizeof symbol);
  calx_status *status = NULL;
  if (get == NULL) {
    status = cx_error(CALX_NOT_FOUND,
                      "the CPU engine's compiler (" JIT_FILE
                      ") does not load: %s; CALX_JIT names its path",
                      cx_text_str(&looked));
  } else if ((*out = get())->struct_size != sizeof(cpu_jit_api)) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      JIT_FILE " is of another version of calx");
  }
  cx_text_free(&looked);
  return status;
}

calx_status *cpu_lower_load_jit(const cpu_jit_api **out)
{
  calx_status *status = NULL;
  cx_lock(&jit_lock);
  if (jit_api == NULL) status = open_jit(&jit_api);
  *out = jit_api;
  cx_unlock(&jit_lock);
  return status;
}
