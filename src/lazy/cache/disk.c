// lazy/cache/disk: compiled programs on disk, shared by all processes.
//
// A file's name is a hash of the full key: the program's text, the compile
// options, the hash of the plugin's file (reported versions lie) and the CPU's
// model. The key itself is in the file and compared, so a collision is a miss.
// Damage is a miss too, and the file is written anew. Of the processes that
// miss the same program, one compiles it and the others wait; where they
// cannot, all compile, and the last file stays. The folder and the files are
// cache.h's.
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
#include "lazy/cache/disk.h"
#include "lazy/internal.h"

CX_METRIC(load_time, "PersistentCacheLoad", CX_UNIT_NS);
CX_COUNTER(disk_hit, "PersistentCacheHit");
CX_COUNTER(disk_miss, "PersistentCacheMiss");
CX_COUNTER(disk_damaged, "PersistentCacheDeserializeFailure");

// ---- where ------------------------------------------------------------------

static bool folder_safe(const char *path, bool readonly)
{
  calx_status *status = cx_lazy_cache_folder(path, readonly);
  bool safe = status == NULL;
  if (!safe) {
    cx_log_once_per_site("cache", "the cache folder '%s' is not used: %s", path,
                         cx_status_sentence(status));
  }
  calx_status_free(status);
  return safe;
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
static bool full_key(cx_pjrt_client *client, const cx_lazy_disk_key *key,
                     cx_text *out)
{
  cx_hash plugin, cpu;
  calx_status *status =
      cx_pjrt_plugin_hash(cx_pjrt_client_plugin(client), &plugin);
  if (status != NULL) {
    calx_status_free(status);
    return false;
  }
  cpu = cpu_hash();
  char a[33], b[33];
  cx_hash_hex(plugin, a);
  cx_hash_hex(cpu, b);
  const char *xla = getenv("XLA_FLAGS"), *tpu = getenv("LIBTPU_INIT_ARGS");
  cx_text_format(out,
                 "plugin %s\ncpu %s\nplatform %s %s\ndevice %s\nflags %s "
                 "%s\n",
                 a, b, cx_pjrt_client_platform(client),
                 cx_pjrt_client_platform_version(client),
                 cx_pjrt_client_device(client, 0)->kind, xla != NULL ? xla : "",
                 tpu != NULL ? tpu : "");
  cx_text_append_n(out, key->text, key->size);
  return !cx_text_failed(out);
}

static void name_file(cx_lazy_disk_access *v)
{
  const cx_lazy_disk_key *k = v->key;
  cx_hash h = cx_hash_bytes(v->full.data, v->full.size, 1);
  cx_hash o = cx_hash_bytes(k->options, k->options_size, h.low);
  char hex[33];
  cx_hash_hex((cx_hash){ h.low ^ o.low, h.high ^ o.high }, hex);
  snprintf(v->name, sizeof v->name, "%.32s" CX_LAZY_CACHE_SUFFIX, hex);
  cx_text_format(&v->path, "%s/%s", v->folder.data, v->name);
}

void cx_lazy_disk_begin(cx_pjrt_client *client, const cx_lazy_disk_key *key,
                        cx_lazy_disk_access *out)
{
  *out = (cx_lazy_disk_access){ .client = client, .key = key, .claim.fd = -1 };
  if (!cx_lazy_cache_path(&out->folder, &out->readonly) ||
      !full_key(client, key, &out->full) ||
      !folder_safe(out->folder.data, out->readonly)) {
    return;
  }
  name_file(out);
  out->on = !cx_text_failed(&out->path);
  if (cx_lazy_cache_limit() == 0) out->readonly = true;
}

void cx_lazy_disk_end(cx_lazy_disk_access *v)
{
  cx_lazy_cache_claim_end(&v->claim);
  cx_text_free(&v->folder);
  cx_text_free(&v->full);
  cx_text_free(&v->path);
}

// ---- reading ----------------------------------------------------------------

// Whether a file's data is a whole program of this key.
static bool usable(const cx_lazy_disk_access *v, const char *data, size_t size,
                   cx_lazy_cache_entry *e)
{
  const cx_lazy_disk_key *k = v->key;
  return cx_lazy_cache_entry_read(data, size, e) == CX_LAZY_CACHE_WHOLE &&
         e->key_size == v->full.size && e->options_size == k->options_size &&
         memcmp(e->key, v->full.data, v->full.size) == 0 &&
         memcmp(e->options, k->options, k->options_size) == 0;
}

// A file that is there and is not believed.
static CX_COLD void report_refused(const calx_status *status)
{
  if (calx_status_code(status) != CALX_PERMISSION_DENIED) return;
  cx_log_once_per_site("cache entry",
                       "a compiled program is not taken from disk: %s",
                       cx_status_sentence(status));
}

// NULL: a miss, whatever the reason.
static cx_pjrt_executable *look(cx_lazy_disk_access *v,
                                const cx_pjrt_compile_options *options,
                                const cx_pjrt_signature *signature)
{
  int64_t start = cx_now_ns();
  char *data;
  size_t size;
  calx_status *status = cx_file_read_own(v->path.data, CX_LAZY_CACHE_BIGGEST,
                                         v->readonly, &data, &size);
  if (status != NULL) {
    report_refused(status);
    calx_status_free(status);
    return NULL;
  }
  cx_pjrt_executable *executable = NULL;
  cx_lazy_cache_entry e;
  if (usable(v, data, size, &e)) {
    status = cx_pjrt_executable_deserialize(v->client, e.bytes, e.n_bytes,
                                            options, signature, &executable);
  }
  v->damaged |= executable == NULL;
  if (executable != NULL) {
    cx_metric_add(&load_time, (double)(cx_now_ns() - start));
    cx_trace_ended(CX_SPAN_LOAD, cx_lazy_device_index_of_thread(), start,
                   (int64_t)size, v->key->site);
  }
  calx_status_free(status);
  cx_free(data);
  return executable;
}

// How long another process's compilation is waited for.
static int64_t wait_ms(void)
{
  int64_t seconds = cx_lazy_env_int("CALX_CACHE_WAIT_S", 600);
  if (seconds > INT32_MAX) seconds = INT32_MAX;
  return seconds < 0 ? 0 : seconds * 1000;
}

// A plugin that was seen not to serialise: nobody need wait for its programs.
static _Atomic(cx_pjrt_plugin *) keeps_nothing;

cx_pjrt_executable *cx_lazy_disk_load(cx_lazy_disk_access *v,
                                      const cx_pjrt_compile_options *options,
                                      const cx_pjrt_signature *signature)
{
  if (!v->on) return NULL;
  cx_pjrt_executable *executable = look(v, options, signature);
  if (executable == NULL && !v->readonly && !v->key->in_step &&
      atomic_load(&keeps_nothing) != cx_pjrt_client_plugin(v->client)) {
    cx_lazy_cache_claim(v->folder.data, v->name, wait_ms(), &v->claim);
    executable = look(v, options, signature);
  }
  // The time of last use, where the folder may be written.
  if (executable != NULL && !v->readonly) {
    utimensat(AT_FDCWD, v->path.data, NULL, AT_SYMLINK_NOFOLLOW);
  }
  if (v->damaged) cx_counter_add(&disk_damaged, 1);
  cx_counter_add(executable != NULL ? &disk_hit : &disk_miss, 1);
  return executable;
}

// ---- writing ----------------------------------------------------------------

static calx_status *store(cx_lazy_disk_access *v,
                          cx_pjrt_executable *executable)
{
  const cx_lazy_disk_key *k = v->key;
  char *bytes = NULL;
  size_t n;
  CALX_TRY(cx_pjrt_executable_serialize(executable, &bytes, &n));
  char line[256] = "";
  if (k->site->file != NULL) {
    snprintf(line, sizeof line, "%s:%d", k->site->file, k->site->line);
  }
  cx_text file = { 0 };
  cx_lazy_cache_entry e = {
    .plugin = cx_pjrt_plugin_name(cx_pjrt_client_plugin(v->client)),
    .platform = cx_pjrt_client_platform(v->client),
    .program = line,
    .key = v->full.data,
    .options = k->options,
    .bytes = bytes,
    .key_size = v->full.size,
    .options_size = k->options_size,
    .n_bytes = n,
  };
  cx_lazy_cache_entry_write(&e, &file);
  cx_free(bytes);
  calx_status *status =
      cx_text_failed(&file)
          ? cx_out_of_memory()
          : cx_lazy_cache_keep(v->folder.data, v->name, &file);
  cx_text_free(&file);
  return status;
}

void cx_lazy_disk_store(cx_lazy_disk_access *v, cx_pjrt_executable *executable)
{
  if (!v->on || v->readonly) return;
  calx_status *status = store(v, executable);
  if (calx_status_code(status) == CALX_UNIMPLEMENTED) {
    atomic_store(&keeps_nothing, cx_pjrt_client_plugin(v->client));
  } else if (status != NULL) {
    cx_log_once_per_site("cache", "a compiled program is not kept: %s",
                         cx_status_sentence(status));
  }
  calx_status_free(status);
}
