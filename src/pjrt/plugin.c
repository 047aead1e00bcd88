// pjrt/plugin: loads a plugin's file, checks its table of functions, and keeps
// it.
//
// A file is loaded and initialised once in a process (libtpu takes a lock file
// then). It is never unloaded, because plugins leave threads behind. One lock
// guards the list of plugins and the loading. A table must have the major
// version 0, a minor version of at least 29 (jaxlib's rule) but not 56, whose
// slots are in another order, and the three functions on errors.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "abi/calx_cpu.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "pjrt/internal.h"

#define OLDEST_MINOR 29
#define REORDERED_MINOR 56
#define ATTRIBUTE_LIMIT 1024

static cx_mutex plugins_lock = CX_MUTEX_INIT;
static cx_pjrt_plugin *plugins;
static atomic_flag choice_was_reported = ATOMIC_FLAG_INIT;

// ---- the file ----

static calx_status *check_file(const char *path, struct stat *out_stat)
{
  if (stat(path, out_stat) != 0) {
    return cx_error(CALX_NOT_FOUND, "plugin '%s': %s", path, strerror(errno));
  }
  FILE *file = S_ISREG(out_stat->st_mode) ? fopen(path, "rb") : NULL;
  char magic[4] = { 0 };
  size_t n = file == NULL ? 0 : fread(magic, 1, sizeof magic, file);
  if (file != NULL) fclose(file);
  if (n != sizeof magic || memcmp(magic, "\177ELF", sizeof magic) != 0) {
    return cx_invalid("'%s' is not a plugin: it is not an ELF shared object",
                      path);
  }
  return NULL;
}

// Sets the variables that plugins read at their first call. A log level that
// the user has set stays. Without a chip libtpu would ask Google's metadata
// server for minutes, and would exclude other processes, although there is
// nothing to share.
static void prepare_environment(cx_pjrt_kind kind)
{
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  if (kind == CX_PJRT_KIND_TPU && !cx_pjrt_has_tpu("/dev")) {
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
  }
}

static calx_status *load_table(const char *path, const PJRT_Api **out_api)
{
  // dlopen() searches the system's folders for a path without '/'.
  cx_text file = { 0 };
  if (strchr(path, '/') == NULL) cx_text_append(&file, "./");
  cx_text_append(&file, path);
  if (cx_text_failed(&file)) return cx_out_of_memory();
  void *handle = dlopen(cx_text_str(&file), RTLD_NOW | RTLD_LOCAL);
  cx_text_free(&file);
  if (handle == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION, "plugin '%s' does not load: %s",
                    path, dlerror());
  }
  // POSIX makes dlsym()'s result callable, but C does not convert it: a copy
  // does.
  void *symbol = dlsym(handle, "GetPjrtApi");
  cx_abi_get_api_fn get_api = NULL;
  memcpy(&get_api, &symbol, sizeof get_api);
  if (get_api == NULL) {
    return cx_invalid("'%s' is not a plugin: it does not export GetPjrtApi",
                      path);
  }
  *out_api = get_api();
  if (*out_api == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "plugin '%s': GetPjrtApi returned nothing", path);
  }
  return NULL;
}

static calx_status *check_table(const cx_pjrt_plugin *p)
{
  const PJRT_Api *api = p->api;
  size_t needed = offsetof(PJRT_Api, PJRT_Error_Destroy);
  if (api->struct_size < needed) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "plugin '%s': its table has %zu bytes, the version alone "
                    "needs %zu",
                    p->path, api->struct_size, needed);
  }
  int major = api->pjrt_api_version.major_version;
  int minor = api->pjrt_api_version.minor_version;
  if (major != PJRT_API_MAJOR || minor < OLDEST_MINOR ||
      minor == REORDERED_MINOR) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "plugin '%s' speaks PJRT %d.%d; calx needs %d.%d or a "
                    "later %d.x, but not %d.%d",
                    p->path, major, minor, PJRT_API_MAJOR, OLDEST_MINOR,
                    PJRT_API_MAJOR, PJRT_API_MAJOR, REORDERED_MINOR);
  }
  if (!CX_PJRT_HAS(p, PJRT_Error_Destroy)) {
    return cx_pjrt_missing(p, "PJRT_Error_Destroy");
  }
  if (!CX_PJRT_HAS(p, PJRT_Error_Message)) {
    return cx_pjrt_missing(p, "PJRT_Error_Message");
  }
  if (!CX_PJRT_HAS(p, PJRT_Error_GetCode)) {
    return cx_pjrt_missing(p, "PJRT_Error_GetCode");
  }
  return NULL;
}

