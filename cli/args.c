// cli/args: one table of options per command, read in one pass.
#include "args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define MOST_COUNT 65536

int cx_cli_usage(const char *command, const char *format, ...)
{
  fprintf(stderr, "%s: ", command);
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "; see %s --help\n", command);
  return CX_CLI_USAGE;
}

void cx_cli_complain(calx_status *status)
{
  const char *message = calx_status_message(status);
  if (strchr(message, '\n') != NULL) {
    fprintf(stderr, "error: %s\n", message);
  } else {
    calx_status_print(stderr, status);
  }
  calx_status_free(status);
}

int cx_cli_end(int code)
{
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fprintf(stderr, "calx: cannot write to standard output: %s\n",
          strerror(errno));
  return CX_CLI_FAILED;
}

static bool list_add(cx_cli_list *list, const char *item, size_t most)
{
  if (list->items == NULL) list->items = cx_calloc(most, sizeof *list->items);
  if (list->items == NULL) return false;
  list->items[list->n++] = item;
  return true;
}

static int no_memory(const cx_cli_command *c)
{
  fprintf(stderr, "%s: out of memory\n", c->name);
  return CX_CLI_FAILED;
}

// The option that an argument names, with or without "=value".
static const cx_cli_option *find(const cx_cli_command *c, const char *argument)
{
  size_t n = strcspn(argument, "=");
  for (size_t i = 0; i < c->n_options; i++) {
    const char *name = c->options[i].name;
    if (strlen(name) == n && memcmp(name, argument, n) == 0) {
      return &c->options[i];
    }
  }
  return NULL;
}

static int read_count(const cx_cli_command *c, const cx_cli_option *o,
                      const char *value)
{
  char *end = NULL;
  errno = 0;
  long long n = strtoll(value, &end, 10);
  if (errno != 0 || end == value || *end != '\0' || n < 1 || n > MOST_COUNT) {
    return cx_cli_usage(c->name, "%s wants a number from 1 to %d, found '%s'",
                        o->name, MOST_COUNT, value);
  }
  *(int64_t *)o->to = n;
  return CX_CLI_GO_ON;
}

static int read_time(const cx_cli_command *c, const cx_cli_option *o,
                     const char *value)
{
  char *end = NULL;
  double seconds = strtod(value, &end);
  if (end == value || *end != '\0' || !(seconds > 0 && seconds <= 1e6)) {
    return cx_cli_usage(c->name,
                        "%s wants seconds, above 0 and at most 1000000, found "
                        "'%s'",
                        o->name, value);
  }
  *(double *)o->to = seconds;
  return CX_CLI_GO_ON;
}

// argv[*at] is an option; the value may be the argument after it.
static int read_option(const cx_cli_command *c, int argc, char **argv, int *at)
{
  const char *argument = argv[*at];
  const cx_cli_option *o = find(c, argument);
  if (o == NULL) {
    return cx_cli_usage(c->name, "there is no option '%.*s'",
                        (int)strcspn(argument, "="), argument);
  }
  const char *value = strchr(argument, '=');
  if (o->kind == CX_CLI_FLAG) {
    if (value != NULL) {
      return cx_cli_usage(c->name, "%s takes no value, found '%s'", o->name,
                          value + 1);
    }
    *(bool *)o->to = true;
    return CX_CLI_GO_ON;
  }
  if (value != NULL) {
    value++;
  } else if (*at + 1 < argc) {
    value = argv[++*at];
  } else {
    return cx_cli_usage(c->name, "%s wants a value", o->name);
  }
  switch (o->kind) {
    case CX_CLI_COUNT: return read_count(c, o, value);
    case CX_CLI_TIME: return read_time(c, o, value);
    case CX_CLI_LIST:
      return list_add(o->to, value, (size_t)argc) ? CX_CLI_GO_ON : no_memory(c);
    default: *(const char **)o->to = value; return CX_CLI_GO_ON;
  }
}

int cx_cli_args_read(const cx_cli_command *c, int argc, char **argv,
                     cx_cli_list *out_words)
{
  *out_words = (cx_cli_list){ 0 };
  bool options = true;
  for (int i = 0; i < argc; i++) {
    const char *a = argv[i];
    if (options && strcmp(a, "--") == 0) {
      options = false;
    } else if (options && (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0)) {
      fputs(c->help, stdout);
      return cx_cli_end(CX_CLI_OK);
    } else if (options && a[0] == '-' && a[1] != '\0') {
      int code = read_option(c, argc, argv, &i);
      if (code != CX_CLI_GO_ON) return code;
    } else if (list_add(out_words, a, (size_t)argc)) {
      options = options && c->most_words != CX_CLI_PROGRAM;
    } else {
      return no_memory(c);
    }
  }
  if (out_words->n < c->least_words) {
    return cx_cli_usage(c->name, "%s is missing",
                        c->most_words == CX_CLI_PROGRAM ? "PROGRAM" : "FILE");
  }
  if (out_words->n > c->most_words) {
    return cx_cli_usage(c->name, "'%s' is one argument too many",
                        out_words->items[c->most_words]);
  }
  return CX_CLI_GO_ON;
}

void cx_cli_args_free(const cx_cli_command *c, cx_cli_list *words)
{
  cx_free(words->items);
  *words = (cx_cli_list){ 0 };
  for (size_t i = 0; i < c->n_options; i++) {
    if (c->options[i].kind != CX_CLI_LIST) continue;
    cx_cli_list *list = c->options[i].to;
    cx_free(list->items);
    *list = (cx_cli_list){ 0 };
  }
}
