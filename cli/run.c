// cli/run: see run.h. Cheap checks come first: the inputs' sizes are compared
// before the program is compiled.
#include "run.h"

#include <string.h>

#include "args.h"
#include "base/alloc.h"
#include "base/status.h"
#include "program.h"
#include "value.h"

calx_status *cx_cli_runner_open(cx_cli_runner *r)
{
  cx_pjrt_plugin *plugin = NULL;
  CALX_TRY(cx_pjrt_plugin_open(r->plugin, &plugin));
  // One device is the plugin's own choice.
  cx_pjrt_client_options options = { .device_count =
                                         r->replicas > 1 ? r->replicas : 0 };
  CALX_TRY(cx_pjrt_client_open(plugin, &options, &r->client));
  size_t n = cx_pjrt_client_device_count(r->client);
  if ((size_t)r->replicas <= n) return NULL;
  cx_cli_runner_close(r);
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%lld replicas are wanted, plugin '%s' has %zu devices here",
                  (long long)r->replicas, cx_pjrt_plugin_name(plugin), n);
}

void cx_cli_runner_close(cx_cli_runner *r)
{
  cx_pjrt_client_close(r->client);
  r->client = NULL;
}

// What one run holds.
typedef struct program_run {
  cx_pjrt_client *client;
  const cx_cli_job *job;
  size_t n_replicas;
  cx_cli_program program;
  cx_pjrt_executable *executable;
  cx_pjrt_buffer **args;     // [n_replicas][n_params]
  cx_pjrt_buffer **results;  // [n_replicas][n_results]
  cx_pjrt_event **done;      // [n_replicas]
} program_run;

static void run_free(program_run *r)
{
  size_t n_args = r->args != NULL ? r->n_replicas * r->program.n_params : 0;
  size_t n_results =
      r->results != NULL ? r->n_replicas * r->program.n_results : 0;
  for (size_t i = 0; i < n_args; i++) cx_pjrt_buffer_release(r->args[i]);
  for (size_t i = 0; i < n_results; i++) cx_pjrt_buffer_release(r->results[i]);
  for (size_t i = 0; r->done != NULL && i < r->n_replicas; i++) {
    cx_pjrt_event_free(r->done[i]);
  }
  cx_free(r->args);
  cx_free(r->results);
  cx_free(r->done);
  cx_pjrt_executable_release(r->executable);
  cx_cli_program_free(&r->program);
}

// ---- inputs ----

// The name with the replica's number for each {r}.
static char *name_input(const char *name, size_t replica)
{
  cx_text out = { 0 };
  for (const char *mark; (mark = strstr(name, "{r}")) != NULL;
       name = mark + 3) {
    cx_text_append_n(&out, name, (size_t)(mark - name));
    cx_text_int(&out, (int64_t)replica);
  }
  cx_text_append(&out, name);
  return cx_text_take(&out);
}

static calx_status *upload_input(const program_run *r, size_t replica, size_t i,
                                 const char *path)
{
  const cx_cli_value *value = &r->program.params[i];
  char *data = NULL;
  CALX_TRY(cx_cli_value_read(value, i, path, &data));
  calx_status *status = cx_pjrt_buffer_from_host(
      r->client, replica, &value->shape, data, CX_PJRT_COPY, NULL, NULL,
      &r->args[replica * r->program.n_params + i]);
  cx_free(data);
  return status;
}

// Each argument of each replica: checked first, later uploaded.
static calx_status *each_input(const program_run *r, bool upload)
{
  size_t n = r->program.n_params;
  if (r->job->n_inputs != n) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the program takes %zu arguments, %zu inputs are given", n,
                    r->job->n_inputs);
  }
  for (size_t k = 0; k < r->n_replicas * n; k++) {
    size_t replica = k / n, i = k % n;
    char *path = name_input(r->job->inputs[i], replica);
    if (path == NULL) return cx_out_of_memory();
    calx_status *status =
        upload ? upload_input(r, replica, i, path)
               : cx_cli_value_check(&r->program.params[i], i, path);
    cx_free(path);
    if (status != NULL) return status;
  }
  return NULL;
}

// ---- the run ----

