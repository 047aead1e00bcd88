// io/exported: what an exported model takes and gives, and its runs.
#include "base/alloc.h"
#include "base/status.h"
#include "io/export.h"

void calx_exported_free(calx_exported *e)
{
  if (e == NULL) return;
  for (size_t i = 0; i < e->n_arguments; i++) {
    calx_release(e->arguments[i].weight);
  }
  cx_pjrt_executable_release(e->executable);
  cx_free(e->arguments);
  cx_free(e->in);
  cx_free(e->out);
  cx_free(e);
}

// ---- what it takes and gives ------------------------------------------------

size_t calx_exported_input_count(const calx_exported *e)
{
  return e->n_in;
}

size_t calx_exported_output_count(const calx_exported *e)
{
  return e->n_out;
}

calx_dims calx_exported_input_shape(const calx_exported *e, size_t i)
{
  return calx_dims_of(e->in[i].dims, e->in[i].rank);
}

calx_dtype calx_exported_input_dtype(const calx_exported *e, size_t i)
{
  return e->in[i].dtype;
}

calx_dims calx_exported_output_shape(const calx_exported *e, size_t i)
{
  return calx_dims_of(e->out[i].dims, e->out[i].rank);
}

calx_dtype calx_exported_output_dtype(const calx_exported *e, size_t i)
{
  return e->out[i].dtype;
}

// ---- running ----------------------------------------------------------------

static calx_status *check(const char *name, const calx_exported *e,
                          calx_tensor *const *inputs, size_t count,
                          size_t output_count)
{
  if (e == NULL || (inputs == NULL && count != 0)) {
    return cx_invalid("%s: the %s NULL", name,
                      e == NULL ? "exported model is" : "inputs are");
  }
  if (count != e->n_in || output_count != e->n_out) {
    return cx_invalid(
        "%s: the program takes %zu and gives %zu tensors, got room for %zu and "
        "%zu",
        name, e->n_in, e->n_out, count, output_count);
  }
  for (size_t i = 0; i < count; i++) {
    if (inputs[i] == NULL) {
      return cx_invalid("%s: input %zu is NULL", name, i);
    }
    CALX_TRY(cx_lazy_tensor_usable(inputs[i], name, (uint32_t)i));
    const cx_graph_shape *s = cx_lazy_tensor_shape(inputs[i]);
    if (!cx_graph_shape_equal(s, &e->in[i])) {
      return cx_invalid("%s: input %zu is %s, it was exported for %s", name, i,
                        cx_graph_shape_str(s), cx_graph_shape_str(&e->in[i]));
    }
    if (calx_tensor_device(inputs[i]) != e->device) {
      return cx_invalid(
          "%s: input %zu is on another device than the weights; move it with "
          "calx_to",
          name, i);
    }
  }
  return NULL;
}

static void run(const char *name, calx_exported *e, calx_tensor *const *inputs,
                size_t count, calx_tensor **outputs, size_t output_count)
{
  enum { SOME = 64 };
  calx_tensor *few[SOME], **all = few;
  calx_status *status = check(name, e, inputs, count, output_count);
  if (status == NULL && e->n_arguments > SOME) {
    all = cx_alloc(e->n_arguments * sizeof *all);
    if (all == NULL) status = cx_out_of_memory();
  }
  if (status == NULL) {
    for (size_t i = 0; i < e->n_arguments; i++) {
      const cx_io_argument *a = &e->arguments[i];
      all[i] = a->weight != NULL ? a->weight : inputs[a->input];
    }
    status = cx_lazy_execute(e->device, e->executable, all, e->n_arguments,
                             e->out, outputs, e->n_out);
  }
  if (all != few) cx_free(all);
  if (status == NULL) return;
  calx_tensor *poison = cx_lazy_tensor_poison(status);
  for (size_t i = 0; i < output_count; i++) outputs[i] = poison;
}

void calx_exported_run(calx_exported *e, calx_tensor *const *inputs,
                       size_t count, calx_tensor **outputs, size_t output_count)
{
  run("exported_run", e, inputs, count, outputs, output_count);
}

calx_tensor *calx_exported_forward(calx_exported *e, calx_tensor *input)
{
  calx_tensor *output;
  run("exported_forward", e, &input, 1, &output, 1);
  return output;
}