// ---- attributes ----

// The list is empty where the plugin has none or fails to report them.
static size_t attributes(const cx_pjrt_plugin *p, const PJRT_NamedValue **out)
{
  PJRT_Plugin_Attributes_Args args = { CX_PJRT_ARGS(
      PJRT_Plugin_Attributes_Args) };
  calx_status *status = CX_PJRT_CALL(p, PJRT_Plugin_Attributes, &args);
  bool ok = status == NULL && args.attributes != NULL;
  cx_pjrt_ignore(status);
  *out = args.attributes;
  if (!ok) return 0;
  return args.num_attributes < ATTRIBUTE_LIMIT ? args.num_attributes
                                               : ATTRIBUTE_LIMIT;
}

static bool has_attribute(const cx_pjrt_plugin *p, const char *name)
{
  const PJRT_NamedValue *values = NULL;
  size_t n = attributes(p, &values);
  for (size_t i = 0; i < n; i++) {
    if (values[i].name != NULL && values[i].name_size == strlen(name) &&
        memcmp(values[i].name, name, values[i].name_size) == 0) {
      return true;
    }
  }
  return false;
}

// ---- opening ----

static void plugin_free(cx_pjrt_plugin *p)
{
  if (p == NULL) return;
  cx_mutex_free(&p->lock);
  cx_free(p->name);
  cx_free(p->path);
  cx_free(p);
}

static cx_pjrt_plugin *plugin_new(const cx_pjrt_choice *choice,
                                  const struct stat *info)
{
  cx_pjrt_plugin *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  cx_mutex_init(&p->lock);
  const char *slash = strrchr(choice->path, '/');
  const char *file = slash == NULL ? choice->path : slash + 1;
  p->name = cx_strdup(choice->name != NULL ? choice->name : file);
  p->path = cx_strdup(choice->path);
  p->kind = cx_pjrt_kind_of(choice->name, choice->path);
  p->embedded = choice->embedded;
  p->device = info->st_dev;
  p->inode = info->st_ino;
  if (p->name == NULL || p->path == NULL) {
    plugin_free(p);
    return NULL;
  }
  return p;
}

