// base/log: lines for the user, and call sites that outlive their frames.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"

// ---- interned sites ---------------------------------------------------------

// A hash table with chains: the names of parameters and of their state are kept
// here too, so there can be tens of thousands.
typedef struct interned {
  struct interned *next;
  uint64_t hash;
  char text[];
} interned;

static cx_mutex intern_lock = CX_MUTEX_INIT;
static struct {
  interned **chains;
  size_t n_chains;  // a power of two, or 0
  size_t count;
} table;

// Twice as many chains. Without memory the table stays as it is.
static void table_grow(void)
{
  const size_t n = table.n_chains == 0 ? 256 : 2 * table.n_chains;
  interned **chains = calloc(n, sizeof *chains);
  if (chains == NULL) return;
  for (size_t i = 0; i < table.n_chains; i++) {
    for (interned *e = table.chains[i], *next; e != NULL; e = next) {
      next = e->next;
      e->next = chains[e->hash & (n - 1)];
      chains[e->hash & (n - 1)] = e;
    }
  }
  free(table.chains);
  table.chains = chains;
  table.n_chains = n;
}

// Entries live as long as the process. *out_new: whether it was not there.
static const char *intern(const char *s, bool *out_new)
{
  *out_new = true;
  if (s == NULL) return NULL;
  const size_t bytes = strlen(s) + 1;
  const uint64_t hash = cx_hash_bytes(s, bytes, 0).low;
  if (table.count >= table.n_chains) table_grow();
  if (table.n_chains == 0) return "?";
  interned **chain = &table.chains[hash & (table.n_chains - 1)];
  interned *found = *chain;
  while (found != NULL && strcmp(found->text, s) != 0) found = found->next;
  *out_new = found == NULL;
  if (found == NULL) {
    found = malloc(sizeof *found + bytes);
    if (found == NULL) return "?";
    memcpy(found->text, s, bytes);
    found->hash = hash;
    found->next = *chain;
    *chain = found;
    table.count++;
  }
  return found->text;
}

calx_site cx_site_intern(const calx_site *site)
{
  bool is_new;
  cx_lock(&intern_lock);
  calx_site out = { intern(site->file, &is_new), intern(site->func, &is_new),
                    site->line };
  cx_unlock(&intern_lock);
  return out;
}

// ---- log --------------------------------------------------------------------

static cx_mutex log_lock = CX_MUTEX_INIT;
static calx_log_fn *log_fn;
static void *log_user;
static void (*log_before)(void);

void calx_log_set(calx_log_fn *fn, void *user)
{
  cx_lock(&log_lock);
  log_fn = fn;
  log_user = user;
  cx_unlock(&log_lock);
}

void cx_log_set_before(void (*fn)(void))
{
  cx_lock(&log_lock);
  log_before = fn;
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
  void (*before)(void) = log_before;
  cx_unlock(&log_lock);
  if (fn != NULL) {
    fn(user, line);
  } else {
    if (before != NULL) before();
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

static void log_v(const char *format, va_list args)
{
  cx_text text = { 0 };
  put_who(&text);
  cx_text_format_v(&text, format, args);
  if (!cx_text_failed(&text)) log_line(cx_text_str(&text));
  cx_text_free(&text);
}

void cx_log(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  log_v(format, args);
  va_end(args);
}

void cx_log_failure(const char *what, calx_status *status)
{
  if (status != NULL) cx_log("%s: %s", what, cx_status_sentence(status));
  calx_status_free(status);
}

// Keys and sites that had a line are interned as one text. A name's end that is
// cut off may hide a line, never repeat one.
static bool first_time(const char *key, const calx_site *site)
{
  char text[1024];
  bool is_new;
  snprintf(text, sizeof text, "%s:%d:%s", key, site->line, cx_site_file(site));
  cx_lock(&intern_lock);
  intern(text, &is_new);
  cx_unlock(&intern_lock);
  return is_new;
}

int cx_log_once_per_site(const char *key, const char *format, ...)
{
  if (!first_time(key, cx_site())) return 0;
  va_list args;
  va_start(args, format);
  log_v(format, args);
  va_end(args);
  return 1;
}
