// cli/hlo_convert: a program as text or as bytecode.
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/file.h"
#include "base/status.h"
#include "commands.h"
#include "hlo/bytecode_write.h"
#include "hlo/print.h"
#include "module.h"

static const char help[] =
    "usage: calx hlo convert FROM TO [--to text|bytecode]\n"
    "\n"
    "Reads a StableHLO program (text or MLIR bytecode; FROM, or - for standard\n"
    "input), checks it up to the first operation or type that has no rules,\n"
    "and writes it to TO (- for standard output). TO is bytecode where its name\n"
    "ends with .mlirbc or .bc, text where it ends with .mlir or is -. Bytecode is\n"
    "a portable artifact of VHLO, as StableHLO's readers take it, in the lowest\n"
    "version that the program needs; what says that an attribute has its default\n"
    "is lost.\n"
    "\n"
    "  --to FORM  text or bytecode, whatever the name of TO is\n"
    "\n"
    "Exit status 3: it does not parse or verify, or bytecode cannot hold it.\n";

static bool ends_with(const char *s, const char *ending)
{
  const size_t n = strlen(s), m = strlen(ending);
  return n > m && strcmp(s + n - m, ending) == 0;
}

// CX_CLI_GO_ON, or the end after a complaint.
static int choose(const char *path, const char *form, bool *out_bytecode)
{
  const bool standard = strcmp(path, "-") == 0;
  const bool bytes = ends_with(path, ".mlirbc") || ends_with(path, ".bc");
  if (form == NULL && !bytes && !standard && !ends_with(path, ".mlir")) {
    return cx_cli_usage("calx hlo convert",
                        "'%s' ends with none of .mlir, .mlirbc and .bc; say "
                        "--to text or --to bytecode",
                        path);
  }
  if (form == NULL) form = bytes ? "bytecode" : "text";
  *out_bytecode = strcmp(form, "bytecode") == 0;
  if (*out_bytecode || strcmp(form, "text") == 0) return CX_CLI_GO_ON;
  return cx_cli_usage("calx hlo convert", "--to is text or bytecode, not '%s'",
                      form);
}

static calx_status *make(const cx_hlo_module *m, bool bytecode, cx_text *out)
{
  if (bytecode) return cx_hlo_write_bytecode(m, out);
  cx_hlo_print(m, out);
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

static calx_status *put(const char *path, const cx_text *bytes)
{
  if (strcmp(path, "-") != 0) {
    return cx_file_write(path, bytes->data, bytes->size);
  }
  fwrite(bytes->data, 1, bytes->size, stdout);
  return NULL;
}

static int run(const char *from, const char *to, bool bytecode)
{
  cx_hlo_module *module = NULL;
  calx_status *status = NULL;
  cx_text bytes = { 0 };
  int code = cx_cli_module_read(from, true, &module, &status);
  if (status == NULL) {
    status = make(module, bytecode, &bytes);
    if (status != NULL) code = CX_CLI_INVALID;
  }
  if (status == NULL) {
    status = put(to, &bytes);
    if (status != NULL) code = CX_CLI_FAILED;
  }
  if (calx_status_code(status) == CALX_RESOURCE_EXHAUSTED) code = CX_CLI_FAILED;
  cx_cli_complain(status);
  cx_text_free(&bytes);
  cx_hlo_module_free(module);
  return cx_cli_end(code);
}

int cx_cli_hlo_convert(int argc, char **argv)
{
  const char *form = NULL;
  bool bytecode = false;
  const cx_cli_option options[] = { { "--to", CX_CLI_TEXT, &form } };
  const cx_cli_command command = { "calx hlo convert", help, options, 1, 2, 2 };
  cx_cli_list words;
  int code = cx_cli_args_read(&command, argc, argv, &words);
  if (code == CX_CLI_GO_ON) code = choose(words.items[1], form, &bytecode);
  if (code == CX_CLI_GO_ON)
    code = run(words.items[0], words.items[1], bytecode);
  cx_cli_args_free(&command, &words);
  return code;
}
