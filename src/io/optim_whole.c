// io/optim_whole: the state dict of an optimiser whose state is spread over the
// ranks, in the layout of one whose state is not (io/optim_state). It is
// gathered from any number of ranks, and any other number can load it
// (torch.distributed.optim ZeroRedundancyOptimizer.consolidate_state_dict).
//
// Each parameter of the inner optimiser is a rank's part of several parameters,
// which are joined and padded; the rule's position() says where each of them
// begins. One state of one such parameter is gathered or joined at a time, so
// only this one is in memory twice.
//
// All ranks must act alike. Each decides from the whole dict which states there
// are and what is wrong with it, and only then takes its part.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "calx/collective.h"
#include "io/fetch.h"
#include "io/optim_state.h"
#include "io/rank.h"
#include "lazy/lazy.h"

// ---- out of the ranks -------------------------------------------------------

static calx_status *put_params(const calx_optimizer *opt, calx_value *state)
{
  const calx_optimizer *inner = opt->inner;
  for (size_t i = 0; i < opt->n; i++) {
    size_t j = opt->rule->position(opt, i).inner;
    bool any = false;
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      any |=
          calx_optimizer_state(inner, j, cx_optim_state_name(inner, k)) != NULL;
    }
    calx_value *own;
    if (!any) continue;
    CALX_TRY(cx_io_optim_put_param(inner, j, (int64_t)i, state, &own));
  }
  return NULL;
}

// Gathers a tensor (size) of every rank into (ranks size) on the host.
static calx_status *gather(calx_tensor *t, cx_io_elements *out)
{
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_tensor *all = calx_all_gather_with(t, 0, NULL);
  calx_status *status = NULL;
  if (calx_scope_error() == NULL) status = cx_io_fetch(all, out);
  cx_lazy_no_grad_end();
  calx_status *recorded = calx_scope_end(scope);
  if (recorded == NULL) return status;
  calx_status_free(status);
  return recorded;
}

// A host tensor with a copy of the elements, as a value.
static calx_status *host_copy(const cx_graph_shape *shape, const void *data,
                              calx_value **out)
{
  size_t bytes =
      (size_t)cx_graph_shape_numel(shape) * calx_dtype_size(shape->dtype);
  *out = NULL;
  void *copy = cx_alloc(bytes);
  if (copy == NULL) return cx_out_of_memory();
  memcpy(copy, data, bytes);
  calx_tensor *t;
  CALX_TRY(cx_lazy_host_tensor_over(shape, copy, cx_free, copy, &t));
  *out = calx_value_tensor(t);
  calx_release(t);
  return NULL;
}

// Splits a gathered state of inner's parameter j into the parameters that it is
// made of.
static calx_status *split(const calx_optimizer *opt, size_t j, const char *name,
                          calx_dtype dtype, const unsigned char *all,
                          calx_value *state)
{
  for (size_t i = 0; i < opt->n; i++) {
    cx_optim_position at = opt->rule->position(opt, i);
    if (at.inner != j) continue;
    cx_graph_shape shape = *cx_lazy_tensor_shape(opt->params[i].tensor);
    shape.dtype = dtype;
    calx_value *part;
    CALX_TRY(host_copy(&shape, all + (size_t)at.first * calx_dtype_size(dtype),
                       &part));
    calx_value *own = calx_value_get_at(state, (int64_t)i);
    CALX_TRY(calx_value_set(own, name, part));
  }
  return NULL;
}

calx_status *cx_io_whole_put(const calx_optimizer *opt, calx_value *state)
{
  const calx_optimizer *inner = opt->inner;
  CALX_TRY(put_params(opt, state));
  for (size_t j = 0; j < inner->n; j++) {
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      const char *name = cx_optim_state_name(inner, k);
      calx_tensor *t = calx_optimizer_state(inner, j, name);
      cx_io_elements all = { 0 };
      if (t == NULL) continue;
      CALX_TRY(gather(t, &all));
      calx_status *status =
          split(opt, j, name, calx_tensor_dtype(t), all.data, state);
      cx_io_fetched(&all);
      CALX_TRY(status);
    }
  }
  return NULL;
}

// ---- into the ranks ---------------------------------------------------------

typedef struct whole_loading {
  const calx_optimizer *opt;
  const calx_value *ids, *state;  // of the loaded dict
} whole_loading;

static const calx_value *own_of(const whole_loading *l, size_t i)
{
  int64_t id = calx_value_as_int(calx_value_item(l->ids, i));
  return calx_value_get_at(l->state, id);
}

