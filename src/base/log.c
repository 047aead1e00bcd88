// base/log: the library's few lines, and the places that outlive their frames.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"

// ---- interned sites ---------------------------------------------------------

// A plain list: it holds one entry for each file and function of a program that
// outlived its frame, a few hundred at most, and is read only on slow paths.
typedef struct interned {
  struct interned *next;
  char text[];
} interned;

static cx_mutex intern_lock = CX_MUTEX_INIT;
static interned *intern_list;

static const char *intern(const char *s)
{
  if (s == NULL) return NULL;
  interned *found = intern_list;
  while (found != NULL && strcmp(found->text, s) != 0) found = found->next;
  if (found == NULL) {
    size_t n = strlen(s) + 1;
    found = malloc(sizeof *found + n);  // kept for the life of the process
    if (found == NULL) return "?";
    memcpy(found->text, s, n);
    found->next = intern_list;
    intern_list = found;
  }
  return found->text;
}

calx_site cx_site_intern(const calx_site *site)
{
  cx_lock(&intern_lock);
  calx_site out = { intern(site->file), intern(site->func), site->line };
  cx_unlock(&intern_lock);
  return out;
}

// ---- log --------------------------------------------------------------------

static cx_mutex log_lock = CX_MUTEX_INIT;
static calx_log_fn *log_fn;
static void *log_user;

void calx_log_set(calx_log_fn *fn, void *user)
{
  cx_lock(&log_lock);
  log_fn = fn;
  log_user = user;
  cx_unlock(&log_lock);
}

// A thread's lines that wait, each with its final zero.
static _Thread_local struct {
  cx_text text;
  int depth;
} held;

static void log_line(const char *line)
{
  if (held.depth > 0) {
    cx_text_append_n(&held.text, line, strlen(line) + 1);
    return;
  }
  cx_lock(&log_lock);
  calx_log_fn *fn = log_fn;
  void *user = log_user;
  cx_unlock(&log_lock);
  if (fn != NULL) {
    fn(user, line);
  } else {
    fprintf(stderr, "calx: %s\n", line);
  }
}

void cx_log_hold_begin(void)
{
  held.depth++;
}

void cx_log_hold_end(void)
{
  if (--held.depth > 0) return;
  cx_text text = held.text;  // what the callback logs comes after it
  held.text = (cx_text){ 0 };
  for (size_t at = 0; at < text.size; at += strlen(text.data + at) + 1) {
    log_line(text.data + at);
  }
  cx_text_free(&text);
}

// ---- whose lines they are ---------------------------------------------------

static _Thread_local int own_rank = -1;
static atomic_int own_process = -1;

void cx_log_set_rank(int rank)
{
  own_rank = rank;
}

void cx_log_set_process(int process)
{
  atomic_store(&own_process, process);
}

static void put_who(cx_text *text)
{
  int process = atomic_load(&own_process);
  if (own_rank >= 0) {
    cx_text_format(text, "rank %d: ", own_rank);
  } else if (process >= 0) {
    cx_text_format(text, "process %d: ", process);
  }
}

void cx_log(const char *format, ...)
{
  cx_text text = { 0 };
  put_who(&text);
  va_list args;
  va_start(args, format);
  cx_text_format_v(&text, format, args);
  va_end(args);
  if (!cx_text_failed(&text)) log_line(cx_text_str(&text));
  cx_text_free(&text);
}

typedef struct seen {
  struct seen *next;
  const char *key, *file;
  int line;
} seen;

static seen *seen_list;  // guarded by intern_lock

static bool first_time(const char *key, const calx_site *site)
{
  cx_lock(&intern_lock);
  const char *k = intern(key), *file = intern(site->file);
  seen *s = seen_list;
  while (s != NULL &&
         !(s->key == k && s->file == file && s->line == site->line)) {
    s = s->next;
  }
  bool first = s == NULL;
  if (first && (s = malloc(sizeof *s)) != NULL) {
    *s = (seen){ seen_list, k, file, site->line };
    seen_list = s;
  }
  cx_unlock(&intern_lock);
  return first;
}

int cx_log_once_per_site(const char *key, const char *format, ...)
{
  if (!first_time(key, cx_site())) return 0;
  cx_text text = { 0 };
  put_who(&text);
  va_list args;
  va_start(args, format);
  cx_text_format_v(&text, format, args);
  va_end(args);
  if (!cx_text_failed(&text)) log_line(cx_text_str(&text));
  cx_text_free(&text);
  return 1;
}
