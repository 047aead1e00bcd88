// kernels/library: see library.h.
#include "kernels/library.h"

#include <dlfcn.h>
#include <string.h>

// Lies in the file that the engine is in.
static const char here;

bool cx_library_path(size_t i, const char *folder, const char *file,
                     cx_text *out)
{
  Dl_info self;
  cx_text_clear(out);
  const char *slash =
      dladdr(&here, &self) == 0 ? NULL : strrchr(self.dli_fname, '/');
  if (slash == NULL) i++;
  if (i == 0) {
    cx_text_append_n(out, self.dli_fname, (size_t)(slash - self.dli_fname) + 1);
  } else if (i == 1) {
    cx_text_format(out, "%s/", folder);
  }
  cx_text_append(out, file);
  return i < 3;
}

void *cx_library_open(const cx_text *path, int scope, cx_text *looked)
{
  void *handle =
      cx_text_failed(path) ? NULL : dlopen(cx_text_str(path), RTLD_NOW | scope);
  if (handle == NULL) {
    const char *why = dlerror();
    cx_text_format(looked, "%s%s", looked->size > 0 ? "; " : "",
                   why == NULL ? cx_text_str(path) : why);
  }
  return handle;
}
