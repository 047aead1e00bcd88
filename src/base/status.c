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

struct calx_status {
  calx_code code;
  bool is_static;
  bool has_site;
  calx_site site;
  size_t sentence;  // where the message's begins, after the site
  char *message;
};

static _Thread_local calx_site current_site;
static atomic_long live;

static calx_status no_memory = {
  .code = CALX_RESOURCE_EXHAUSTED,
  .is_static = true,
  .message = (char[]){ "out of host memory: an allocation failed" },
};

calx_status cx_scope_ended = {
  .code = CALX_FAILED_PRECONDITION,
  .is_static = true,
  .message = (char[]){ "this tensor's scope has ended: retain the tensor "
                       "(calx_retain), or use it inside its scope" },
};

#define ABSENT(text)                                                      \
  {                                                                       \
    .code = CALX_INVALID_ARGUMENT, .is_static = true, .message = (char[]) \
    {                                                                     \
      text                                                                \
    }                                                                     \
  }
static calx_status absent[] = {
  [CX_ABSENT_DATASET] = ABSENT("the dataset is NULL"),
  [CX_ABSENT_SAMPLER] = ABSENT("the sampler is NULL"),
  [CX_ABSENT_LOADER] = ABSENT("the loader is NULL"),
  [CX_ABSENT_PARALLEL_LOADER] = ABSENT("the parallel loader is NULL"),
  [CX_ABSENT_LOGGER] = ABSENT("the logger is NULL"),
  [CX_ABSENT_METRIC] = ABSENT("the metric is NULL"),
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

static calx_status *make(const calx_site *site, calx_code code, cx_text *text,
                         size_t sentence)
{
  calx_status *status = cx_alloc(sizeof *status);
  char *message = cx_text_take(text);
  if (status == NULL || message == NULL) {
    cx_free(status);
    cx_free(message);
    return &no_memory;
  }
  *status =
      (calx_status){ .code = code, .sentence = sentence, .message = message };
  if (site != NULL && site->file != NULL) {
    status->has_site = true;
    status->site = *site;
  }
  atomic_fetch_add(&live, 1);
  return status;
}

static calx_status *error_v(const calx_site *site, calx_code code,
                            const char *format, va_list args)
{
  cx_text text = { 0 };
  if (site != NULL && site->file != NULL) {
    cx_text_format(&text, "%s:%d: ", site->file, site->line);
    if (site->func != NULL) cx_text_format(&text, "in %s: ", site->func);
  }
  size_t sentence = text.size;
  cx_text_format_v(&text, format, args);
  return make(site, code, &text, sentence);
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

calx_status *cx_invalid(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  calx_status *status =
      error_v(&current_site, CALX_INVALID_ARGUMENT, format, args);
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
  cx_text_format_v(&text, format, args);
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

calx_status *cx_absent(cx_absent_kind kind)
{
  return &absent[kind];
}

calx_status *cx_status_copy(const calx_status *status)
{
  if (status == NULL || status->is_static) return (calx_status *)status;
  cx_text text = { 0 };
  cx_text_append(&text, status->message);
  return make(status->has_site ? &status->site : NULL, status->code, &text,
              status->sentence);
}

calx_status *cx_status_first(calx_status *first, calx_status *second)
{
  if (first == NULL) return second;
  calx_status_free(second);
  return first;
}

calx_code calx_status_code(const calx_status *status)
{
  return status != NULL ? status->code : CALX_OK;
}

const char *calx_status_message(const calx_status *status)
{
  return status != NULL ? status->message : "ok";
}

const char *cx_status_sentence(const calx_status *status)
{
  return status->message + status->sentence;
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
