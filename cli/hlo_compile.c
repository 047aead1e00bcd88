// cli/hlo_compile: ahead of time, for devices that are not here. The plugin
// needs none: a topology describes them.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "commands.h"
#include "pjrt/pjrt.h"
#include "program.h"

#define OPTION_FILE_LIMIT ((size_t)1 << 20)

static const char help[] =
    "usage: calx hlo compile FILE --topology NAME [OPTION...]\n"
    "\n"
    "Compiles a StableHLO program (FILE, or - for standard input) for devices\n"
    "that are not here, and tells how much memory it will take there.\n"
    "\n"
    "  --topology NAME        the devices: v5e:2x2, v4:2x2x1, ...; for the\n"
    "                         CUDA plugin any name, options describe them\n"
    "  --plugin NAME|PATH     the compiler; default: tpu\n"
    "  --option NAME=VALUE    for the topology, may be given often: an integer,\n"
    "                         true, false, a text, or the text in a file as\n"
    "                         @FILE; for CUDA target_config=@FILE and\n"
    "                         topology=1x1x1\n"
    "  --replicas N           how many devices run it together; default: 1\n"
    "  --output FILE          write the serialized executable\n";

typedef struct compile_request {
  const char *topology, *plugin, *output;
  int64_t replicas;
  cx_cli_list option_words;
  cx_pjrt_option *options;
  char **texts;  // [n options] what the options' strings lie in
} compile_request;

static void request_free(compile_request *r)
{
  for (size_t i = 0; r->texts != NULL && i < 2 * r->option_words.n; i++) {
    cx_free(r->texts[i]);
  }
  cx_free(r->texts);
  cx_free(r->options);
}

static calx_status *read_option(const char *word, cx_pjrt_option *out,
                                char **name, char **text)
{
  const char *value = strchr(word, '=');
  *name = cx_strndup(word, (size_t)(value - word));
  if (*name == NULL) return cx_out_of_memory();
  *out = (cx_pjrt_option){ .name = *name, .type = CX_PJRT_STRING };
  value++;
  char *end = NULL;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (value[0] == '@') {
    size_t size;
    CALX_TRY(cx_file_read(value + 1, OPTION_FILE_LIMIT, text, &size));
    out->string_value = *text;
  } else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
    out->type = CX_PJRT_BOOL;
    out->int_value = value[0] == 't';
  } else if (end != value && *end == '\0' && errno == 0) {
    out->type = CX_PJRT_INT;
    out->int_value = number;
  } else {
    out->string_value = value;
  }
  return NULL;
}

static calx_status *read_options(compile_request *r)
{
  size_t n = r->option_words.n;
  r->options = cx_calloc(n, sizeof *r->options);
  r->texts = cx_calloc(2 * n, sizeof *r->texts);
  if (r->options == NULL || r->texts == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(read_option(r->option_words.items[i], &r->options[i],
                         &r->texts[2 * i], &r->texts[2 * i + 1]));
  }
  return NULL;
}

// ---- what came out ----

static void print_bytes(const char *name, int64_t bytes)
{
  if (bytes < 0) {
    printf("%-13s not told\n", name);
  } else {
    printf("%-13s %" PRId64 " bytes\n", name, bytes);
  }
}

static void print_stats(const cx_pjrt_executable_stats *s, size_t serialized)
{
  print_bytes("serialized:", (int64_t)serialized);
  print_bytes("code:", s->code);
  print_bytes("arguments:", s->arguments);
  print_bytes("outputs:", s->outputs);
  print_bytes("aliased:", s->aliased);
  print_bytes("temporaries:", s->temporaries);
  print_bytes("peak:", s->peak);
}

// ---- the command ----

static int compile(const compile_request *r, const cx_cli_program *p,
                   calx_status **out_status)
{
  cx_pjrt_plugin *plugin = NULL;
  *out_status = cx_pjrt_plugin_open(r->plugin, &plugin);
  if (*out_status != NULL) return CX_CLI_FAILED;
  cx_pjrt_compile_options options = { .num_replicas = r->replicas };
  cx_pjrt_executable_stats stats;
  char *bytes = NULL;
  size_t size = 0;
  *out_status =
      cx_pjrt_compile_for(plugin, r->topology, r->options, r->option_words.n,
                          p->text, p->size, &options, &bytes, &size, &stats);
  if (*out_status != NULL) return CX_CLI_REFUSED;
  print_stats(&stats, size);
  if (r->output != NULL) *out_status = cx_file_write(r->output, bytes, size);
  cx_free(bytes);
  return *out_status == NULL ? CX_CLI_OK : CX_CLI_FAILED;
}

static int run(compile_request *r, const char *path)
{
  cx_cli_program program = { 0 };
  calx_status *status = read_options(r);
  int code = CX_CLI_FAILED;
  if (status == NULL) code = cx_cli_program_read(path, &program, &status);
  if (status == NULL) code = compile(r, &program, &status);
  cx_cli_complain(status);
  cx_cli_program_free(&program);
  return cx_cli_end(code);
}

static int check(const compile_request *r, const char *name)
{
  if (r->topology == NULL) {
    return cx_cli_usage(name, "--topology is missing");
  }
  for (size_t i = 0; i < r->option_words.n; i++) {
    const char *word = r->option_words.items[i];
    const char *value = strchr(word, '=');
    if (value == NULL || value == word) {
      return cx_cli_usage(name, "--option wants NAME=VALUE, found '%s'", word);
    }
  }
  return CX_CLI_GO_ON;
}

int cx_cli_hlo_compile(int argc, char **argv)
{
  compile_request r = { .plugin = "tpu", .replicas = 1 };
  const cx_cli_option options[] = {
    { "--topology", CX_CLI_TEXT, &r.topology },
    { "--plugin", CX_CLI_TEXT, &r.plugin },
    { "--option", CX_CLI_LIST, &r.option_words },
    { "--replicas", CX_CLI_COUNT, &r.replicas },
    { "--output", CX_CLI_TEXT, &r.output },
  };
  const cx_cli_command command = {
    "calx hlo compile", help, options, sizeof options / sizeof *options, 1, 1
  };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) code = check(&r, command.name);
  if (code == CX_CLI_GO_ON) code = run(&r, words.items[0]);
  request_free(&r);
  cx_cli_args_free(&command, &words);
  return code;
}
