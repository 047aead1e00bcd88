// lazy/cache/cache: the folder of compiled programs and the form of its files,
// for the library (disk.c) and for `calx cache`.
//
// A program is kept in KEY.calxprog, where KEY is 32 hexadecimal digits;
// KEY.calxprog.PID-N is one that is being written, or whose writer died;
// KEY.calxprog.claim says that a process compiles it. No other file of the
// folder is looked into or removed. Its code is run, so a file that is not this
// user's own, or that others may write, is not read: it is compiled anew and
// replaced. All processes share the folder and its programs without locks.
// Files are created by rename and may be deleted while another process reads
// them.
#ifndef CX_LAZY_CACHE_H
#define CX_LAZY_CACHE_H

#include <dirent.h>

#include "base/text.h"

// ---- the folder -------------------------------------------------------------

typedef struct cx_lazy_cache_file {
  char name[96];
  bool unfinished;  // a claim too
  bool claim;
  uint64_t size;
  int64_t used;  // nanoseconds since 1970: the last hit, else the writing
} cx_lazy_cache_file;

typedef struct cx_lazy_cache {
  DIR *folder;
  cx_lazy_cache_file *files;  // the longest unused first
  size_t n, capacity;
  int64_t now;  // when it was opened
} cx_lazy_cache;

// Appends calx_cache_open()'s folder, else CALX_CACHE_DIR, else the user's
// cache folder; false: there is none, or it is switched off.
bool cx_lazy_cache_path(cx_text *out, bool *out_readonly);
void cx_lazy_cache_forget(void);  // what calx_cache_open() said

// Most bytes that the folder may hold, CALX_CACHE_SIZE; 0: nothing is written.
uint64_t cx_lazy_cache_limit(void);

// Checks a folder, which is made for the owner only. One that belongs to
// somebody else, or that others may write, could hold their code: it is
// refused, by cx_lazy_cache_open() too. readonly: it must be there, and may be
// root's.
calx_status *cx_lazy_cache_folder(const char *path,
                                  bool readonly) CALX_MUST_USE;

// All of our files in a folder; to be closed in any case.
calx_status *cx_lazy_cache_open(const char *path,
                                cx_lazy_cache *out) CALX_MUST_USE;
void cx_lazy_cache_close(cx_lazy_cache *c);

// Whether its writer must have died: an hour is more than a write takes.
bool cx_lazy_cache_stale(const cx_lazy_cache *c,
                         const cx_lazy_cache_file *file);

// False with errno when the file stays; one that is gone already is none, and a
// claim that is held is left alone.
bool cx_lazy_cache_remove(const cx_lazy_cache *c,
                          const cx_lazy_cache_file *file);

// Writes a file after the longest unused ones made room for it. The folder is
// read again after a sixteenth of the limit has been written: processes that
// write at once may exceed it by that much each.
calx_status *cx_lazy_cache_keep(const char *path, const char *name,
                                const cx_text *data) CALX_MUST_USE;

// ---- claims: who compiles what is not there yet -----------------------------

#define CX_LAZY_CACHE_SUFFIX ".calxprog"
#define CX_LAZY_CACHE_CLAIM ".claim"

typedef struct cx_lazy_cache_lock {
  int fd;
  cx_text path;
} cx_lazy_cache_lock;

// Claims a file that is not there. Where another process has claimed it, waits
// until that process has ended its claim, or has died: then the claim is this
// process's. False: another process held the claim, and may have written the
// file; or claims cannot be made here; or the time is over. To be ended in any
// case.
bool cx_lazy_cache_claim(const char *folder, const char *name, int64_t wait_ms,
                         cx_lazy_cache_lock *out);
void cx_lazy_cache_claim_end(cx_lazy_cache_lock *claim);

// Whether the claim's process lives; *out_pid: it, 0 when it did not say.
bool cx_lazy_cache_claim_held(const cx_lazy_cache *c,
                              const cx_lazy_cache_file *file, long *out_pid);
// As cx_lazy_cache_remove(), of a claim.
bool cx_lazy_cache_claim_remove(const cx_lazy_cache *c,
                                const cx_lazy_cache_file *file);

// ---- a file -----------------------------------------------------------------

#define CX_LAZY_CACHE_BIGGEST ((size_t)1 << 31)

typedef struct cx_lazy_cache_entry {
  const char *plugin, *platform, *program;  // for people; of 255 bytes at most
  const char *key, *options, *bytes;
  size_t key_size, options_size, n_bytes;
} cx_lazy_cache_entry;

typedef enum cx_lazy_cache_state {
  CX_LAZY_CACHE_WHOLE,
  CX_LAZY_CACHE_OTHER_FORMAT,  // of another release
  CX_LAZY_CACHE_DAMAGED,
} cx_lazy_cache_state;

// A whole file's data, of which nothing is believed. The entry's parts point
// into it.
cx_lazy_cache_state cx_lazy_cache_entry_read(const char *data, size_t size,
                                             cx_lazy_cache_entry *out);
void cx_lazy_cache_entry_write(const cx_lazy_cache_entry *e, cx_text *out);

#endif