// The caller holds plugins_lock.
static calx_status *open_file(const cx_pjrt_choice *choice,
                              cx_pjrt_plugin **out_plugin)
{
  struct stat info = { 0 };
  if (!choice->embedded) CALX_TRY(check_file(choice->path, &info));
  for (cx_pjrt_plugin *p = plugins; p != NULL; p = p->next) {
    if (p->embedded == choice->embedded && p->device == info.st_dev &&
        p->inode == info.st_ino) {
      *out_plugin = p;
      return NULL;
    }
  }
  cx_pjrt_plugin *p = plugin_new(choice, &info);
  if (p == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  if (p->embedded) {
    p->api = calx_cpu_api();
  } else {
    prepare_environment(p->kind);
    status = load_table(p->path, &p->api);
  }
  if (status == NULL) status = check_table(p);
  if (status == NULL) {
    PJRT_Plugin_Initialize_Args args = { CX_PJRT_ARGS(
        PJRT_Plugin_Initialize_Args) };
    status = CX_PJRT_CALL(p, PJRT_Plugin_Initialize, &args);
  }
  if (status != NULL) {
    plugin_free(p);
    return status;
  }
  p->is_xla = has_attribute(p, "xla_version");
  p->is_own = p->embedded || has_attribute(p, "calx_version");
  p->next = plugins;
  plugins = p;
  *out_plugin = p;
  return NULL;
}

// Tests set another folder.
static const char *dev_folder = "/dev";

void cx_pjrt_set_dev(const char *dev)
{
  dev_folder = dev != NULL ? dev : "/dev";
}

calx_status *cx_pjrt_plugin_open(const char *name_or_path,
                                 cx_pjrt_plugin **out_plugin)
{
  *out_plugin = NULL;
  cx_pjrt_choice choice;
  CALX_TRY(cx_pjrt_find(name_or_path, dev_folder, &choice));
  cx_lock(&plugins_lock);
  calx_status *status = open_file(&choice, out_plugin);
  cx_unlock(&plugins_lock);
  cx_pjrt_report_unused(&choice);
  cx_pjrt_report_old(&choice);
  const bool accelerator = choice.automatic && !choice.embedded;
  if (status == NULL) {
    atomic_store(&(*out_plugin)->automatic, accelerator);
  } else if (accelerator) {
    status = cx_pjrt_annotate_automatic(choice.name, status);
  }
  if (status == NULL && choice.automatic && !cx_pjrt_is_quiet() &&
      !atomic_flag_test_and_set(&choice_was_reported)) {
    const cx_pjrt_plugin *p = *out_plugin;
    cx_log(
        "device: plugin '%s' (%s, PJRT %d.%d); PJRT_DEVICE or CALX_PLUGIN "
        "choose another",
        p->name, p->path, p->api->pjrt_api_version.major_version,
        p->api->pjrt_api_version.minor_version);
  }
  cx_pjrt_choice_free(&choice);
  return status;
}

const char *cx_pjrt_plugin_expected(void)
{
  static const char *const names[] = { [CX_PJRT_KIND_OTHER] = NULL,
                                       [CX_PJRT_KIND_CPU] = "cpu",
                                       [CX_PJRT_KIND_TPU] = "tpu",
                                       [CX_PJRT_KIND_CUDA] = "cuda" };
  cx_pjrt_choice choice;
  calx_status *status = cx_pjrt_find(NULL, dev_folder, &choice);
  if (status != NULL) {  // whoever opens it is told
    calx_status_free(status);
    return NULL;
  }
  const cx_pjrt_kind kind = cx_pjrt_kind_of(choice.name, choice.path);
  cx_pjrt_choice_free(&choice);
  return names[kind];
}

bool cx_pjrt_machine_has(const char *name)
{
  return cx_pjrt_has_surely(name, dev_folder);
}

const char *cx_pjrt_plugin_name(const cx_pjrt_plugin *p)
{
  return p->name;
}

const char *cx_pjrt_plugin_path(const cx_pjrt_plugin *p)
{
  return p->path;
}

void cx_pjrt_plugin_version(const cx_pjrt_plugin *p, int *out_major,
                            int *out_minor)
{
  *out_major = p->api->pjrt_api_version.major_version;
  *out_minor = p->api->pjrt_api_version.minor_version;
}

calx_status *cx_pjrt_plugin_hash(cx_pjrt_plugin *p, cx_hash *out_hash)
{
  calx_status *status = NULL;
  cx_lock(&p->lock);
  if (!p->hashed) {
    status = p->embedded ? calx_cpu_identity(&p->hash)
                         : cx_hash_file(p->path, &p->hash);
    p->hashed = status == NULL;
  }
  *out_hash = p->hash;
  cx_unlock(&p->lock);
  return status;
}

calx_status *cx_pjrt_choices_save(int64_t **out, size_t *out_count)
{
  return calx_cpu_choices_save(out, out_count);
}

calx_status *cx_pjrt_choices_load(const int64_t *numbers, size_t count)
{
  return calx_cpu_choices_load(numbers, count);
}

void cx_pjrt_plugin_describe(cx_pjrt_plugin *p, cx_text *out)
{
  const PJRT_NamedValue *values = NULL;
  size_t n = attributes(p, &values);
  for (size_t i = 0; i < n; i++) {
    cx_pjrt_value_print(out, &values[i]);
    cx_text_char(out, '\n');
  }
}
