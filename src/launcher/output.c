// launcher/output: see output.h. All of it runs on the launcher's one thread. A
// child that writes faster than its lines are forwarded blocks on its pipe.
#include "launcher/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

enum {
  READ_BYTES = 64 << 10,  // at once
  READS = 8,              // of one stream before the next one's turn
  MAX_LINE = 16 << 20,    // bytes; a longer line is cut
  FULL = 1 << 20          // bytes in a queue that takes no more lines
};

// The standard output or error of a rank.
typedef struct rank_stream {
  int rank;
  bool err;
  int from, to;  // the pipe's ends; -1: closed
  int log;       // -1: none
  cx_text held;  // the beginning of a line
} rank_stream;

// Lines to be written to one of this process's own streams.
typedef struct line_queue {
  int fd;
  cx_text lines;
  size_t written;
} line_queue;

struct cx_launcher_output {
  cx_launcher_output_options options;
  int count;
  rank_stream *streams;  // [count]: out and err of each child
  bool begun;            // the log files have been emptied
  bool ended;            // the last lines are taken
  line_queue queues[2];  // of standard output and error
  size_t lost;           // bytes
  char where[128];       // which stream lost the first of them, and why
};

calx_status *cx_launcher_output_new(const cx_launcher_output_options *options,
                                    cx_launcher_output **out)
{
  *out = NULL;
  if (options->log_dir != NULL) {
    CALX_TRY(cx_folder_make(options->log_dir, 0777));
  }
  cx_launcher_output *o = cx_calloc(1, sizeof *o);
  if (o == NULL) return cx_out_of_memory();
  o->options = *options;
  o->begun = options->again;
  o->queues[0].fd = STDOUT_FILENO;
  o->queues[1].fd = STDERR_FILENO;
  *out = o;
  return NULL;
}

// ---- opening and closing ----------------------------------------------------

static void close_fd(int *fd)
{
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void close_all(const cx_launcher_output *o)
{
  for (int i = 0; i < o->count; i++) {
    close_fd(&o->streams[i].from);
    close_fd(&o->streams[i].to);
    close_fd(&o->streams[i].log);
  }
}

void cx_launcher_output_end(cx_launcher_output *o)
{
  close_all(o);
  for (int i = 0; i < o->count; i++) cx_text_free(&o->streams[i].held);
  cx_free(o->streams);
  o->streams = NULL;
  o->count = 0;
  for (int i = 0; i < 2; i++) {
    cx_text_free(&o->queues[i].lines);
    o->queues[i].written = 0;
  }
}

void cx_launcher_output_free(cx_launcher_output *output)
{
  if (output == NULL) return;
  cx_launcher_output_end(output);
  cx_free(output);
}

static calx_status *open_log(const cx_launcher_output *o, rank_stream *s)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/rank_%d.%s", o->options.log_dir, s->rank,
                 s->err ? "err" : "out");
  calx_status *status = NULL;
  if (cx_text_failed(&path)) {
    status = cx_out_of_memory();
  } else {
    s->log = open(path.data,
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
                      O_NONBLOCK | O_NOCTTY | (o->begun ? 0 : O_TRUNC),
                  0666);
  }
  if (status == NULL && s->log < 0) {
    status = cx_error(CALX_FAILED_PRECONDITION, "cannot write '%s': %s",
                      path.data, strerror(errno));
  }
  cx_text_free(&path);
  return status;
}

static calx_status *open_stream(const cx_launcher_output *o, rank_stream *s)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "rank %d: no pipe for it: %s",
                    s->rank, strerror(errno));
  }
  s->from = ends[0];
  s->to = ends[1];
  fcntl(s->from, F_SETFL, O_NONBLOCK);
  return o->options.log_dir != NULL ? open_log(o, s) : NULL;
}

