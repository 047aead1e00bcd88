// pjrt/find: finds the plugin that is wanted, and its file.
//
// A path names the file itself. A name is looked up in
// PJRT_NAMES_AND_LIBRARY_PATHS ("name:/path,name2:/path2", as in JAX). Then it
// is the library's own engine ("calx", "cpu") or a plugin that calx knows, in
// the folders that `./dev setup --engines` and the system fill; "xla-cpu" is
// XLA's CPU plugin. Where the caller names nothing, CALX_PLUGIN does, then
// PJRT_DEVICE (of PyTorch/XLA), then the variables of its former runtime
// (xrt.c), then the machine: a TPU, else a CUDA card, else the CPU with the
// library's engine.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "abi/calx_cpu.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/file.h"
#include "base/status.h"
#include "pjrt/internal.h"

#define REGISTERED "PJRT_NAMES_AND_LIBRARY_PATHS"

typedef struct plugin_search {
  char *found;     // the first file that exists
  cx_text looked;  // all that were looked for
  bool failed;     // out of memory
} plugin_search;

// The process will run the file's code, so only this user and root may be able
// to write it.
static bool is_believed(plugin_search *s, const char *path)
{
  struct stat info;
  if (stat(path, &info) != 0) return false;
  calx_status *status = cx_file_check_owner(path, &info, true);
  bool believed = status == NULL;
  if (!believed) {
    cx_text_format(&s->looked, " (not taken: %s)", cx_status_sentence(status));
  }
  calx_status_free(status);
  return believed;
}

static void look(plugin_search *s, const char *folder, const char *file)
{
  if (s->found != NULL || s->failed) return;
  cx_text path = { 0 };
  cx_text_append(&path, folder);
  if (file[0] != '\0') {
    cx_text_char(&path, '/');
    cx_text_append(&path, file);
  }
  if (s->looked.size > 0) cx_text_append(&s->looked, ", ");
  cx_text_append(&s->looked, cx_text_str(&path));
  s->failed = cx_text_failed(&path) || cx_text_failed(&s->looked);
  if (!s->failed && cx_file_exists(cx_text_str(&path)) &&
      is_believed(s, cx_text_str(&path))) {
    s->found = cx_text_take(&path);
  }
  cx_text_free(&path);
}

// Looks in CALX_PLUGIN_DIR alone if it is set, else in the build's own folder,
// then in the user's cache.
static void look_in_folders(plugin_search *s, const char *file)
{
  const char *folder = cx_env_text("CALX_PLUGIN_DIR");
  if (folder != NULL) {
    look(s, folder, file);
    return;
  }
  look(s, CALX_PLUGIN_DIR_DEFAULT, file);
  cx_text cache = { 0 };
  if (cx_env_text("XDG_CACHE_HOME") != NULL) {
    cx_text_append(&cache, cx_env_text("XDG_CACHE_HOME"));
  } else if (cx_env_text("HOME") != NULL) {
    cx_text_append(&cache, cx_env_text("HOME"));
    cx_text_append(&cache, "/.cache");
  }
  if (cx_text_failed(&cache)) s->failed = true;
  if (cache.size > 0) {
    cx_text_append(&cache, "/calx/plugins");
    look(s, cx_text_str(&cache), file);
  }
  cx_text_free(&cache);
}

static void look_for_tpu(plugin_search *s)
{
  const char *path = cx_env_text("TPU_LIBRARY_PATH");
  if (path != NULL) look(s, path, "");
  look_in_folders(s, "libtpu/libtpu.so");
  look(s, "/usr/lib/libtpu.so", "");
}

static void look_for_cuda(plugin_search *s)
{
  look_in_folders(s, "cuda/xla_cuda_plugin.so");
}

static void look_for_cpu(plugin_search *s)
{
  look_in_folders(s, "xla-cpu-0.106/libpjrt_cpu.so");
  look_in_folders(s, "xla-cpu-0.81/xla_cpu_pjrt.so");
}

// ---- what the machine has ----

bool cx_pjrt_has_tpu(const char *dev)
{
  bool found = false;
  DIR *folder = opendir(dev);
  if (folder == NULL) return false;
  for (struct dirent *e; !found && (e = readdir(folder)) != NULL;) {
    found =
        strncmp(e->d_name, "accel", 5) == 0 || strcmp(e->d_name, "vfio") == 0;
  }
  closedir(folder);
  return found;
}

