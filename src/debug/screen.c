#include "debug/screen.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/trace.h"

enum { WIDTH = 80 };

static struct {
  cx_mutex lock;
  cx_debug_screen *newest;  // NULL: none
} screens = { .lock = CX_MUTEX_INIT };

// ---- terminals --------------------------------------------------------------

bool cx_debug_is_terminal(FILE *file)
{
  const char *term = getenv("TERM");
  return isatty(fileno(file)) == 1 &&
         (term == NULL || strcmp(term, "dumb") != 0);
}

int cx_debug_columns(FILE *file)
{
  struct winsize size;
  if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  const char *columns = getenv("COLUMNS");
  const int n = columns != NULL ? atoi(columns) : 0;
  return n > 0 ? n : 0;
}

bool cx_debug_has_utf8(void)
{
  static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
  const char *locale = NULL;
  for (int i = 0; i < 3 && (locale == NULL || *locale == '\0'); i++) {
    locale = getenv(names[i]);
  }
  if (locale == NULL || *locale == '\0' || strcmp(locale, "C") == 0 ||
      strcmp(locale, "POSIX") == 0) {
    return true;
  }
  const char *codeset = strchr(locale, '.');
  return codeset != NULL && (strncasecmp(codeset, ".utf-8", 6) == 0 ||
                             strncasecmp(codeset, ".utf8", 5) == 0);
}

// ---- drawing, under the lock ------------------------------------------------

// What was there is erased before a line that takes all columns, since the
// cursor then stays in the last one.
static void put_line(cx_text *out, const char *line, const char *more,
                     size_t columns)
{
  const size_t added = cx_text_columns(more);
  const size_t room = columns > added ? columns - added : 0;
  const bool is_full = cx_text_columns(line) >= room;
  cx_text_append(out, is_full ? "\r\033[K" : "\r");
  cx_text_append_n(out, line, cx_text_fit(line, room));
  if (strchr(line, '\033') != NULL) cx_text_append(out, "\033[0m");
  cx_text_append_n(out, more, cx_text_fit(more, columns));
  if (!is_full) cx_text_append(out, "\033[K");
}

// The lines of `text`, of which the first ends with `more`, and none of those
// that were there. The cursor goes back to the first.
static void put_lines(cx_text *out, const cx_debug_screen *s, const char *text,
                      const char *more, int *out_lines)
{
  int columns = cx_debug_columns(s->file), n = 0;
  if (columns == 0) columns = WIDTH;
  for (int i = 0; i < s->offset; i++) cx_text_char(out, '\n');
  while (*text != '\0' || n < s->lines) {
    const size_t length = strcspn(text, "\n");
    char *line = cx_strndup(text, length);
    if (n > 0) cx_text_char(out, '\n');
    put_line(out, line != NULL ? line : "", n == 0 ? more : "",
             (size_t)columns);
    cx_free(line);
    n++;
    if (*text != '\0') *out_lines = n;
    text += length;
    if (*text == '\n') text++;
  }
  const int down = s->offset + (n > 0 ? n - 1 : 0);
  if (down > 0) cx_text_format(out, "\033[%dA", down);
}

static void paint(cx_debug_screen *s, const char *text, const char *more)
{
  cx_text out = { 0 };
  int lines = 0;
  put_lines(&out, s, text, more, &lines);
  fputs(cx_text_str(&out), s->file);
  fflush(s->file);
  cx_text_free(&out);
  s->lines = lines;
}

static void clear(cx_debug_screen *s)
{
  if (s->lines > 0) paint(s, "", "");
  s->drawn_ns = 0;
}

// ---- the threads that compile and log ---------------------------------------

static void on_compile(const cx_trace_program *program)
{
  (void)program;
  cx_lock(&screens.lock);
  cx_debug_screen *s = screens.newest;
  if (s != NULL && s->text != NULL) {
    paint(s, s->text, cx_debug_has_utf8() ? " compiling…" : " compiling...");
  }
  cx_unlock(&screens.lock);
}

static void on_compiled(const cx_trace_program *program,
                        const cx_trace_sizes *sizes)
{
  (void)program;
  (void)sizes;
  cx_lock(&screens.lock);
  cx_debug_screen *s = screens.newest;
  if (s != NULL && s->text != NULL && s->lines > 0) paint(s, s->text, "");
  cx_unlock(&screens.lock);
}

static const cx_trace_listener listener = { .compile = on_compile,
                                            .compiled = on_compiled };

void cx_debug_screen_make_room(void)
{
  cx_lock(&screens.lock);
  if (screens.newest != NULL) clear(screens.newest);
  cx_unlock(&screens.lock);
}

// ---- the owner --------------------------------------------------------------

void cx_debug_screen_begin(cx_debug_screen *s, FILE *file, int offset)
{
  cx_trace_listen(&listener);
  cx_trace_want(CX_TRACE_PROGRAMS, true);
  cx_log_set_before(cx_debug_screen_make_room);
  cx_lock(&screens.lock);
  if (screens.newest != NULL) clear(screens.newest);
  *s = (cx_debug_screen){ .file = file,
                          .offset = offset,
                          .older = screens.newest };
  screens.newest = s;
  cx_unlock(&screens.lock);
}

bool cx_debug_screen_is_due(cx_debug_screen *s, int64_t interval_ns)
{
  cx_lock(&screens.lock);
  const bool due = cx_now_ns() - s->drawn_ns >= interval_ns;
  cx_unlock(&screens.lock);
  return due;
}

void cx_debug_screen_draw(cx_debug_screen *s, const char *text)
{
  char *copy = cx_strdup(text);
  cx_lock(&screens.lock);
  cx_free(s->text);
  s->text = copy;
  if (screens.newest == s) paint(s, text, "");
  s->drawn_ns = cx_now_ns();
  cx_unlock(&screens.lock);
}

void cx_debug_screen_end(cx_debug_screen *s, bool stays)
{
  cx_lock(&screens.lock);
  if (screens.newest != NULL && screens.newest != s) clear(screens.newest);
  if (!stays || s->offset > 0) clear(s);
  s->offset = 0;
  if (stays && s->lines == 0 && s->text != NULL) paint(s, s->text, "");
  for (int i = 0; i < s->lines; i++) fputc('\n', s->file);
  fflush(s->file);
  cx_debug_screen **link = &screens.newest;
  while (*link != NULL && *link != s) link = &(*link)->older;
  if (*link != NULL) *link = s->older;
  cx_free(s->text);
  s->text = NULL;
  cx_unlock(&screens.lock);
  cx_trace_want(CX_TRACE_PROGRAMS, false);
}