calx_status *cx_launcher_output_begin(cx_launcher_output *output, int first,
                                      int count)
{
  calx_status *status = NULL;
  output->streams = cx_calloc(2 * (size_t)count, sizeof *output->streams);
  if (output->streams == NULL) return cx_out_of_memory();
  for (int i = 0; status == NULL && i < 2 * count; i++) {
    rank_stream *s = &output->streams[output->count++];
    *s = (rank_stream){ first + i / 2, i % 2 != 0, -1, -1, -1, { 0 } };
    status = open_stream(output, s);
  }
  if (status != NULL) {
    cx_launcher_output_end(output);
    return status;
  }
  output->begun = true;
  output->ended = false;
  return NULL;
}

void cx_launcher_output_be_child(cx_launcher_output *output, int index)
{
  dup2(output->streams[2 * index].to, STDOUT_FILENO);
  dup2(output->streams[2 * index + 1].to, STDERR_FILENO);
  // An open copy of another child's pipe would hide the end of its stream.
  close_all(output);
}

void cx_launcher_output_be_parent(cx_launcher_output *output)
{
  for (int i = 0; i < output->count; i++) close_fd(&output->streams[i].to);
}

// ---- lines ------------------------------------------------------------------

static size_t queued(const line_queue *q)
{
  return q->lines.size - q->written;
}

static bool is_full(const cx_launcher_output *o, const rank_stream *s)
{
  return queued(&o->queues[s->err]) >= FULL;
}

// Logs the first loss. The ranks continue, and the launcher reports the loss
// again at its end.
static void note_loss(cx_launcher_output *o, const char *what, size_t size,
                      int error)
{
  if (error == EPIPE) return;
  if (o->lost == 0) {
    snprintf(o->where, sizeof o->where, "%s: %s", what, strerror(error));
    cx_log("the ranks' output is lost: %s", o->where);
  }
  o->lost += size;
}

calx_status *cx_launcher_output_lost(const cx_launcher_output *o)
{
  if (o->lost == 0) return NULL;
  return cx_error(CALX_DATA_LOSS, "%zu bytes that ranks wrote are lost: %s",
                  o->lost, o->where);
}

// Writes as much as it can without waiting: a pipe that poll() reports ready
// takes PIPE_BUF bytes. The descriptor stays in blocking mode, because other
// programs share it. Where no reader is left the lines are dropped.
static void write_queue(cx_launcher_output *o, line_queue *q)
{
  struct pollfd to = { .fd = q->fd, .events = POLLOUT };
  while (queued(q) > 0 && poll(&to, 1, 0) > 0) {
    size_t size = queued(q) < PIPE_BUF ? queued(q) : PIPE_BUF;
    ssize_t n = write(to.fd, q->lines.data + q->written, size);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0 && errno != EINTR) {
      bool err = q->fd == STDERR_FILENO;
      note_loss(o, err ? "standard error" : "standard output", queued(q),
                errno);
      q->written = q->lines.size;
    }
    if (n > 0) q->written += (size_t)n;
  }
  if (queued(q) > 0) return;
  cx_text_clear(&q->lines);
  q->written = 0;
}

// Removes the written part, so that the queue does not grow without limit.
static void drop_written(line_queue *q)
{
  if (q->written < FULL) return;
  q->lines.size -= q->written;
  memmove(q->lines.data, q->lines.data + q->written, q->lines.size + 1);
  q->written = 0;
}

// Writes to a file do not wait.
static void write_log(cx_launcher_output *o, const rank_stream *s,
                      const char *data, size_t size)
{
  char name[64];
  while (size > 0) {
    ssize_t n = write(s->log, data, size);
    if (n < 0 && errno != EINTR) {
      snprintf(name, sizeof name, "the log folder's rank_%d.%s", s->rank,
               s->err ? "err" : "out");
      note_loss(o, name, size, errno);
      return;
    }
    if (n > 0) {
      data += n;
      size -= (size_t)n;
    }
  }
}

