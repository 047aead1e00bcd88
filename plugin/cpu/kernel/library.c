// kernel/library: see library.h.
#include "kernel/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

// Its address is in the file that the engine is in.
static const char here;

typedef struct path_search {
  size_t skip;  // paths before the one that is asked for
  const char *file;
  cx_text *out;
  bool found;
} path_search;

static void offer(path_search *s, const char *folder)
{
  if (s->found || s->skip-- > 0) return;
  s->found = true;
  if (folder != NULL) cx_text_format(s->out, "%s/", folder);
  cx_text_append(s->out, s->file);
}

// The absolute path of the file that the engine is in; empty: not known. Of a
// program the loader only knows the name that it was started with.
static void *find_self(char self[PATH_MAX])
{
  Dl_info info;
  struct link_map *map = NULL;
  self[0] = '\0';
  if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) return NULL;
  const bool program = map->l_name[0] == '\0';
  if (realpath(program ? "/proc/self/exe" : map->l_name, self) == NULL) {
    self[0] = '\0';
  }
  return dlopen(program ? NULL : map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

static bool is_in_build(const char *self)
{
  const size_t size = strlen(CALX_BUILD_TREE);
  return strncmp(self, CALX_BUILD_TREE, size) == 0 && self[size] == '/';
}

// The search path of the file `handle`, without the folders that are searched
// for all files.
static void offer_search_path(path_search *s, void *handle)
{
  Dl_serinfo size;
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) != 0) return;
  Dl_serinfo *info = cx_alloc(size.dls_size);
  if (info == NULL) return;
  *info = size;
  if (dlinfo(handle, RTLD_DI_SERINFO, info) == 0) {
    for (unsigned i = 0; i < info->dls_cnt; i++) {
      const Dl_serpath *path = &info->dls_serpath[i];
      if ((path->dls_flags & LA_SER_DEFAULT) == 0) offer(s, path->dls_name);
    }
  }
  cx_free(info);
}

bool cpu_kernel_library_path(size_t i, const char *file, cx_text *out)
{
  path_search s = { .skip = i, .file = file, .out = out };
  char self[PATH_MAX];
  void *handle = find_self(self);
  cx_text_clear(out);
  const bool in_build = is_in_build(self);
  char *slash = strrchr(self, '/');
  if (slash != NULL) {
    *slash = '\0';
    offer(&s, self);
  }
  if (in_build) offer(&s, CALX_BUILD_FOLDER);
  if (handle != NULL) {
    offer_search_path(&s, handle);
    dlclose(handle);
  }
#ifdef CALX_INSTALL_FOLDER
  offer(&s, CALX_INSTALL_FOLDER);
#endif
  offer(&s, NULL);
  offer(&s, CALX_BUILD_FOLDER);
  return s.found;
}

void *cpu_kernel_library_open(const cx_text *path, int scope, cx_text *looked)
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
