// cli/module: see module.h.
#include "module.h"

#include <string.h>

#include "args.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "hlo/parse.h"
#include "hlo/verify.h"

#define TEXT_LIMIT ((size_t)1 << 30)

static calx_status *check(const char *text, size_t size, const char *name,
                          bool others, cx_hlo_module **out)
{
  CALX_TRY(cx_hlo_parse(text, size, name, out));
  calx_status *status = cx_annotate(cx_hlo_verify(*out), "in %s", name);
  if (!others || calx_status_code(status) != CALX_UNIMPLEMENTED) return status;
  calx_status_free(status);
  return NULL;
}

int cx_cli_module_read(const char *path, bool others, cx_hlo_module **out,
                       calx_status **out_status)
{
  const bool standard = strcmp(path, "-") == 0;
  char *text = NULL;
  size_t size = 0;
  *out = NULL;
  *out_status =
      cx_file_read(standard ? "/dev/stdin" : path, TEXT_LIMIT, &text, &size);
  if (*out_status != NULL) return CX_CLI_FAILED;
  *out_status = check(text, size, standard ? "<stdin>" : path, others, out);
  cx_free(text);
  if (*out_status == NULL) return CX_CLI_OK;
  return calx_status_code(*out_status) == CALX_RESOURCE_EXHAUSTED
             ? CX_CLI_FAILED
             : CX_CLI_INVALID;
}