static void append_prefix(const cx_launcher_output *o, const rank_stream *s,
                          cx_text *out)
{
  const char *host = o->options.host != NULL ? o->options.host : "";
  if (o->options.bare) return;
  if (!o->options.tag) {
    cx_text_format(out, "[%s%d] ", host, s->rank);
    return;
  }
  struct timespec now;
  struct tm local;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &local);
  cx_text_format(out, "[%s%d %02d:%02d:%02d.%03d %s] ", host, s->rank,
                 local.tm_hour, local.tm_min, local.tm_sec,
                 (int)(now.tv_nsec / 1000000), s->err ? "err" : "out");
}

// Without memory the line is dropped.
static void write_line(cx_launcher_output *o, rank_stream *s, const char *line,
                       size_t size)
{
  line_queue *q = &o->queues[s->err];
  drop_written(q);
  const size_t before = q->lines.size;
  append_prefix(o, s, &q->lines);
  cx_text_append_n(&q->lines, cx_text_str(&s->held), s->held.size);
  cx_text_append_n(&q->lines, line, size);
  cx_text_char(&q->lines, '\n');
  if (cx_text_failed(&q->lines)) {
    q->lines.size = before;
    q->lines.failed = false;
  }
  cx_text_clear(&s->held);
}

static void take(cx_launcher_output *o, rank_stream *s, const char *data,
                 size_t size)
{
  if (s->log >= 0) write_log(o, s, data, size);
  while (size > 0) {
    const char *end = memchr(data, '\n', size);
    size_t n = end != NULL ? (size_t)(end - data) : size;
    if (end != NULL) {
      write_line(o, s, data, n++);
    } else {
      cx_text_append_n(&s->held, data, n);
      if (s->held.size >= MAX_LINE || cx_text_failed(&s->held)) {
        write_line(o, s, "", 0);
        cx_text_free(&s->held);
      }
    }
    data += n;
    size -= n;
  }
}

// Reads up to `reads` times, while there is data and the queue is not full.
static void read_stream(cx_launcher_output *o, rank_stream *s, int reads)
{
  static char buffer[READ_BYTES];  // the launcher has one thread
  while (s->from >= 0 && reads-- > 0 && !is_full(o, s)) {
    ssize_t n = read(s->from, buffer, READ_BYTES);
    if (n > 0) {
      take(o, s, buffer, (size_t)n);
    } else if (n == 0) {
      close_fd(&s->from);
    } else if (errno != EINTR) {
      if (errno != EAGAIN) close_fd(&s->from);
      return;
    }
  }
}

nfds_t cx_launcher_output_add_polled(const cx_launcher_output *output,
                                     struct pollfd *out)
{
  nfds_t n = 0;
  for (int i = 0; i < output->count; i++) {
    const rank_stream *s = &output->streams[i];
    if (s->from < 0 || is_full(output, s)) continue;
    out[n++] = (struct pollfd){ .fd = s->from, .events = POLLIN };
  }
  for (int i = 0; i < 2; i++) {
    const line_queue *q = &output->queues[i];
    if (queued(q) == 0) continue;
    out[n++] = (struct pollfd){ .fd = q->fd, .events = POLLOUT };
  }
  return n;
}

// Takes the streams' last bytes, unless a queue is full.
static void take_last(cx_launcher_output *o)
{
  enum { LAST_READS = 1024 };  // much more than a pipe holds
  for (int i = 0; i < o->count; i++) {
    rank_stream *s = &o->streams[i];
    read_stream(o, s, LAST_READS);
    if (is_full(o, s)) return;
    close_fd(&s->from);
    if (s->held.size > 0) write_line(o, s, "", 0);
  }
  o->ended = true;
}

void cx_launcher_output_forward(cx_launcher_output *output, bool last)
{
  for (int i = 0; i < output->count && !last; i++) {
    read_stream(output, &output->streams[i], READS);
  }
  if (last && !output->ended) take_last(output);
  for (int i = 0; i < 2; i++) write_queue(output, &output->queues[i]);
}

bool cx_launcher_output_is_pending(const cx_launcher_output *output)
{
  return !output->ended || queued(&output->queues[0]) > 0 ||
         queued(&output->queues[1]) > 0;
}
