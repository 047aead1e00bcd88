// world/output: see output.h. Everything here happens on the launcher's one
// thread; children that write faster than it passes on wait on their pipes.
#include "world/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

enum {
  PIECE = 64 << 10,    // bytes read at once
  ROUNDS = 8,          // such pieces of one stream before the next one's turn
  LONGEST = 16 << 20,  // a line is cut there
};

typedef struct stream {
  int from, to;   // the pipe's ends; -1: closed
  int write_to;   // this process's stream
  int log;        // -1: none
  cx_text held;   // a line's beginning
  char name[48];  // "3", "host-a:3"
} stream;

struct cx_output {
  cx_output_options options;
  int count;
  stream *streams;  // [2 * count]: out and err of each child
  bool begun;       // the log files have been emptied
  char *piece;      // [PIECE]
};

calx_status *cx_output_new(const cx_output_options *options, cx_output **out)
{
  *out = NULL;
  if (options->log_dir != NULL) {
    CALX_TRY(cx_folder_make(options->log_dir, 0777));
  }
  cx_output *o = cx_calloc(1, sizeof *o);
  char *piece = cx_alloc(PIECE);
  if (o == NULL || piece == NULL) {
    cx_free(o);
    cx_free(piece);
    return cx_out_of_memory();
  }
  o->options = *options;
  o->piece = piece;
  *out = o;
  return NULL;
}

// ---- opening and closing ----------------------------------------------------

static void close_fd(int *fd)
{
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void close_streams(cx_output *o)
{
  for (int i = 0; i < 2 * o->count; i++) {
    close_fd(&o->streams[i].from);
    close_fd(&o->streams[i].to);
    close_fd(&o->streams[i].log);
    cx_text_free(&o->streams[i].held);
  }
  cx_free(o->streams);
  o->streams = NULL;
  o->count = 0;
}

void cx_output_free(cx_output *output)
{
  if (output == NULL) return;
  close_streams(output);
  cx_free(output->piece);
  cx_free(output);
}

static calx_status *open_log(const cx_output *o, int rank, bool err, int *out)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/rank_%d.%s", o->options.log_dir, rank,
                 err ? "err" : "out");
  if (cx_text_failed(&path)) {
    cx_text_free(&path);
    return cx_out_of_memory();
  }
  *out =
      open(cx_text_str(&path),
           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (o->begun ? 0 : O_TRUNC),
           0666);
  calx_status *status = NULL;
  if (*out < 0) {
    status = cx_error(CALX_FAILED_PRECONDITION, "cannot write '%s': %s",
                      cx_text_str(&path), strerror(errno));
  }
  cx_text_free(&path);
  return status;
}

static calx_status *open_stream(const cx_output *o, int rank, bool err,
                                stream *s)
{
  *s = (stream){ .from = -1, .to = -1, .log = -1 };
  s->write_to = err ? STDERR_FILENO : STDOUT_FILENO;
  snprintf(s->name, sizeof s->name, "%.30s%d",
           o->options.place != NULL ? o->options.place : "", rank);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "rank %d: no pipe for it: %s",
                    rank, strerror(errno));
  }
  s->from = ends[0];
  s->to = ends[1];
  fcntl(s->from, F_SETFL, O_NONBLOCK);
  return o->options.log_dir != NULL ? open_log(o, rank, err, &s->log) : NULL;
}

calx_status *cx_output_begin(cx_output *output, int first, int count)
{
  stream *streams = cx_calloc(2 * (size_t)count, sizeof *streams);
  if (streams == NULL) return cx_out_of_memory();
  output->streams = streams;
  for (int i = 0; i < count; i++) {
    for (int err = 0; err < 2; err++) {
      output->count = i + 1;
      if (err == 0) streams[2 * i + 1] = (stream){ -1, -1, -1, -1, { 0 }, "" };
      calx_status *status =
          open_stream(output, first + i, err != 0, &streams[2 * i + err]);
      if (status == NULL) continue;
      close_streams(output);
      return status;
    }
  }
  output->begun = true;
  return NULL;
}