static calx_status *compile(program_run *r)
{
  const cx_cli_program *p = &r->program;
  size_t n = p->n_params + p->n_results;
  cx_pjrt_shape *shapes = cx_calloc(n, sizeof *shapes);
  if (shapes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < p->n_params; i++) shapes[i] = p->params[i].shape;
  for (size_t i = 0; i < p->n_results; i++) {
    shapes[p->n_params + i] = p->results[i].shape;
  }
  cx_pjrt_signature signature = { .params = shapes,
                                  .n_params = p->n_params,
                                  .results = shapes + p->n_params,
                                  .n_results = p->n_results };
  cx_pjrt_compile_options options = { .num_replicas = (int64_t)r->n_replicas };
  calx_status *status = cx_pjrt_compile(r->client, p->text, p->size, &options,
                                        &signature, &r->executable);
  cx_free(shapes);
  return status;
}

static calx_status *execute(program_run *r)
{
  CALX_TRY(each_input(r, true));
  CALX_TRY(cx_pjrt_execute_all(r->executable, r->args,
                               r->n_replicas * r->program.n_params, r->results,
                               r->done));
  for (size_t i = 0; i < r->n_replicas; i++) {
    CALX_TRY(cx_pjrt_event_await(r->done[i]));
  }
  return NULL;
}

// ---- results ----

// "r2" where it is the third of several replicas; else "".
static void name_replica(const program_run *r, size_t replica, char out[32])
{
  out[0] = '\0';
  if (r->n_replicas > 1) snprintf(out, 32, "r%zu", replica);
}

static calx_status *give_result(const program_run *r, size_t replica, size_t i)
{
  const cx_cli_value *value = &r->program.results[i];
  cx_pjrt_buffer *b = r->results[replica * r->program.n_results + i];
  size_t size = 0;
  CALX_TRY(cx_pjrt_buffer_host_size(b, &size));
  if (size != value->bytes) {
    return cx_error(CALX_INTERNAL,
                    "result %zu has %zu bytes on the plugin, its type %zu", i,
                    size, value->bytes);
  }
  char *data = cx_alloc(size);
  if (data == NULL) return cx_out_of_memory();
  calx_status *status = cx_pjrt_buffer_to_host(b, data, size);
  if (status == NULL) {
    char name[32];
    name_replica(r, replica, name);
    status = cx_cli_value_give(value, i, name, r->job->folder, data);
  }
  cx_free(data);
  return status;
}

static calx_status *give_results(const program_run *r)
{
  for (size_t replica = 0; replica < r->n_replicas; replica++) {
    for (size_t i = 0; i < r->program.n_results; i++) {
      CALX_TRY(give_result(r, replica, i));
    }
  }
  return NULL;
}

// ---- all of it ----

static bool make_lists(program_run *r)
{
  size_t n = r->n_replicas;
  r->args = cx_calloc(n * r->program.n_params, sizeof *r->args);
  r->results = cx_calloc(n * r->program.n_results, sizeof *r->results);
  r->done = cx_calloc(n, sizeof *r->done);
  return r->args != NULL && r->results != NULL && r->done != NULL;
}

static int run_program(program_run *r, calx_status **out_status)
{
  int code = cx_cli_program_read(r->job->program, &r->program, out_status);
  if (code != CX_CLI_OK) return code;
  if (r->program.unfit != NULL) {
    *out_status = cx_status_copy(r->program.unfit);
    return CX_CLI_REFUSED;
  }
  *out_status = make_lists(r) ? each_input(r, false) : cx_out_of_memory();
  if (*out_status != NULL) return CX_CLI_FAILED;
  *out_status = compile(r);
  if (*out_status != NULL) return CX_CLI_REFUSED;
  *out_status = execute(r);
  if (*out_status == NULL) *out_status = give_results(r);
  return *out_status == NULL ? CX_CLI_OK : CX_CLI_FAILED;
}

int cx_cli_run(cx_cli_runner *runner, const cx_cli_job *job,
               calx_status **out_status)
{
  *out_status = NULL;
  program_run r = { .client = runner->client,
                    .job = job,
                    .n_replicas = (size_t)runner->replicas };
  int code = run_program(&r, out_status);
  run_free(&r);
  return code;
}
