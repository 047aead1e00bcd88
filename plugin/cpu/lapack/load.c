// lapack/load: the library, loaded when first used.
#include <dlfcn.h>
#include <string.h>

#include "base/text.h"
#include "base/thread.h"
#include "lapack/inner.h"

static cx_mutex lock = CX_MUTEX_INIT;
static void *library;

// OpenBLAS is faster; where there is none, what the system has as LAPACK.
static void *open_first(cx_text *looked)
{
  static const char *const names[] = { "libopenblas.so.0", "liblapack.so.3" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) return handle;
    const char *why = dlerror();
    cx_text_format(looked, "%s%s", i == 0 ? "" : "; ",
                   why == NULL ? names[i] : why);
  }
  return NULL;
}

// Matrices are divided among the engine's own threads. This also holds for
// others in the process that use this library.
static void use_one_thread(void *handle)
{
  void *symbol = dlsym(handle, "openblas_set_num_threads");
  void (*set)(int) = NULL;
  memcpy(&set, &symbol, sizeof symbol);
  if (set != NULL) set(1);
}

static calx_status *open_library(void **out)
{
  if (library == NULL) {
    cx_text looked = { 0 };
    library = open_first(&looked);
    calx_status *status = NULL;
    if (library == NULL) {
      status = cx_error(CALX_NOT_FOUND,
                        "linear algebra needs LAPACK, which does not load: %s; "
                        "Debian's package libopenblas0-pthread or liblapack3 "
                        "has it",
                        cx_text_str(&looked));
    } else {
      use_one_thread(library);
    }
    cx_text_free(&looked);
    if (status != NULL) return status;
  }
  *out = library;
  return NULL;
}

calx_status *cpu_lapack_symbol(const char *name, cpu_lapack_function **out)
{
  void *handle = NULL;
  cx_lock(&lock);
  calx_status *status = open_library(&handle);
  cx_unlock(&lock);
  if (status != NULL) return status;
  void *symbol = dlsym(handle, name);
  memcpy(out, &symbol, sizeof symbol);
  if (symbol != NULL) return NULL;
  return cx_error(CALX_NOT_FOUND, "the system's LAPACK has no function '%s'",
                  name);
}