// The file's number, as "0x1ae0\n"; 0: there is none.
static long pci_number(const char *folder, const char *device, const char *name)
{
  char path[PATH_MAX], text[16] = "";
  snprintf(path, sizeof path, "%s/%s/%s", folder, device, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  const char *line = fgets(text, sizeof text, file);
  fclose(file);
  return line == NULL ? 0 : strtol(text, NULL, 16);
}

// Whether the machine has a TPU beyond doubt: /dev/vfio may also belong to
// other devices, which are passed to virtual machines. The ids are JAX's for v2
// and v3, v4, v5p, v5e, v6e and v7x.
static bool is_surely_tpu(const char *dev)
{
  static const long ids[] = { 0x27, 0x5e, 0x62, 0x63, 0x6f, 0x76 };
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/accel0", dev);
  if (cx_file_exists(path)) return true;
  snprintf(path, sizeof path, "%s/../sys/bus/pci/devices", dev);
  DIR *folder = opendir(path);
  bool found = false;
  if (folder == NULL) return false;
  for (struct dirent *e; !found && (e = readdir(folder)) != NULL;) {
    if (pci_number(path, e->d_name, "vendor") != 0x1ae0) continue;
    const long id = pci_number(path, e->d_name, "device");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
      found = found || id == ids[i];
    }
  }
  closedir(folder);
  return found;
}

static bool has_card(const char *dev)
{
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/nvidia0", dev);
  return cx_file_exists(path);
}

static const struct known {
  const char *name;
  void (*look)(plugin_search *s);
  // Of an accelerator: whether `dev` shows one, and whether beyond doubt. The
  // accelerators are in the order of preference.
  bool (*is_there)(const char *dev);
  bool (*is_surely_there)(const char *dev);
  const char *device;
} known[] = {
  { "tpu", look_for_tpu, cx_pjrt_has_tpu, is_surely_tpu, "a TPU" },
  { "cuda", look_for_cuda, has_card, has_card, "an NVIDIA card" },
  { .name = "xla-cpu", .look = look_for_cpu },
};

bool cx_pjrt_has_surely(const char *name, const char *dev)
{
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name) != 0) continue;
    return known[i].is_surely_there != NULL && known[i].is_surely_there(dev);
  }
  return false;
}

// ---- by name ----

static void search_free(plugin_search *s)
{
  cx_free(s->found);
  cx_text_free(&s->looked);
}

// *out_path stays NULL if the variable does not contain the name.
static calx_status *find_registered(const char *name, char **out_path)
{
  const char *list = cx_env_text(REGISTERED);
  while (list != NULL && *list != '\0') {
    size_t size = strcspn(list, ",");
    const char *colon = memchr(list, ':', size);
    if (colon == NULL || colon == list || colon + 1 == list + size) {
      return cx_invalid(REGISTERED ": wants name:/path/lib.so, found '%.*s'",
                        (int)size, list);
    }
    size_t name_size = (size_t)(colon - list);
    size_t path_size = size - name_size - 1;
    if (name_size == strlen(name) && strncasecmp(name, list, name_size) == 0) {
      if (path_size > 5 && memcmp(list + size - 5, ".json", 5) == 0) {
        return cx_error(CALX_UNIMPLEMENTED,
                        REGISTERED
                        ": name the library of '%s' itself; files "
                        "of options are not read, found '%.*s'",
                        name, (int)path_size, colon + 1);
      }
      *out_path = cx_strndup(colon + 1, path_size);
      return *out_path == NULL ? cx_out_of_memory() : NULL;
    }
    list += size;
    if (*list == ',') list++;
  }
  return NULL;
}

static bool is_own(const char *name)
{
  return strcasecmp(name, "calx") == 0 || strcasecmp(name, "calx_cpu") == 0 ||
         strcasecmp(name, "cpu") == 0;
}

// Takes `path`, which is NULL where there was no memory for it.
static calx_status *choose(cx_pjrt_choice *out, const char *name, char *path)
{
  out->name = cx_strdup(name);
  out->path = path;
  return out->name != NULL && path != NULL ? NULL : cx_out_of_memory();
}

static calx_status *choose_own(cx_pjrt_choice *out)
{
  char file[PATH_MAX];  // the path of a program may be a link
  const char *path = calx_cpu_path();
  out->embedded = true;
  return choose(out, "calx",
                cx_strdup(realpath(path, file) != NULL ? file : path));
}

static calx_status *choose_known(const struct known *k, cx_pjrt_choice *out)
{
  plugin_search s = { 0 };
  k->look(&s);
  calx_status *status = NULL;
  if (s.found != NULL) {
    status = choose(out, k->name, s.found);
    s.found = NULL;
  } else if (s.failed) {
    status = cx_out_of_memory();
  } else {
    status = cx_error(CALX_NOT_FOUND,
                      "plugin '%s' was not found; looked for %s; `./dev setup "
                      "--engines` fetches it, or set CALX_PLUGIN to its path",
                      k->name, cx_text_str(&s.looked));
  }
  search_free(&s);
  return status;
}

