// cli/exported: runs a folder that calx_export() wrote, on the library's
// device.
#include "calx/export.h"

#include <stdlib.h>

#include "args.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "calx/tensor.h"
#include "graph/lower.h"
#include "run.h"
#include "value.h"

typedef struct exported_run {
  const cx_cli_job *job;
  calx_exported *exported;
  calx_tensor **in, **out;
  size_t n_in, n_out;
} exported_run;

static calx_status *describe(calx_dtype dtype, const calx_dims *dims,
                             cx_cli_value *out)
{
  int64_t n;
  *out = (cx_cli_value){ .elem = cx_hlo_elem_of(dtype) };
  cx_pjrt_shape_make(dtype, dims->values, dims->count, &out->shape);
  if (cx_dims_bytes(dtype, dims->values, dims->count, &n, &out->bytes)) {
    return NULL;
  }
  return cx_error(CALX_UNIMPLEMENTED, "an argument or result is too large");
}

static calx_status *read_inputs(exported_run *r)
{
  if (r->job->n_inputs != r->n_in) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the program takes %zu arguments, %zu inputs are given",
                    r->n_in, r->job->n_inputs);
  }
  for (size_t i = 0; i < r->n_in; i++) {
    calx_dims dims = calx_exported_input_shape(r->exported, i);
    calx_dtype dtype = calx_exported_input_dtype(r->exported, i);
    cx_cli_value value;
    char *data;
    CALX_TRY(describe(dtype, &dims, &value));
    CALX_TRY(cx_cli_value_read(&value, i, r->job->inputs[i], &data));
    r->in[i] = calx_tensor_from(data, dtype, dims);
    cx_free(data);
  }
  return NULL;
}

static calx_status *give_output(const exported_run *r, size_t i)
{
  calx_dims dims = calx_exported_output_shape(r->exported, i);
  cx_cli_value value;
  CALX_TRY(describe(calx_exported_output_dtype(r->exported, i), &dims, &value));
  char *data = cx_alloc(value.bytes + 1);
  if (data == NULL) return cx_out_of_memory();
  calx_status *status = calx_tensor_read(r->out[i], data, value.bytes);
  if (status == NULL) {
    status = cx_cli_value_give(&value, i, "", r->job->folder, data);
  }
  cx_free(data);
  return status;
}

static calx_status *run(exported_run *r)
{
  r->n_in = calx_exported_input_count(r->exported);
  r->n_out = calx_exported_output_count(r->exported);
  r->in = cx_calloc(r->n_in + 1, sizeof *r->in);
  r->out = cx_calloc(r->n_out + 1, sizeof *r->out);
  if (r->in == NULL || r->out == NULL) return cx_out_of_memory();
  CALX_TRY(read_inputs(r));
  calx_exported_run(r->exported, r->in, r->n_in, r->out, r->n_out);
  for (size_t i = 0; i < r->n_out; i++) CALX_TRY(give_output(r, i));
  return NULL;
}

int cx_cli_run_exported(const char *plugin, const cx_cli_job *job,
                        calx_status **out_status)
{
  if (plugin != NULL) setenv("CALX_PLUGIN", plugin, 1);
  exported_run r = { .job = job };
  calx_scope *scope = calx_scope_begin();
  *out_status = calx_exported_load_with(job->program, NULL, &r.exported);
  int code = calx_status_code(*out_status) == CALX_DATA_LOSS ? CX_CLI_INVALID
                                                             : CX_CLI_FAILED;
  if (*out_status == NULL) *out_status = run(&r);
  *out_status = cx_status_first(calx_scope_end(scope), *out_status);
  calx_exported_free(r.exported);
  cx_free(r.in);
  cx_free(r.out);
  return *out_status == NULL ? CX_CLI_OK : code;
}
