// cli/cache: what the library keeps of compiled programs, and its removal.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "commands.h"
#include "lazy/cache/cache.h"
#include "lines.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

static const char help[] =
    "usage: calx cache COMMAND [ARGUMENT...]\n"
    "\n"
    "  list   the compiled programs that are kept\n"
    "  clear  removes them\n"
    "\n"
    "They are in CALX_CACHE_DIR, else in calx/programs of the user's cache\n"
    "folder. calx cache COMMAND --help tells more.\n";

static const char list_help[] =
    "usage: calx cache list [--dir DIR]\n"
    "\n"
    "One line for each compiled program, the last used first: the start of its\n"
    "key, its file's bytes, how long ago it was used, the plugin and platform\n"
    "that it is for, and the place in the program that first had it compiled.\n"
    "A file that is damaged, of another release's format or not finished says\n"
    "so instead, and a program that is being compiled says by which process.\n"
    "\n"
    "  --dir DIR  instead of CALX_CACHE_DIR or the user's cache folder\n";

static const char clear_help[] =
    "usage: calx cache clear [--dir DIR] [--older-than DAYS]\n"
    "\n"
    "Removes the compiled programs, damaged ones too, and what processes that\n"
    "died have left. Other files stay. A program that is running needs none of\n"
    "them; the next one compiles again.\n"
    "\n"
    "  --dir DIR          instead of CALX_CACHE_DIR or the user's cache folder\n"
    "  --older-than DAYS  only those that were not used for so many days\n";

// The folder that is meant, and what is in it; both are freed in any case.
static calx_status *open_cache(const char *dir, cx_text *path,
                               cx_lazy_cache *out)
{
  *out = (cx_lazy_cache){ 0 };
  bool readonly;
  if (dir != NULL) {
    cx_text_append(path, dir);
  } else if (!cx_lazy_cache_path(path, &readonly) && !cx_text_failed(path)) {
    return cx_error(CALX_NOT_FOUND,
                    "there is no cache: CALX_CACHE_DIR is off, or there is "
                    "neither XDG_CACHE_HOME nor HOME");
  }
  if (cx_text_failed(path)) return cx_out_of_memory();
  return cx_lazy_cache_open(cx_text_str(path), out);
}

// ---- list -------------------------------------------------------------------

static void format_age(int64_t age, char out[32])
{
  int64_t s = age < 0 ? 0 : age / SECOND;
  int64_t n = s < 60 ? s : s < 3600 ? s / 60 : s < 86400 ? s / 3600 : s / 86400;
  const char *unit = s < 60 ? "s" : s < 3600 ? "min" : s < 86400 ? "h" : "d";
  snprintf(out, 32, "%" PRId64 " %s", n, unit);
}

// What a file says of itself, which is made fit for a terminal.
static void append_entry(cx_text *out, const char *data, size_t size)
{
  cx_lazy_cache_entry e;
  switch (cx_lazy_cache_entry_read(data, size, &e)) {
    case CX_LAZY_CACHE_DAMAGED: cx_text_append(out, "damaged"); return;
    case CX_LAZY_CACHE_OTHER_FORMAT:
      cx_text_append(out, "of another format");
      return;
    case CX_LAZY_CACHE_WHOLE: break;
  }
  cx_cli_line_append(out, e.plugin);
  cx_text_char(out, '/');
  cx_cli_line_append(out, e.platform);
  cx_text_append(out, "  ");
  cx_cli_line_append(out, e.program);
}

// The process is named by what is in the file.
static void append_claim(cx_text *out, const cx_lazy_cache *c,
                         const cx_lazy_cache_file *f)
{
  long pid;
  if (!cx_lazy_cache_claim_held(c, f, &pid)) {
    cx_text_append(out, "left by a process that died");
  } else if (pid != 0) {
    cx_text_format(out, "being compiled by process %ld", pid);
  } else {
    cx_text_append(out, "being compiled");
  }
}