static calx_status *find_named(const char *name, cx_pjrt_choice *out)
{
  char *registered = NULL;
  CALX_TRY(find_registered(name, &registered));
  if (registered != NULL) return choose(out, name, registered);
  if (is_own(name)) return choose_own(out);
  if (strcasecmp(name, "gpu") == 0) name = "cuda";
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcasecmp(name, known[i].name) == 0) {
      return choose_known(&known[i], out);
    }
  }
  return cx_error(CALX_NOT_FOUND,
                  "no plugin is called '%s'; there are calx, cpu, tpu, cuda, "
                  "xla-cpu and those that " REGISTERED
                  " names; a path has a '/' or ends in .so",
                  name);
}

static bool is_path(const char *s)
{
  size_t n = strlen(s);
  return strchr(s, '/') != NULL || (n > 3 && strcmp(s + n - 3, ".so") == 0);
}

// Chooses the first accelerator that the machine has and whose plugin exists,
// else the CPU.
static calx_status *find_automatic(const char *dev, cx_pjrt_choice *out)
{
  out->automatic = true;
  const char *name = NULL;
  bool failed = false;
  cx_text unused = { 0 };
  for (size_t i = 0; i < sizeof known / sizeof *known && name == NULL; i++) {
    const struct known *k = &known[i];
    if (k->is_there == NULL || !k->is_there(dev)) continue;
    plugin_search s = { 0 };
    k->look(&s);
    if (s.found != NULL) {
      name = k->name;
    } else if (k->is_surely_there(dev)) {
      cx_text_format(&unused,
                     "%s%s (under %s) is not used: its plugin '%s' was not "
                     "found; looked for %s; `./dev setup --engines` fetches "
                     "it, or set CALX_PLUGIN to its path (CALX_PLUGIN=calx: "
                     "without it)",
                     unused.size > 0 ? "; " : "", k->device, dev, k->name,
                     cx_text_str(&s.looked));
    }
    failed = failed || s.failed;
    search_free(&s);
  }
  failed = failed || cx_text_failed(&unused);
  if (unused.size > 0) out->unused = cx_text_take(&unused);
  cx_text_free(&unused);
  return failed ? cx_out_of_memory()
                : find_named(name != NULL ? name : "calx", out);
}

// What the environment names; NULL: nothing. A note on the variables of XRT
// comes with it.
static calx_status *ask_environment(cx_pjrt_choice *out,
                                    const char **out_wanted,
                                    const char **out_source)
{
  *out_wanted = cx_env_text(*out_source = "CALX_PLUGIN");
  if (*out_wanted == NULL) {
    *out_wanted = cx_env_text(*out_source = "PJRT_DEVICE");
  }
  cx_text note = { 0 };
  cx_pjrt_xrt_note(*out_wanted != NULL, &note);
  bool failed = cx_text_failed(&note);
  if (note.size > 0) out->old = cx_text_take(&note);
  cx_text_free(&note);
  if (*out_wanted == NULL) *out_wanted = cx_pjrt_xrt_device(out_source);
  return failed ? cx_out_of_memory() : NULL;
}

static calx_status *find(const char *name_or_path, const char *dev,
                         cx_pjrt_choice *out)
{
  const char *wanted = name_or_path, *source = NULL;
  if (wanted == NULL) CALX_TRY(ask_environment(out, &wanted, &source));
  if (wanted == NULL) return find_automatic(dev, out);
  if (is_path(wanted)) {
    out->path = cx_strdup(wanted);
    return out->path != NULL ? NULL : cx_out_of_memory();
  }
  calx_status *status = find_named(wanted, out);
  return source == NULL ? status : cx_annotate(status, "as %s says", source);
}

calx_status *cx_pjrt_find(const char *name_or_path, const char *dev,
                          cx_pjrt_choice *out_choice)
{
  *out_choice = (cx_pjrt_choice){ 0 };
  calx_status *status = find(name_or_path, dev, out_choice);
  if (status != NULL) cx_pjrt_choice_free(out_choice);
  return status;
}

cx_pjrt_kind cx_pjrt_kind_of(const char *name, const char *path)
{
  const char *slash = strrchr(path, '/');
  const char *file = slash == NULL ? path : slash + 1;
  if (name != NULL && strcmp(name, "tpu") == 0) return CX_PJRT_KIND_TPU;
  if (name != NULL && strcmp(name, "cuda") == 0) return CX_PJRT_KIND_CUDA;
  if (name != NULL && strcmp(name, "cpu") == 0) return CX_PJRT_KIND_CPU;
  if (name != NULL && strcmp(name, "calx") == 0) return CX_PJRT_KIND_CPU;
  if (strstr(file, "libtpu") != NULL) return CX_PJRT_KIND_TPU;
  if (strstr(file, "cuda") != NULL) return CX_PJRT_KIND_CUDA;
  if (strstr(file, "cpu") != NULL) return CX_PJRT_KIND_CPU;
  return CX_PJRT_KIND_OTHER;
}
