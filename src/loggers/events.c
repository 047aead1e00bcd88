// loggers/events: TensorBoard's event files: records of protobuf messages.
//
// A record is the length of its data (8 bytes), the masked CRC-32C of these
// bytes, the data and their masked CRC-32C (tensorflow/core/lib/io/
// record_writer.h). The data are an Event (tensorflow/core/util/event.proto).
// The first one has the format's version.
#include "loggers/events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "loggers/crc32c.h"
#include "loggers/proto.h"

// Fields of Event and of SourceMetadata.
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5, SOURCE = 10 };
enum { SOURCE_WRITER = 1 };

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// As one write: a process that is killed leaves whole records, but for a write
// that it is killed in, and readers leave a part of a record out.
static calx_status *add_record(const char *path, cx_text *event)
{
  cx_text record = { .failed = event->failed };
  cx_loggers_put_bytes(&record, event->size, 8);
  if (!record.failed) {
    cx_loggers_put_bytes(&record, cx_loggers_masked_crc32c(record.data, 8), 4);
    cx_text_append_n(&record, cx_text_str(event), event->size);
    cx_loggers_put_bytes(
        &record, cx_loggers_masked_crc32c(cx_text_str(event), event->size), 4);
  }
  calx_status *status =
      cx_text_failed(&record)
          ? cx_out_of_memory()
          : cx_loggers_append(path, record.data, record.size, false);
  cx_text_free(&record);
  cx_text_free(event);
  return status;
}

calx_status *cx_loggers_events_add(const char *path, cx_text *summary,
                                   int64_t step)
{
  cx_text event = { 0 };
  cx_loggers_proto_double(&event, WALL_TIME, now());
  cx_loggers_proto_int(&event, STEP, step);
  cx_loggers_proto_message(&event, SUMMARY, summary);
  return add_record(path, &event);
}

static calx_status *add_version(const char *path)
{
  cx_text event = { 0 }, source = { 0 };
  cx_loggers_proto_text(&source, SOURCE_WRITER, "calx");
  cx_loggers_proto_double(&event, WALL_TIME, now());
  cx_loggers_proto_text(&event, FILE_VERSION, "brain.Event:2");
  cx_loggers_proto_message(&event, SOURCE, &source);
  return add_record(path, &event);
}

// "events.out.tfevents.SECONDS.HOST.PROCESS.N", as tensorboard's
// EventFileWriter names them.
static char *make_name(const cx_loggers_folder *folder)
{
  static atomic_uint numbers;
  char host[HOST_NAME_MAX + 1], name[HOST_NAME_MAX + 100];
  if (gethostname(host, sizeof host) != 0) snprintf(host, sizeof host, "host");
  host[sizeof host - 1] = '\0';
  snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%u",
           (long long)time(NULL), host, (long)getpid(),
           atomic_fetch_add(&numbers, 1));
  return cx_loggers_folder_file(folder, name);
}

calx_status *cx_loggers_events_begin(const cx_loggers_folder *folder,
                                     char **out_path)
{
  *out_path = make_name(folder);
  if (*out_path == NULL) return cx_out_of_memory();
  int fd = open(*out_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  calx_status *status =
      fd < 0 ? cx_file_failed("make", *out_path) : add_version(*out_path);
  if (fd >= 0) close(fd);
  if (status != NULL) {
    cx_free(*out_path);
    *out_path = NULL;
  }
  return status;
}