// The step count of inner's parameter j, on which all its parts must agree. A
// part that was never stepped has no state and does not take part.
static calx_status *find_steps(const whole_loading *l, size_t j,
                               cx_io_param_plan *out)
{
  const calx_optimizer *opt = l->opt, *inner = opt->inner;
  const cx_optim_param *counted = NULL;
  for (size_t i = 0; i < opt->n; i++) {
    const cx_optim_param *p = &opt->params[i];
    const calx_value *own = own_of(l, i);
    cx_io_param_plan found = { .steps = 0 };
    if (opt->rule->position(opt, i).inner != j || own == NULL) continue;
    CALX_TRY(cx_io_optim_find_steps(inner, p, own, &found));
    if (counted != NULL && found.steps != out->steps) {
      return cx_invalid(
          "%s: load_state_dict: '%s' was stepped %" PRId64
          " times, '%s' %" PRId64
          " times; an optimiser whose state is spread over the ranks steps "
          "both alike",
          inner->rule->name, counted->path, out->steps, p->path, found.steps);
    }
    counted = p;
    out->steps = found.steps;
    memcpy(out->number, found.number, sizeof out->number);
  }
  return NULL;
}

// Notes which states any part of inner's parameter j has.
static calx_status *find_states(const whole_loading *l, size_t j,
                                cx_io_param_plan *out)
{
  const calx_optimizer *opt = l->opt;
  for (size_t i = 0; i < opt->n; i++) {
    if (opt->rule->position(opt, i).inner != j) continue;
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      calx_tensor *t;
      CALX_TRY(
          cx_io_optim_find(opt->inner, &opt->params[i], k, own_of(l, i), &t));
      if (t != NULL) out->has[k] = true;
    }
  }
  return NULL;
}

// Copies the elements of t that belong to this rank. In the joined parameter t
// begins at element `first`, and rank r's part, of `size` elements, at r *
// size.
static calx_status *take_part(calx_tensor *t, int64_t first,
                              const cx_graph_shape *part, unsigned char *out)
{
  int64_t size = part->dims[0], begin = cx_io_rank() * size;
  int64_t from = first > begin ? first : begin, to = begin + size;
  if (to > first + calx_tensor_numel(t)) to = first + calx_tensor_numel(t);
  // The tensor is fetched even where this rank needs none of its elements: if
  // it is pending, computing it may need all ranks.
  cx_io_elements e;
  CALX_TRY(cx_io_fetch(t, &e));
  if (from < to) {
    calx_dtype dtype = calx_tensor_dtype(t);
    size_t n = (size_t)(to - from);
    const unsigned char *in = e.data;
    in += (size_t)(from - first) * calx_dtype_size(dtype);
    out += (size_t)(from - begin) * calx_dtype_size(part->dtype);
    if (dtype == part->dtype) {
      memcpy(out, in, n * calx_dtype_size(dtype));
    } else {
      cx_io_convert(dtype, in, part->dtype, out, n);
    }
  }
  cx_io_fetched(&e);
  return NULL;
}

// Fills this rank's part of state k. Elements of parameters without the state
// stay zero.
static calx_status *join(const whole_loading *l, size_t j, int k,
                         const cx_graph_shape *part, unsigned char *out)
{
  const calx_optimizer *opt = l->opt;
  for (size_t i = 0; i < opt->n; i++) {
    const cx_optim_param *p = &opt->params[i];
    cx_optim_position at = opt->rule->position(opt, i);
    calx_tensor *t;
    if (at.inner != j) continue;
    CALX_TRY(cx_io_optim_find(opt->inner, p, k, own_of(l, i), &t));
    if (t == NULL) continue;
    CALX_TRY(cx_annotate(take_part(t, at.first, part, out),
                         "while loading '%s' of '%s'",
                         cx_optim_state_name(opt->inner, k), p->path));
  }
  return NULL;
}

static calx_status *plan_state(const whole_loading *l, size_t j, int k,
                               cx_io_plan *plan, cx_io_param_plan *out)
{
  const calx_optimizer *inner = l->opt->inner;
  cx_graph_shape part = *cx_lazy_tensor_shape(inner->params[j].tensor);
  part.dtype = cx_optim_state_shape(inner, &inner->params[j], k).dtype;
  void *data = cx_calloc((size_t)cx_graph_shape_numel(&part),
                         calx_dtype_size(part.dtype));
  if (data == NULL) return cx_out_of_memory();
  calx_status *status = join(l, j, k, &part, data);
  if (status != NULL) {
    cx_free(data);
    return status;
  }
  calx_tensor *t;
  CALX_TRY(cx_lazy_host_tensor_over(&part, data, cx_free, data, &t));
  status = cx_io_optim_plan_state(inner, j, k, t, plan, out);
  calx_release(t);
  return status;
}

calx_status *cx_io_whole_plan(const calx_optimizer *opt, const calx_value *ids,
                              const calx_value *state, cx_io_plan *plan,
                              cx_io_param_plan *out)
{
  const calx_optimizer *inner = opt->inner;
  whole_loading l = { .opt = opt, .ids = ids, .state = state };
  for (size_t j = 0; j < inner->n; j++) {
    CALX_TRY(find_states(&l, j, &out[j]));
    CALX_TRY(find_steps(&l, j, &out[j]));
  }
  for (size_t j = 0; j < inner->n; j++) {
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      if (out[j].has[k]) CALX_TRY(plan_state(&l, j, k, plan, &out[j]));
    }
  }
  return NULL;
}
