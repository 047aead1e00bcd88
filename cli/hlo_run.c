// cli/hlo_run: runs StableHLO programs on a plugin, one or many.
#include <stdio.h>
#include <sys/stat.h>

#include "args.h"
#include "batch.h"
#include "commands.h"
#include "run.h"

static const char help[] =
    "usage: calx hlo run FILE|FOLDER [OPTION...]\n"
    "       calx hlo run --batch [--isolate] [--timeout SECONDS] [OPTION...]\n"
    "\n"
    "Compiles a StableHLO program (text; FILE, or - for standard input) on a\n"
    "PJRT plugin and runs its entry: main, or the only function. A FOLDER is\n"
    "what calx_export() wrote; its weights are not among the inputs.\n"
    "\n"
    "  --input FILE        one for each argument, in order; {r} in the name is\n"
    "                      the replica's number\n"
    "  --output DIR        write the results as DIR/0.bin, DIR/1.bin, ... (with\n"
    "                      replicas DIR/r0/0.bin, ...); else print them\n"
    "  --plugin NAME|PATH  calx or cpu (the library's own engine), xla-cpu,\n"
    "                      tpu, cuda, a name that is given by\n"
    "                      PJRT_NAMES_AND_LIBRARY_PATHS, or a file; else\n"
    "                      CALX_PLUGIN, PJRT_DEVICE, or what is there\n"
    "  --replicas N        run it on N devices together; default: 1\n"
    "\n"
    "Files hold row-major, little-endian elements: i1, i2 and i4 a byte each\n"
    "(sign-extended), ui2 and ui4 too (zero-extended), types of 6 and 4 bits in\n"
    "the low bits of a byte, complex numbers as real and imaginary part.\n"
    "\n"
    "  --batch             read lines PROGRAM OUTDIR [INPUT...] from standard\n"
    "                      input and answer each with one: ok PROGRAM, or\n"
    "                      invalid|refused|failed PROGRAM: message\n"
    "  --isolate           run the programs in a child process; two answers\n"
    "                      more: crashed PROGRAM: signal N, timeout PROGRAM\n"
    "  --timeout SECONDS   for one program, with --isolate; default: none\n"
    "\n"
    "Exit status: 0 done (--batch: all lines were answered), 3 the program does\n"
    "not parse or verify, 4 the plugin refuses it, 5 the run fails.\n";

typedef struct batch_request {
  cx_cli_batch batch;
  bool is_batch;
  cx_cli_list inputs, words;
  const char *output;
} batch_request;

static bool is_folder(const char *path)
{
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int check(const batch_request *r, const char *name)
{
  if (r->is_batch) {
    if (r->words.n > 0 || r->inputs.n > 0 || r->output != NULL) {
      return cx_cli_usage(name,
                          "--batch takes programs, inputs and outputs from "
                          "standard input, not from arguments");
    }
    if (r->batch.time_out > 0 && !r->batch.isolate) {
      return cx_cli_usage(name, "--timeout needs --isolate");
    }
    return CX_CLI_GO_ON;
  }
  if (r->words.n == 0) return cx_cli_usage(name, "FILE is missing");
  if (is_folder(r->words.items[0]) && r->batch.runner.replicas > 1) {
    return cx_cli_usage(name, "--replicas is not for a folder");
  }
  if (r->batch.isolate || r->batch.time_out > 0) {
    return cx_cli_usage(name, "--isolate and --timeout need --batch");
  }
  return CX_CLI_GO_ON;
}

static int run_one(batch_request *r)
{
  cx_cli_job job = { .program = r->words.items[0],
                     .inputs = r->inputs.items,
                     .n_inputs = r->inputs.n,
                     .folder = r->output };
  cx_cli_runner *runner = &r->batch.runner;
  int code = CX_CLI_FAILED;
  calx_status *status = NULL;
  if (is_folder(job.program)) {
    code = cx_cli_run_exported(runner->plugin, &job, &status);
    cx_cli_complain(status);
    return cx_cli_end(code);
  }
  status = cx_cli_runner_open(runner);
  if (status == NULL) code = cx_cli_run(runner, &job, &status);
  cx_cli_runner_close(runner);
  cx_cli_complain(status);
  return cx_cli_end(code);
}

int cx_cli_hlo_run(int argc, char **argv)
{
  batch_request r = { .batch.runner.replicas = 1 };
  const cx_cli_option options[] = {
    { "--input", CX_CLI_LIST, &r.inputs },
    { "--output", CX_CLI_TEXT, &r.output },
    { "--plugin", CX_CLI_TEXT, &r.batch.runner.plugin },
    { "--replicas", CX_CLI_COUNT, &r.batch.runner.replicas },
    { "--batch", CX_CLI_FLAG, &r.is_batch },
    { "--isolate", CX_CLI_FLAG, &r.batch.isolate },
    { "--timeout", CX_CLI_TIME, &r.batch.time_out },
  };
  const cx_cli_command command = {
    "calx hlo run", help, options, sizeof options / sizeof *options, 0, 1
  };
  int code = cx_cli_args_read(&command, argc, argv, &r.words);
  if (code == CX_CLI_GO_ON) code = check(&r, command.name);
  if (code == CX_CLI_GO_ON) {
    code = r.is_batch ? cx_cli_batch_run(&r.batch) : run_one(&r);
  }
  cx_cli_args_free(&command, &r.words);
  return code;
}
