// lazy/cache/disk: compiled programs in the disk cache.
#ifndef CX_LAZY_DISK_H
#define CX_LAZY_DISK_H

#include "calx/status.h"
#include "lazy/cache/cache.h"
#include "pjrt/pjrt.h"

typedef struct cx_lazy_disk_key {
  const char *text;  // the program without locations
  size_t size;
  const char *options;
  size_t options_size;
  const calx_site *site;  // who compiles it: for people, no part of the key
  bool in_step;           // all processes compile it: none waits for another
} cx_lazy_disk_key;

// One program's access to the cache.
typedef struct cx_lazy_disk_access {
  cx_pjrt_client *client;
  const cx_lazy_disk_key *key;
  bool on;        // false: there is no cache, nothing is found or kept
  bool readonly;  // waits for nobody either
  bool damaged;   // a file was
  cx_text full, folder, path;
  char name[32 + sizeof CX_LAZY_CACHE_SUFFIX];
  cx_lazy_cache_lock claim;
} cx_lazy_disk_access;
// To be ended in any case; the key must stay until then.
void cx_lazy_disk_begin(cx_pjrt_client *client, const cx_lazy_disk_key *key,
                        cx_lazy_disk_access *out);
// NULL: the program is to be compiled here. Other processes may know this by
// now, and wait until the access ends.
cx_pjrt_executable *cx_lazy_disk_load(cx_lazy_disk_access *v,
                                      const cx_pjrt_compile_options *options,
                                      const cx_pjrt_signature *signature);
void cx_lazy_disk_store(cx_lazy_disk_access *v, cx_pjrt_executable *executable);
void cx_lazy_disk_end(cx_lazy_disk_access *v);

// Counts a program that is compiled, and returns its number.
long cx_lazy_program_count_add(void);
void cx_lazy_program_count_reset(void);

#endif