void cx_output_be_child(cx_output *output, int index)
{
  dup2(output->streams[2 * index].to, STDOUT_FILENO);
  dup2(output->streams[2 * index + 1].to, STDERR_FILENO);
  // Its brothers' pipes would keep their ends from being seen.
  for (int i = 0; i < 2 * output->count; i++) {
    close_fd(&output->streams[i].from);
    close_fd(&output->streams[i].to);
    close_fd(&output->streams[i].log);
  }
}

void cx_output_be_parent(cx_output *output)
{
  for (int i = 0; i < 2 * output->count; i++) close_fd(&output->streams[i].to);
}

// ---- lines ------------------------------------------------------------------

// A stream that nobody reads any more loses its lines; the ranks go on.
static void write_all(int fd, const char *data, size_t size)
{
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EAGAIN) {
      poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 1000);
      continue;
    }
    if (n < 0 && errno != EINTR) return;
    if (n > 0) {
      data += n;
      size -= (size_t)n;
    }
  }
}

static void append_prefix(const cx_output *o, const stream *s, cx_text *out)
{
  if (o->options.bare) return;
  if (!o->options.tag) {
    cx_text_format(out, "[%s] ", s->name);
    return;
  }
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &parts);
  cx_text_format(out, "[%s %02d:%02d:%02d.%03d %s] ", s->name, parts.tm_hour,
                 parts.tm_min, parts.tm_sec, (int)(now.tv_nsec / 1000000),
                 s->write_to == STDERR_FILENO ? "err" : "out");
}

static void write_line(const cx_output *o, stream *s, const char *line,
                       size_t size)
{
  cx_text out = { 0 };
  append_prefix(o, s, &out);
  cx_text_append_n(&out, cx_text_str(&s->held), s->held.size);
  cx_text_append_n(&out, line, size);
  cx_text_char(&out, '\n');
  if (!cx_text_failed(&out)) write_all(s->write_to, out.data, out.size);
  cx_text_free(&out);
  cx_text_clear(&s->held);
}

static void take(const cx_output *o, stream *s, const char *data, size_t size)
{
  if (s->log >= 0) write_all(s->log, data, size);
  while (size > 0) {
    const char *end = memchr(data, '\n', size);
    size_t n = end != NULL ? (size_t)(end - data) : size;
    if (end != NULL) {
      write_line(o, s, data, n);
    } else {
      cx_text_append_n(&s->held, data, n);
      if (s->held.size >= LONGEST || cx_text_failed(&s->held)) {
        write_line(o, s, "", 0);
        cx_text_free(&s->held);
      }
    }
    data += n + (end != NULL ? 1 : 0);
    size -= n + (end != NULL ? 1 : 0);
  }
}

// What is there now, or `rounds` pieces of it.
static void read_stream(const cx_output *o, stream *s, int rounds)
{
  while (s->from >= 0 && rounds-- > 0) {
    ssize_t n = read(s->from, o->piece, PIECE);
    if (n > 0) {
      take(o, s, o->piece, (size_t)n);
    } else if (n == 0) {
      close_fd(&s->from);
    } else if (errno != EINTR) {
      if (errno != EAGAIN) close_fd(&s->from);
      return;
    }
  }
}

nfds_t cx_output_polled(const cx_output *output, struct pollfd *out)
{
  nfds_t n = 0;
  for (int i = 0; i < 2 * output->count; i++) {
    if (output->streams[i].from < 0) continue;
    out[n++] =
        (struct pollfd){ .fd = output->streams[i].from, .events = POLLIN };
  }
  return n;
}

void cx_output_pass(cx_output *output)
{
  for (int i = 0; i < 2 * output->count; i++) {
    read_stream(output, &output->streams[i], ROUNDS);
  }
}

void cx_output_end(cx_output *output)
{
  enum { LAST_ROUNDS = 1024 };  // a pipe's worth, many times
  for (int i = 0; i < 2 * output->count; i++) {
    stream *s = &output->streams[i];
    read_stream(output, s, LAST_ROUNDS);
    if (s->held.size > 0) write_line(output, s, "", 0);
  }
  close_streams(output);
}
