// cli/batch: see batch.h. A line is PROGRAM OUTDIR [INPUT…], separated by
// blanks; every line gets an answer, also one that is none. Answers come in the
// lines' order and are flushed one by one, so that a caller may wait for each.
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/alloc.h"
#include "base/status.h"
#include "lines.h"
#include "worker.h"

// ---- one line ----

typedef struct words {
  char *copy;
  const char **items;
  size_t n;
} words;

static void words_free(words *w)
{
  cx_free(w->copy);
  cx_free(w->items);
}

static bool words_split(const cx_text *line, words *out)
{
  *out = (words){ .copy = cx_strndup(cx_text_str(line), line->size) };
  const char *word;
  size_t size, n = 0;
  for (size_t at = 0; cx_cli_line_word(line, &at, &word, &size);) n++;
  out->items = cx_calloc(n + 1, sizeof *out->items);
  if (out->copy == NULL || out->items == NULL) return false;
  for (size_t at = 0; cx_cli_line_word(line, &at, &word, &size);) {
    char *start = out->copy + (word - line->data);
    start[size] = '\0';
    out->items[out->n++] = start;
  }
  return true;
}

// Why the line is none; NULL: it is one.
static const char *complaint(const cx_text *line)
{
  const char *word;
  size_t size, at = 0;
  if (line->size > CX_CLI_LINE_LIMIT) return "has more than 1 MiB";
  if (line->size > 0 && memchr(line->data, '\0', line->size) != NULL) {
    return "has a zero byte";
  }
  if (!cx_cli_line_word(line, &at, &word, &size)) return "is empty";
  if (!cx_cli_line_word(line, &at, &word, &size)) return "has no OUTDIR";
  return NULL;
}

static const char *answer_word(int code)
{
  switch (code) {
    case CX_CLI_OK: return "ok";
    case CX_CLI_INVALID: return "invalid";
    case CX_CLI_REFUSED: return "refused";
    default: return "failed";
  }
}

// The line has two words.
static void answer_line(cx_cli_runner *r, const cx_text *line, cx_text *out)
{
  words w;
  if (!words_split(line, &w)) {
    words_free(&w);
    out->failed = true;
    return;
  }
  cx_cli_job job = { .program = w.items[0],
                     .folder = w.items[1],
                     .inputs = w.items + 2,
                     .n_inputs = w.n - 2 };
  calx_status *status = NULL;
  int code = cx_cli_run(r, &job, &status);
  cx_text_format(out, "%s %s", answer_word(code), job.program);
  if (code != CX_CLI_OK) {
    cx_text_append(out, ": ");
    cx_cli_line_append(out, calx_status_message(status));
  }
  calx_status_free(status);
  words_free(&w);
}

// ---- in a child process ----

// Starts a worker and hears whether it could open its plugin. ANSWERED with an
// empty text: it is ready.
static calx_status *start(cx_cli_batch *b, cx_cli_worker *w,
                          cx_cli_heard *out_heard, cx_text *out)
{
  CALX_TRY(cx_cli_worker_start(w, &b->runner, answer_line));
  *out_heard = cx_cli_worker_hear(w, b->time_out, out);
  if (*out_heard != CX_CLI_ANSWERED) return NULL;
  if (strcmp(cx_text_str(out), CX_CLI_READY) == 0) {
    cx_text_clear(out);
    return NULL;
  }
  cx_cli_worker_stop(w);
  return cx_error_at(NULL, CALX_FAILED_PRECONDITION, "%s", cx_text_str(out));
}

// A crash in a worker that had run other programs may be theirs: then the
// program is tried again in a new one.
static calx_status *ask(cx_cli_batch *b, cx_cli_worker *w, const cx_text *line,
                        cx_cli_heard *out_heard, cx_text *out)
{
  bool fresh = w->pid == 0;
  if (fresh) {
    CALX_TRY(start(b, w, out_heard, out));
    if (*out_heard != CX_CLI_ANSWERED) return NULL;
  }
  cx_cli_worker_tell(w, line);
  *out_heard = cx_cli_worker_hear(w, b->time_out, out);
  if (*out_heard != CX_CLI_CRASHED || fresh) return NULL;
  return ask(b, w, line, out_heard, out);
}

static calx_status *answer_isolated(cx_cli_batch *b, cx_cli_worker *w,
                                    const cx_text *line, cx_text *out)
{
  cx_text said = { 0 };
  cx_cli_heard heard = CX_CLI_ANSWERED;
  calx_status *status = ask(b, w, line, &heard, &said);
  const char *program;
  size_t size, at = 0;
  cx_cli_line_word(line, &at, &program, &size);
  if (heard == CX_CLI_ANSWERED) {
    cx_text_append(out, cx_text_str(&said));
  } else if (heard == CX_CLI_CRASHED) {
    cx_text_format(out, "crashed %.*s: %s", (int)size, program,
                   cx_text_str(&said));
  } else {
    cx_text_format(out, "timeout %.*s", (int)size, program);
  }
  out->failed |= said.failed;
  cx_text_free(&said);
  return status;
}

// ---- all lines ----

static void answer_broken(const cx_text *line, size_t number, const char *why,
                          cx_text *out)
{
  const char *word = "-";
  size_t size = 1, at = 0;
  if (line->size > CX_CLI_LINE_LIMIT ||
      !cx_cli_line_word(line, &at, &word, &size) ||
      memchr(word, '\0', size) != NULL) {
    word = "-";
    size = 1;
  }
  cx_text_format(out,
                 "failed %.*s: line %zu %s; a line is PROGRAM OUTDIR "
                 "[INPUT...]",
                 (int)size, word, number, why);
}

static calx_status *answer_all(cx_cli_batch *b, cx_cli_worker *w)
{
  cx_text line = { 0 }, out = { 0 };
  calx_status *status = NULL;
  for (size_t number = 1; status == NULL && cx_cli_line_read(stdin, &line);
       number++) {
    const char *why = complaint(&line);
    cx_text_clear(&out);
    if (cx_text_failed(&line)) {
      status = cx_out_of_memory();
    } else if (why != NULL) {
      answer_broken(&line, number, why, &out);
    } else if (b->isolate) {
      status = answer_isolated(b, w, &line, &out);
    } else {
      answer_line(&b->runner, &line, &out);
    }
    if (status == NULL && cx_text_failed(&out)) status = cx_out_of_memory();
    if (status != NULL) break;
    puts(cx_text_str(&out));
    if (fflush(stdout) != 0) break;  // said by cx_cli_end()
  }
  cx_text_free(&line);
  cx_text_free(&out);
  return status;
}

int cx_cli_batch_run(cx_cli_batch *b)
{
  cx_cli_worker worker = { 0 };
  calx_status *status = NULL;
  if (!b->isolate) status = cx_cli_runner_open(&b->runner);
  if (status == NULL) status = answer_all(b, &worker);
  cx_cli_worker_stop(&worker);
  cx_cli_runner_close(&b->runner);
  int code = status == NULL ? CX_CLI_OK : CX_CLI_FAILED;
  cx_cli_complain(status);
  return cx_cli_end(code);
}