// One line; false: the file went meanwhile.
static bool print_file(const char *path, const cx_lazy_cache *c,
                       const cx_lazy_cache_file *f)
{
  cx_text name = { 0 }, line = { 0 };
  cx_text_format(&name, "%s/%s", path, f->name);
  char age[32];
  format_age(c->now - f->used, age);
  cx_text_format(&line, "%.12s %12" PRIu64 "  %-7s  ", f->name, f->size, age);
  char *data = NULL;
  size_t size;
  calx_status *status = NULL;
  if (f->claim) {
    append_claim(&line, c, f);
  } else if (f->unfinished) {
    cx_text_append(&line, "not finished");
  } else if (f->size > CX_LAZY_CACHE_BIGGEST) {
    cx_text_append(&line, "damaged: larger than any program");
  } else if ((status =
                  cx_file_read_own(cx_text_str(&name), CX_LAZY_CACHE_BIGGEST,
                                   false, &data, &size)) == NULL) {
    append_entry(&line, data, size);
  } else {
    bool refused = calx_status_code(status) == CALX_PERMISSION_DENIED;
    cx_text_append(&line, refused ? "not used: " : "damaged: ");
    cx_cli_line_append(&line, cx_status_sentence(status));
  }
  bool there = calx_status_code(status) != CALX_NOT_FOUND;
  if (there) puts(cx_text_str(&line));
  calx_status_free(status);
  cx_free(data);
  cx_text_free(&name);
  cx_text_free(&line);
  return there;
}

static void print_total(size_t n, uint64_t bytes, const char *path)
{
  printf("%zu file%s, %" PRIu64 " bytes in %s; CALX_CACHE_SIZE is %" PRIu64
         "\n",
         n, n == 1 ? "" : "s", bytes, path, cx_lazy_cache_limit());
}

static int list(int argc, char **argv)
{
  const char *dir = NULL;
  const cx_cli_option options[] = { { "--dir", CX_CLI_TEXT, &dir } };
  const cx_cli_command command = {
    "calx cache list", list_help, options, 1, 0, 0
  };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) {
    cx_text path = { 0 };
    cx_lazy_cache cache;
    calx_status *status = open_cache(dir, &path, &cache);
    size_t n = 0;
    uint64_t bytes = 0;
    for (size_t i = cache.n; i-- > 0 && status == NULL;) {
      if (!print_file(path.data, &cache, &cache.files[i])) continue;
      bytes += cache.files[i].size;
      n++;
    }
    if (status == NULL) print_total(n, bytes, path.data);
    code = cx_cli_end(status == NULL ? CX_CLI_OK : CX_CLI_FAILED);
    cx_cli_complain(status);
    cx_lazy_cache_close(&cache);
    cx_text_free(&path);
  }
  cx_cli_args_free(&command, &words);
  return code;
}

// ---- clear ------------------------------------------------------------------

// days 0: whatever is finished. What a process may still be at stays.
static bool is_wanted(const cx_lazy_cache *c, const cx_lazy_cache_file *f,
                      int64_t days)
{
  long pid;
  if (f->claim) return !cx_lazy_cache_claim_held(c, f, &pid);
  if (f->unfinished) return cx_lazy_cache_stale(c, f);
  return days == 0 || f->used < c->now - days * DAY;
}

static calx_status *clear_files(const cx_lazy_cache *c, const char *path,
                                int64_t days)
{
  size_t n = 0;
  uint64_t bytes = 0;
  calx_status *status = NULL;
  for (size_t i = 0; i < c->n && status == NULL; i++) {
    const cx_lazy_cache_file *f = &c->files[i];
    if (!is_wanted(c, f, days)) continue;
    if (cx_lazy_cache_remove(c, f)) {
      bytes += f->size;
      n++;
    } else {
      status = cx_error(CALX_PERMISSION_DENIED, "cannot remove '%s/%s': %s",
                        path, f->name, strerror(errno));
    }
  }
  printf("removed %zu file%s, %" PRIu64 " bytes from %s\n", n,
         n == 1 ? "" : "s", bytes, path);
  return status;
}

static int clear(int argc, char **argv)
{
  const char *dir = NULL;
  int64_t days = 0;
  const cx_cli_option options[] = { { "--dir", CX_CLI_TEXT, &dir },
                                    { "--older-than", CX_CLI_COUNT, &days } };
  const cx_cli_command command = {
    "calx cache clear", clear_help, options, 2, 0, 0
  };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) {
    cx_text path = { 0 };
    cx_lazy_cache cache;
    calx_status *status = open_cache(dir, &path, &cache);
    if (status == NULL) status = clear_files(&cache, path.data, days);
    code = cx_cli_end(status == NULL ? CX_CLI_OK : CX_CLI_FAILED);
    cx_cli_complain(status);
    cx_lazy_cache_close(&cache);
    cx_text_free(&path);
  }
  cx_cli_args_free(&command, &words);
  return code;
}

int cx_cli_cache(int argc, char **argv)
{
  static const cx_cli_choice choices[] = { { "list", list },
                                           { "clear", clear } };
  return cx_cli_choose("calx cache", help, choices,
                       sizeof choices / sizeof *choices, argc, argv);
}
