// dist/gradients: gradients are replaced by their means over the ranks, in the
// step's program and in buckets. The gradients of the last layers are computed
// first, so their bucket is reduced while the others are computed.
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "base/trace.h"
#include "dist/dist.h"
#include "lazy/lazy.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

// ---- buckets ----------------------------------------------------------------

typedef struct bucket {
  calx_tensor **grads;
  size_t n;
  double bytes, most;
  calx_collective_options options;
} bucket;

static void flush(bucket *b)
{
  if (b->n == 0) return;
  calx_all_reduce_list_with(b->grads, b->n, CALX_REDUCE_SUM, &b->options);
  b->n = 0;
  b->bytes = 0;
}

static void add(bucket *b, calx_tensor *grad)
{
  double bytes = (double)calx_tensor_numel(grad) *
                 (double)calx_dtype_size(calx_tensor_dtype(grad));
  if (b->bytes + bytes > b->most) flush(b);
  b->grads[b->n++] = grad;
  b->bytes += bytes;
}

// How many ranks a mean is taken over.
static double members(const calx_groups *g)
{
  if (g->count == 0) return calx_world_size();
  return (double)g->count / (double)(g->groups != 0 ? g->groups : 1);
}

static calx_status *reduce(calx_optimizer *opt,
                           const calx_reduce_gradients_options *o)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt),
                       "so there are no gradients to reduce"));
  if (o->bucket_mb < 0) {
    return cx_invalid(
        "reduce_gradients: a bucket of %g MB, a positive number is wanted",
        o->bucket_mb);
  }
  // An optimiser on shards reduces the gradients itself.
  if (cx_lazy_scope_failed() || calx_world_size() == 1 || opt->inner != NULL) {
    return NULL;
  }
  bucket b = { .most = cx_or_default(o->bucket_mb, 25) * 1048576 };
  b.options = (calx_collective_options){ .size = sizeof b.options,
                                         .scale = 1 / members(&o->groups),
                                         .groups = o->groups };
  b.grads = cx_calloc(opt->n + 1, sizeof *b.grads);
  if (b.grads == NULL) return cx_out_of_memory();
  cx_lazy_no_grad_begin();
  for (size_t i = opt->n; i-- > 0;) {
    calx_tensor *grad = cx_lazy_tensor_grad(opt->params[i].tensor);
    if (grad != NULL && !cx_lazy_tensor_poisoned(grad)) add(&b, grad);
  }
  flush(&b);
  cx_lazy_no_grad_end();
  cx_free(b.grads);
  return NULL;
}

void calx_reduce_gradients_with(calx_optimizer *opt,
                                const calx_reduce_gradients_options *options)
{
  calx_reduce_gradients_options o;
  calx_status *status =
      cx_options_take("reduce_gradients", options, &o, sizeof o);
  cx_lazy_scope_pin(status != NULL ? status : reduce(opt, &o));
}

// ---- the step ---------------------------------------------------------------

// Over all ranks, without a gradient.
static calx_tensor *mean_of(calx_tensor *loss)
{
  cx_lazy_no_grad_begin();
  calx_tensor *mean = calx_detach(loss);
  if (calx_world_size() > 1) {
    calx_collective_options o = { .size = sizeof o,
                                  .scale = 1.0 / calx_world_size() };
    mean = calx_all_reduce_with(mean, CALX_REDUCE_SUM, &o);
  }
  cx_lazy_no_grad_end();
  return mean;
}

calx_tensor *calx_dist_step(calx_optimizer *opt, calx_tensor *loss)
{
  calx_reduce_gradients_with(opt, NULL);
  calx_optimizer_step(opt);
  calx_tensor *mean = loss != NULL ? mean_of(loss) : NULL;
  if (cx_lazy_sync_is_deferred()) return mean;
  cx_trace_cause before = cx_trace_set_cause(CX_CAUSE_STEP);
  calx_sync_n(&mean, 1);
  cx_trace_set_cause(before);
  return mean;
}

// ---- the master's model -----------------------------------------------------

typedef struct tensor_list {
  calx_tensor **tensors;
  size_t n, capacity;
  bool failed;
} tensor_list;

static void add_entry(void *user, const char *path, calx_entry_kind kind,
                      calx_tensor *tensor)
{
  (void)path;
  (void)kind;
  tensor_list *l = user;
  for (size_t i = 0; i < l->n; i++) {
    if (l->tensors[i] == tensor) return;  // tied: it has two names
  }
  if (!cx_grow(&l->tensors, &l->capacity, l->n + 1, sizeof *l->tensors)) {
    l->failed = true;
  } else {
    l->tensors[l->n++] = tensor;
  }
}

static calx_status *broadcast(calx_module *model)
{
  CALX_TRY(cx_annotate(calx_module_error(model),
                       "so there is no model to broadcast"));
  if (calx_world_size() == 1) return NULL;
  tensor_list l = { .n = 0 };
  calx_module_visit(model, add_entry, &l);
  if (!l.failed && l.n != 0) {
    cx_lazy_no_grad_begin();
    calx_collective_broadcast_with(l.tensors, l.n, 0, NULL);
    cx_lazy_no_grad_end();
  }
  cx_free(l.tensors);
  return l.failed ? cx_out_of_memory() : NULL;
}

void calx_broadcast_master_param(calx_module *model)
{
  cx_lazy_scope_pin(broadcast(model));
  calx_sync_n(NULL, 0);
}
