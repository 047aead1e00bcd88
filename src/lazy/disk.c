// lazy/disk: compiled programs on disk, shared by all processes without locks.
//
// A file's name is a hash of the full key: the program's text, the compile
// options, the hash of the plugin's file (reported versions lie) and the CPU's
// model. The key itself is in the file and compared, so a collision is a miss.
// Damage is a miss too, and the file is written anew. The folder and the files
// are cache.h's.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/cache.h"
#include "lazy/internal.h"

CX_METRIC(load_time, "PersistentCacheLoad", CX_UNIT_NS);
CX_COUNTER(disk_hit, "PersistentCacheHit");
CX_COUNTER(disk_miss, "PersistentCacheMiss");
CX_COUNTER(disk_damaged, "PersistentCacheDeserializeFailure");

// ---- where ------------------------------------------------------------------

static bool folder_safe(const char *path)
{
  calx_status *status = cx_cache_make(path);
  bool safe = status == NULL;
  if (!safe) {
    cx_log_once_per_site("cache", "the cache folder '%s' is not used: %s", path,
                         cx_status_sentence(status));
  }
  calx_status_free(status);
  return safe;
}

bool cx_disk_enabled(cx_pjrt_client *client)
{
  cx_text folder = { 0 };
  bool ok = cx_cache_path(&folder);
  if (ok) {
    cx_hash hash;
    calx_status *status =
        cx_pjrt_plugin_hash(cx_pjrt_client_plugin(client), &hash);
    ok = status == NULL && folder_safe(folder.data);
    calx_status_free(status);
  }
  cx_text_free(&folder);
  return ok;
}

// The first "model name" of /proc/cpuinfo with its flags: code compiled for one
// CPU need not run on another.
static cx_hash cpu_hash(void)
{
  char *data;
  size_t size;
  calx_status *status =
      cx_file_read("/proc/cpuinfo", (size_t)1 << 24, &data, &size);
  if (status != NULL) {
    calx_status_free(status);
    return (cx_hash){ 0 };
  }
  cx_hash hash = { 0 };
  for (const char *p = data; *p != '\0' && *p != '\n';) {
    size_t n = strcspn(p, "\n");
    if (strncmp(p, "model name", 10) == 0 || strncmp(p, "flags", 5) == 0) {
      cx_hash h = cx_hash_bytes(p, n, hash.low);
      hash.low ^= h.low;
      hash.high ^= h.high;
    }
    p += n + (p[n] == '\n');
  }
  cx_free(data);
  return hash;
}

// All that must be equal for the bytes to be usable.
static bool full_key(cx_pjrt_client *client, const cx_disk_key *key,
                     cx_text *out)
{
  cx_hash plugin, cpu = cpu_hash();
  calx_status *status =
      cx_pjrt_plugin_hash(cx_pjrt_client_plugin(client), &plugin);
  if (status != NULL) {
    calx_status_free(status);
    return false;
  }
  char a[33], b[33];
  cx_hash_hex(plugin, a);
  cx_hash_hex(cpu, b);
  const char *xla = getenv("XLA_FLAGS"), *tpu = getenv("LIBTPU_INIT_ARGS");
  cx_text_format(out,
                 "plugin %s\ncpu %s\nplatform %s %s\ndevice %s\nflags %s "
                 "%s\n",
                 a, b, cx_pjrt_client_platform(client),
                 cx_pjrt_client_platform_version(client),
                 cx_pjrt_device_kind(client, 0), xla != NULL ? xla : "",
                 tpu != NULL ? tpu : "");
  cx_text_append_n(out, key->text, key->size);
  return !cx_text_failed(out);
}

typedef struct place {
  cx_text folder;
  char name[32 + sizeof CX_CACHE_SUFFIX];
} place;

static bool find_place(const cx_text *key, const cx_disk_key *k, place *out)
{
  cx_hash h = cx_hash_bytes(key->data, key->size, 1);
  cx_hash o = cx_hash_bytes(k->options, k->options_size, h.low);
  char hex[33];
  cx_hash_hex((cx_hash){ h.low ^ o.low, h.high ^ o.high }, hex);
  memcpy(out->name, hex, 32);
  memcpy(out->name + 32, CX_CACHE_SUFFIX, sizeof CX_CACHE_SUFFIX);
  return cx_cache_path(&out->folder);
}

