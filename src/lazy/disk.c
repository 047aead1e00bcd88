// lazy/disk: compiled programs on disk, shared by all processes without locks.
//
//   file = magic(8) version(4) checksum(16) sizes(3 x 8) key options program
//
// The name is a hash of the full key: the program's text, the compile options,
// the hash of the plugin's file (reported versions lie) and the CPU's model.
// The key itself is in the file and compared, so a collision is a miss. Damage
// is a miss too, and the file is written anew. The folder holds machine code:
// it is made for its owner only, and one that others can write is refused.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/metrics.h"
#include "lazy/internal.h"

CX_COUNTER(disk_hit, "PersistentCacheHit");
CX_COUNTER(disk_miss, "PersistentCacheMiss");
CX_COUNTER(disk_damaged, "PersistentCacheDamaged");

static const char magic[8] = { 'c', 'a', 'l', 'x', 'p', 'r', 'o', 'g' };
enum { FORMAT_VERSION = 1 };
static const size_t biggest_file = (size_t)1 << 31;

typedef struct header {
  char magic[8];
  uint32_t version, zero;
  cx_hash checksum;  // of everything after the header
  uint64_t key_size, options_size, program_size;
} header;

// ---- where ------------------------------------------------------------------

static bool folder_path(cx_text *out)
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
  return out->size != 0 && !cx_text_failed(out);
}

// Made for the owner only. One that belongs to somebody else, or that others
// may write, could hold their code.
static bool folder_safe(const char *path)
{
  calx_status *status = cx_folder_make(path, 0700);
  struct stat info;
  bool safe = status == NULL && stat(path, &info) == 0 &&
              S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
              (info.st_mode & 022) == 0;
  if (!safe) {
    cx_log_once_per_site(
        "cache", "the cache folder '%s' is not used: %s", path,
        status != NULL ? calx_status_message(status)
                       : "it is not this user's own, or others may write it");
  }
  calx_status_free(status);
  return safe;
}

bool cx_disk_enabled(cx_pjrt_client *client)
{
  const char *set = getenv("CALX_CACHE_DIR");
  if (set != NULL && strcmp(set, "off") == 0) return false;
  cx_hash hash;
  calx_status *status =
      cx_pjrt_plugin_hash(cx_pjrt_client_plugin(client), &hash);
  bool known = status == NULL;
  calx_status_free(status);
  cx_text folder = { 0 };
  bool ok = known && folder_path(&folder) && folder_safe(folder.data);
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

static bool file_path(const cx_text *key, const cx_disk_key *k, cx_text *out)
{
  cx_hash h = cx_hash_bytes(key->data, key->size, 1);
  cx_hash o = cx_hash_bytes(k->options, k->options_size, h.low);
  char hex[33];
  cx_hash_hex((cx_hash){ h.low ^ o.low, h.high ^ o.high }, hex);
  if (!folder_path(out)) return false;
  cx_text_format(out, "/%s.calxprog", hex);
  return !cx_text_failed(out);
}

// ---- reading ----------------------------------------------------------------

// The program's bytes inside a file's data; NULL: damaged, or another key.
static const char *program_in(const char *data, size_t size, const cx_text *key,
                              const cx_disk_key *k, size_t *out_size)
{
  header h;
  if (size < sizeof h) return NULL;
  memcpy(&h, data, sizeof h);
  size_t rest = size - sizeof h;
  const char *body = data + sizeof h;
  if (memcmp(h.magic, magic, sizeof magic) != 0 ||
      h.version != FORMAT_VERSION || h.key_size > rest ||
      h.options_size > rest - h.key_size ||
      h.program_size != rest - h.key_size - h.options_size ||
      !cx_hash_equal(h.checksum, cx_hash_bytes(body, rest, 0))) {
    return NULL;
  }
  if (h.key_size != key->size || memcmp(body, key->data, key->size) != 0 ||
      h.options_size != k->options_size ||
      memcmp(body + h.key_size, k->options, k->options_size) != 0) {
    return NULL;
  }
  *out_size = h.program_size;
  return body + h.key_size + h.options_size;
}

cx_pjrt_executable *cx_disk_load(cx_pjrt_client *client, const cx_disk_key *k,
                                 const cx_pjrt_compile_options *options,
                                 const cx_pjrt_signature *signature)
{
  cx_text key = { 0 }, path = { 0 };
  cx_pjrt_executable *executable = NULL;
  char *data = NULL;
  size_t size = 0, n;
  calx_status *status = NULL;
  if (full_key(client, k, &key) && file_path(&key, k, &path)) {
    status = cx_file_read(path.data, biggest_file, &data, &size);
  }
  if (data != NULL) {
    const char *bytes = program_in(data, size, &key, k, &n);
    if (bytes != NULL) {
      status = cx_pjrt_executable_deserialize(client, bytes, n, options,
                                              signature, &executable);
    }
    if (executable == NULL) cx_counter_add(&disk_damaged, 1);
  }
  cx_counter_add(executable != NULL ? &disk_hit : &disk_miss, 1);
  calx_status_free(status);  // a miss whatever it is
  cx_free(data);
  cx_text_free(&key);
  cx_text_free(&path);
  return executable;
}

// ---- writing ----------------------------------------------------------------

void cx_disk_store(cx_pjrt_client *client, const cx_disk_key *k,
                   cx_pjrt_executable *executable)
{
  cx_text key = { 0 }, path = { 0 }, file = { 0 };
  char *bytes = NULL;
  size_t n;
  calx_status *status = cx_pjrt_executable_serialize(executable, &bytes, &n);
  if (status == NULL && full_key(client, k, &key) &&
      file_path(&key, k, &path)) {
    header h = { .version = FORMAT_VERSION,
                 .key_size = key.size,
                 .options_size = k->options_size,
                 .program_size = n };
    memcpy(h.magic, magic, sizeof magic);
    cx_text_append_n(&file, (const char *)&h, sizeof h);
    cx_text_append_n(&file, key.data, key.size);
    cx_text_append_n(&file, k->options, k->options_size);
    cx_text_append_n(&file, bytes, n);
    if (!cx_text_failed(&file)) {
      h.checksum = cx_hash_bytes(file.data + sizeof h, file.size - sizeof h, 0);
      memcpy(file.data, &h, sizeof h);
      status = cx_file_write(path.data, file.data, file.size);
    }
  }
  if (status != NULL && calx_status_code(status) != CALX_UNIMPLEMENTED) {
    cx_log_once_per_site("cache", "a compiled program is not kept: %s",
                         calx_status_message(status));
  }
  calx_status_free(status);
  cx_free(bytes);
  cx_text_free(&key);
  cx_text_free(&path);
  cx_text_free(&file);
}
