// base/status: one block per status: header, then the text.
//
// Call sites live in thread-local storage and are only copied into a status (or
// a graph node) as pointers: the strings are literals in C, and a binding
// promises that its own live as long as the process.
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/thread.h"

struct calx_status {
  calx_code code;
  bool is_static;
  bool has_site;
  calx_site site;
  char *message;
};

static _Thread_local calx_site current_site;
static atomic_long live;

static calx_status no_memory = {
  .code = CALX_RESOURCE_EXHAUSTED,
  .is_static = true,
  .message = (char[]){ "out of host memory: an allocation failed" },
};

void calx_at_(const calx_site *site)
{
  current_site = *site;
}
const calx_site *cx_site(void)
{
  return &current_site;
}

const char *calx_code_name(calx_code code)
{
  static const char *const names[] = { "OK",
                                       "CANCELLED",
                                       "UNKNOWN",
                                       "INVALID_ARGUMENT",
                                       "DEADLINE_EXCEEDED",
                                       "NOT_FOUND",
                                       "ALREADY_EXISTS",
                                       "PERMISSION_DENIED",
                                       "RESOURCE_EXHAUSTED",
                                       "FAILED_PRECONDITION",
                                       "ABORTED",
                                       "OUT_OF_RANGE",
                                       "UNIMPLEMENTED",
                                       "INTERNAL",
                                       "UNAVAILABLE",
                                       "DATA_LOSS",
                                       "UNAUTHENTICATED" };
  size_t k = (size_t)code;
  return k < sizeof names / sizeof *names ? names[k] : "UNKNOWN";
}

static calx_status *make(const calx_site *site, calx_code code, cx_text *text)
{
  calx_status *status = cx_alloc(sizeof *status);
  char *message = cx_text_take(text);
  if (status == NULL || message == NULL) {
    cx_free(status);
    cx_free(message);
    return &no_memory;
  }
  *status = (calx_status){ .code = code, .message = message };
  if (site != NULL && site->file != NULL) {
    status->has_site = true;
    status->site = *site;
  }
  atomic_fetch_add(&live, 1);
  return status;
}

static void format_v(cx_text *text, const char *format, va_list args)
{
  char stack[512];
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(stack, sizeof stack, format, args);
  if (n >= 0 && (size_t)n < sizeof stack) {
    cx_text_append_n(text, stack, (size_t)n);
  } else if (n >= 0) {
    char *heap = cx_alloc((size_t)n + 1);
    if (heap == NULL) {
      text->failed = true;
    } else {
      vsnprintf(heap, (size_t)n + 1, format, again);
      cx_text_append_n(text, heap, (size_t)n);
      cx_free(heap);
    }
  }
  va_end(again);
}

static calx_status *error_v(const calx_site *site, calx_code code,
                            const char *format, va_list args)
{
  cx_text text = { 0 };
  if (site != NULL && site->file != NULL) {
    cx_text_format(&text, "%s:%d: ", site->file, site->line);
    if (site->func != NULL) cx_text_format(&text, "in %s: ", site->func);
  }
  format_v(&text, format, args);
  return make(site, code, &text);
}

calx_status *cx_error(calx_code code, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  calx_status *status = error_v(&current_site, code, format, args);
  va_end(args);
  return status;
}

calx_status *calx_status_new(calx_code code, const char *format, ...)
{
  if (code == CALX_OK) return NULL;
  va_list args;
  va_start(args, format);
  calx_status *status = error_v(NULL, code, format, args);
  va_end(args);
  return status;
}

calx_status *cx_error_at(const calx_site *site, calx_code code,
                         const char *format, ...)
{
  va_list args;
  va_start(args, format);
  calx_status *status = error_v(site, code, format, args);
  va_end(args);
  return status;
}

calx_status *cx_annotate(calx_status *status, const char *format, ...)
{
  if (status == NULL || status->is_static) return status;
  cx_text text = { 0 };
  cx_text_append(&text, status->message);
  cx_text_append(&text, "; ");
  va_list args;
  va_start(args, format);
  format_v(&text, format, args);
  va_end(args);
  char *message = cx_text_take(&text);
  if (message != NULL) {
    cx_free(status->message);
    status->message = message;
  }
  return status;
}

calx_status *cx_out_of_memory(void)
{
  return &no_memory;
}

calx_status *cx_status_copy(const calx_status *status)
{
  if (status == NULL || status->is_static) return (calx_status *)status;
  cx_text text = { 0 };
  cx_text_append(&text, status->message);
  return make(status->has_site ? &status->site : NULL, status->code, &text);
}

calx_code calx_status_code(const calx_status *status)
{
  return status != NULL ? status->code : CALX_OK;
}

const char *calx_status_message(const calx_status *status)
{
  return status != NULL ? status->message : "ok";
}

const calx_site *calx_status_site(const calx_status *status)
{
  return status != NULL && status->has_site ? &status->site : NULL;
}

void calx_status_print(FILE *file, const calx_status *status)
{
  if (status == NULL) return;
  fprintf(file, "error: %s (%s)\n", status->message,
          calx_code_name(status->code));
}

void calx_status_free(calx_status *status)
{
  if (status == NULL || status->is_static) return;
  cx_free(status->message);
  cx_free(status);
  atomic_fetch_sub(&live, 1);
}

long cx_status_live(void)
{
  return atomic_load(&live);
}

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

void cx_log(const char *format, ...)
{
  cx_text text = { 0 };
  va_list args;
  va_start(args, format);
  format_v(&text, format, args);
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
  if (!first_time(key, &current_site)) return 0;
  cx_text text = { 0 };
  va_list args;
  va_start(args, format);
  format_v(&text, format, args);
  va_end(args);
  if (!cx_text_failed(&text)) log_line(cx_text_str(&text));
  cx_text_free(&text);
  return 1;
}
