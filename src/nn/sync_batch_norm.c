// nn/sync_batch_norm: torch.nn.SyncBatchNorm. One all_gather collects the mean
// and variance of each rank, which are combined as T. Chan, G. Golub and R.
// LeVeque do (Updating formulae and a pairwise algorithm for computing sample
// variances, 1979): a difference of large sums would lose precision.
//
// It is a composition, so its gradient is autograd's: the ranks' gradients of
// the statistics come back in one reduce_scatter.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/collective.h"
#include "lazy/lazy.h"
#include "nn/batch_norm.h"
#include "ops/ops.h"
#include "world/world.h"

// Over all dimensions but 1: (1, C, 1, …).
static calx_tensor *mean_channels(calx_tensor *x)
{
  int64_t dims[CALX_MAX_RANK];
  size_t n = cx_ops_norm_dims(cx_lazy_tensor_shape(x)->rank, dims);
  calx_reduce_options o = { .size = sizeof o,
                            .dims = calx_dims_of(dims, n),
                            .keepdim = true };
  return calx_mean_with(x, &o);
}

static calx_tensor *mean_ranks(calx_tensor *x)
{
  int64_t first = 0;
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&first, 1) };
  return calx_mean_with(x, &o);
}

typedef struct statistics {
  calx_tensor *mean, *var;  // (C), of all ranks' elements; var is biased
} statistics;

static statistics gather(const cx_nn_batch_norm *b, calx_tensor *x)
{
  int64_t row[] = { 1, 1, b->features };
  calx_dims shape = calx_dims_of(row, 3);
  calx_tensor *mean = mean_channels(x);
  calx_tensor *var = mean_channels(calx_square(cx_ops_minus(x, mean)));
  calx_tensor *mine[] = { calx_reshape(mean, shape), calx_reshape(var, shape) };
  calx_tensor *all =
      calx_all_gather_with(calx_cat(mine, 2, 1), 0, NULL);  // (ranks, 2, C)
  calx_tensor *means = calx_select(all, 1, 0), *vars = calx_select(all, 1, 1);
  statistics s = { .mean = mean_ranks(means) };
  calx_tensor *between = mean_ranks(calx_square(cx_ops_minus(means, s.mean)));
  s.var = cx_ops_plus(mean_ranks(vars), between);
  return s;
}

static void update(const cx_nn_batch_norm *b, calx_tensor *running,
                   calx_tensor *seen)
{
  calx_batch_norm_options o = cx_nn_batch_norm_op(b);
  seen = calx_to_dtype(seen, calx_tensor_dtype(running));
  cx_ops_norm_update(running, seen, &o);
}

static void update_running(const cx_nn_batch_norm *b, const statistics *s,
                           double count)
{
  if (!cx_nn_batch_norm_updates(b)) return;
  cx_lazy_no_grad_begin();
  update(b, cx_nn_tensor(b->m, "running_mean"), s->mean);
  update(b, cx_nn_tensor(b->m, "running_var"),
         calx_mul(s->var, cx_ops_number(count / (count - 1))));
  cx_lazy_no_grad_end();
}

// In f32 for narrower types.
static calx_tensor *over_ranks(const cx_nn_batch_norm *b, calx_tensor *x,
                               int ranks)
{
  const cx_graph_shape *shape = cx_lazy_tensor_shape(x);
  calx_dtype dtype = shape->dtype;
  double count =
      (double)cx_graph_shape_numel(shape) / (double)b->features * ranks;
  if (dtype != CALX_F64) x = calx_to_dtype(x, CALX_F32);
  statistics s = gather(b, x);
  calx_batch_norm_options o = cx_nn_batch_norm_op(b);
  calx_tensor *y = cx_ops_norm_apply(x, s.mean, s.var, &o);
  y = calx_to_dtype(y, dtype);
  if (!cx_lazy_tensor_poisoned(y)) update_running(b, &s, count);
  return y;
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  const cx_nn_batch_norm *b = self;
  bool training = calx_module_is_training(b->m);
  int ranks = cx_world_size(cx_world_self());
  if (x != NULL && cx_lazy_tensor_value(x).node != NULL &&
      (calx_tensor_rank(x) < 2 || calx_tensor_dim(x, 1) != b->features ||
       !cx_dtype_is_float(calx_tensor_dtype(x)))) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "floating (N, %lld, …)",
             (long long)b->features);
    return cx_nn_module_refuse(b->m, x, wanted);
  }
  calx_batch_norm_options o = cx_nn_batch_norm_op(b);
  calx_tensor *y, *before[2];
  cx_nn_batch_norm_before(b, before);
  if (training && ranks > 1 && x != NULL &&
      cx_lazy_tensor_value(x).node != NULL)
    y = over_ranks(b, x, ranks);
  else
    y = calx_batch_norm_with(x, &o);
  cx_nn_batch_norm_after(b, y, before);
  return y;
}

static const cx_nn_layer sync_batch_norm = { "SyncBatchNorm", "sync_batch_norm",
                                             forward, cx_nn_batch_norm_repr,
                                             NULL };

calx_module *calx_nn_sync_batch_norm_with(
    calx_module *parent, const char *name, int64_t features,
    const calx_nn_batch_norm_options *options)
{
  return cx_nn_batch_norm_make(&sync_batch_norm, parent, name, features,
                               options);
}

// ---- converting -------------------------------------------------------------

// Both kinds of layer have the same state; only the forward function and the
// kind's name change.
void calx_convert_sync_batchnorm(calx_module *model)
{
  if (model == NULL || cx_nn_module_is_nil(model)) return;
  if (strncmp(model->kind, "BatchNorm", 9) == 0 && model->state != NULL &&
      model->self == model->state) {
    char *kind = cx_strdup(sync_batch_norm.kind);
    if (kind == NULL) {
      cx_nn_module_fail(model, cx_out_of_memory());
      return;
    }
    cx_free(model->kind);
    model->kind = kind;
    model->forward = forward;
    model->layer = &sync_batch_norm;
  }
  for (size_t i = 0; i < model->count; i++) {
    calx_convert_sync_batchnorm(model->entries[i].child);
  }
}
