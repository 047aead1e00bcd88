// lazy/cache/folder: which folder is meant: the program's, else the
// environment's.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "calx/device.h"
#include "lazy/cache/disk.h"
#include "lazy/lazy.h"

static struct {
  cx_mutex lock;
  char *path;  // that calx_cache_open() was given; NULL: none
  bool readonly;
} chosen = { .lock = CX_MUTEX_INIT };

static atomic_long compiled;  // programs, for the current client

long cx_lazy_program_count(void)
{
  return atomic_load(&compiled);
}

long cx_lazy_program_count_add(void)
{
  return atomic_fetch_add(&compiled, 1) + 1;
}

void cx_lazy_program_count_reset(void)
{
  atomic_store(&compiled, 0);
}

static bool switched_off(void)
{
  const char *set = getenv("CALX_CACHE_DIR");
  return set != NULL && strcmp(set, "off") == 0;
}

static void append_environment(cx_text *out)
{
  const char *set = getenv("CALX_CACHE_DIR");
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (set != NULL && *set != '\0') {
    cx_text_append(out, set);
  } else if (cache != NULL && *cache != '\0') {
    cx_text_format(out, "%s/calx/programs", cache);
  } else if (home != NULL && *home != '\0') {
    cx_text_format(out, "%s/.cache/calx/programs", home);
  }
}

bool cx_lazy_cache_path(cx_text *out, bool *out_readonly)
{
  *out_readonly = false;
  if (switched_off()) return false;
  cx_lock(&chosen.lock);
  if (chosen.path != NULL) {
    cx_text_append(out, chosen.path);
    *out_readonly = chosen.readonly;
  } else {
    append_environment(out);
  }
  cx_unlock(&chosen.lock);
  return out->size != 0 && !cx_text_failed(out);
}

void cx_lazy_cache_forget(void)
{
  cx_lock(&chosen.lock);
  cx_free(chosen.path);
  chosen.path = NULL;
  cx_unlock(&chosen.lock);
}

// ---- public -----------------------------------------------------------------

static const char *words_for(bool readonly)
{
  return readonly ? "read only" : "to be written";
}

// Under the lock. The same again is what each rank of a process says.
static calx_status *choose(const char *path, bool readonly)
{
  if (chosen.path != NULL) {
    if (strcmp(chosen.path, path) == 0 && chosen.readonly == readonly) {
      return NULL;
    }
    return cx_error(CALX_FAILED_PRECONDITION,
                    "calx_cache_open: '%s', %s, is wanted, the cache is '%s', "
                    "%s: all ranks share one folder",
                    path, words_for(readonly), chosen.path,
                    words_for(chosen.readonly));
  }
  long programs = cx_lazy_program_count();
  if (programs != 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "calx_cache_open: it must be called before anything is "
                    "compiled, found %ld program%s",
                    programs, programs == 1 ? "" : "s");
  }
  chosen.path = cx_strdup(path);
  chosen.readonly = readonly;
  return chosen.path != NULL ? NULL : cx_out_of_memory();
}

calx_status *calx_cache_open(const char *path, bool readonly)
{
  if (path == NULL || *path == '\0') {
    return cx_invalid("calx_cache_open: a folder is wanted, found none");
  }
  CALX_TRY(cx_lazy_cache_folder(path, readonly));
  char whole[PATH_MAX];  // stays the same when the program changes its folder
  if (realpath(path, whole) == NULL) {
    return cx_error(CALX_NOT_FOUND, "calx_cache_open: '%s': %s", path,
                    strerror(errno));
  }
  cx_lock(&chosen.lock);
  calx_status *status = choose(whole, readonly);
  cx_unlock(&chosen.lock);
  return status;
}
