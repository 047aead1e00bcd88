// lazy/cache: the folder of compiled programs and the form of its files, for
// the library (disk.c) and for `calx cache`.
//
// A program is kept in KEY.calxprog, where KEY is 32 hexadecimal digits;
// KEY.calxprog.PID-N is one that is being written, or whose writer died. No
// other file of the folder is looked into or removed. All processes share the
// folder without locks: files come by rename, and go under anybody's eyes.
#ifndef CX_LAZY_CACHE_H
#define CX_LAZY_CACHE_H

#include <dirent.h>

#include "base/text.h"

// ---- the folder -------------------------------------------------------------

typedef struct cx_cache_file {
  char name[96];
  bool unfinished;
  uint64_t size;
  int64_t used;  // nanoseconds since 1970: the last hit, else the writing
} cx_cache_file;

typedef struct cx_cache {
  DIR *folder;
  cx_cache_file *files;  // the longest unused first
  size_t n, capacity;
  int64_t now;  // when it was opened
} cx_cache;

// Appends CALX_CACHE_DIR, else the user's cache folder; false: there is none,
// or it is switched off.
bool cx_cache_path(cx_text *out);

// Most bytes that the folder may hold, CALX_CACHE_SIZE; 0: nothing is written.
uint64_t cx_cache_limit(void);

// Made for the owner only. One that belongs to somebody else, or that others
// may write, could hold their code: it is refused, by cx_cache_open() too.
calx_status *cx_cache_make(const char *path) CALX_MUST_USE;

// All of our files in a folder; to be closed in any case.
calx_status *cx_cache_open(const char *path, cx_cache *out) CALX_MUST_USE;
void cx_cache_close(cx_cache *c);

// Whether its writer must have died: an hour is more than a write takes.
bool cx_cache_stale(const cx_cache *c, const cx_cache_file *file);

// False with errno when the file stays; one that is gone already is none.
bool cx_cache_remove(const cx_cache *c, const cx_cache_file *file);

// Writes a file after the longest unused ones made room for it.
calx_status *cx_cache_keep(const char *path, const char *name,
                           const cx_text *data) CALX_MUST_USE;

// ---- a file -----------------------------------------------------------------

#define CX_CACHE_SUFFIX ".calxprog"
#define CX_CACHE_BIGGEST ((size_t)1 << 31)

typedef struct cx_cache_entry {
  const char *plugin, *platform, *program;  // for people; of 255 bytes at most
  const char *key, *options, *bytes;
  size_t key_size, options_size, n_bytes;
} cx_cache_entry;

typedef enum cx_cache_state {
  CX_CACHE_WHOLE,
  CX_CACHE_OTHER_FORMAT,  // of another release
  CX_CACHE_DAMAGED,
} cx_cache_state;

// A whole file's data, of which nothing is believed. The entry's parts point
// into it.
cx_cache_state cx_cache_entry_read(const char *data, size_t size,
                                   cx_cache_entry *out);
void cx_cache_entry_write(const cx_cache_entry *e, cx_text *out);

#endif