// ---- reading ----------------------------------------------------------------

// Whether a file's data is a whole program of this key.
static bool usable(const char *data, size_t size, const cx_text *key,
                   const cx_disk_key *k, cx_cache_entry *e)
{
  return cx_cache_entry_read(data, size, e) == CX_CACHE_WHOLE &&
         e->key_size == key->size && e->options_size == k->options_size &&
         memcmp(e->key, key->data, key->size) == 0 &&
         memcmp(e->options, k->options, k->options_size) == 0;
}

cx_pjrt_executable *cx_disk_load(cx_pjrt_client *client, const cx_disk_key *k,
                                 const cx_pjrt_compile_options *options,
                                 const cx_pjrt_signature *signature)
{
  cx_text key = { 0 }, path = { 0 };
  place at = { 0 };
  cx_pjrt_executable *executable = NULL;
  char *data = NULL;
  size_t size = 0;
  calx_status *status = NULL;
  int64_t start = cx_now_ns();
  if (full_key(client, k, &key) && find_place(&key, k, &at)) {
    cx_text_format(&path, "%s/%s", at.folder.data, at.name);
    status = cx_text_failed(&path)
                 ? cx_out_of_memory()
                 : cx_file_read(path.data, CX_CACHE_BIGGEST, &data, &size);
  }
  if (data != NULL) {
    cx_cache_entry e;
    if (usable(data, size, &key, k, &e)) {
      status = cx_pjrt_executable_deserialize(client, e.bytes, e.n_bytes,
                                              options, signature, &executable);
    }
    if (executable == NULL) cx_counter_add(&disk_damaged, 1);
  }
  // The time of last use, where the folder may be written.
  if (executable != NULL) utimensat(AT_FDCWD, path.data, NULL, 0);
  if (executable != NULL) {
    cx_metric_add(&load_time, (double)(cx_now_ns() - start));
    cx_trace_ended(CX_SPAN_LOAD, cx_device_index_of_thread(), start,
                   (int64_t)size, k->site);
  }
  cx_counter_add(executable != NULL ? &disk_hit : &disk_miss, 1);
  calx_status_free(status);  // a miss whatever it is
  cx_free(data);
  cx_text_free(&key);
  cx_text_free(&path);
  cx_text_free(&at.folder);
  return executable;
}

// ---- writing ----------------------------------------------------------------

static calx_status *store(cx_pjrt_client *client, const cx_disk_key *k,
                          const cx_text *key, const place *at,
                          cx_pjrt_executable *executable)
{
  char *bytes = NULL;
  size_t n;
  CALX_TRY(cx_pjrt_executable_serialize(executable, &bytes, &n));
  char line[256] = "";
  if (k->site->file != NULL) {
    snprintf(line, sizeof line, "%s:%d", k->site->file, k->site->line);
  }
  cx_text file = { 0 };
  cx_cache_entry e = {
    .plugin = cx_pjrt_plugin_name(cx_pjrt_client_plugin(client)),
    .platform = cx_pjrt_client_platform(client),
    .program = line,
    .key = key->data,
    .options = k->options,
    .bytes = bytes,
    .key_size = key->size,
    .options_size = k->options_size,
    .n_bytes = n,
  };
  cx_cache_entry_write(&e, &file);
  cx_free(bytes);
  calx_status *status = cx_text_failed(&file)
                            ? cx_out_of_memory()
                            : cx_cache_keep(at->folder.data, at->name, &file);
  cx_text_free(&file);
  return status;
}

void cx_disk_store(cx_pjrt_client *client, const cx_disk_key *k,
                   cx_pjrt_executable *executable)
{
  if (cx_cache_limit() == 0) return;
  cx_text key = { 0 };
  place at = { 0 };
  calx_status *status = NULL;
  if (full_key(client, k, &key) && find_place(&key, k, &at)) {
    status = store(client, k, &key, &at, executable);
  }
  if (status != NULL && calx_status_code(status) != CALX_UNIMPLEMENTED) {
    cx_log_once_per_site("cache", "a compiled program is not kept: %s",
                         cx_status_sentence(status));
  }
  calx_status_free(status);
  cx_text_free(&key);
  cx_text_free(&at.folder);
}
