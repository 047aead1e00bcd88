// ops/bucket: one collective for many tensors. Those of one dtype are flattened
// and concatenated, and the result is sliced into the tensors again. The bounds
// of the slices are constants of the program.
#include "ops/bucket.h"

#include <string.h>

#include "base/alloc.h"

typedef struct part_attrs {
  cx_graph_shape shape;
  int64_t start;
} part_attrs;

static calx_status *infer_part(cx_graph_node *node)
{
  node->out[0].shape = ((const part_attrs *)node->attrs)->shape;
  return NULL;
}

static void emit_part(cx_graph_emit *e)
{
  const part_attrs *a = e->attrs;
  int64_t end = a->start + cx_graph_shape_numel(&a->shape), stride = 1;
  cx_hlo_value *v = cx_hlo_slice(e->b, e->in[0], &a->start, &end, &stride);
  e->out[0] = cx_hlo_reshape(e->b, v, a->shape.dims, a->shape.rank);
}

static void describe_part(const void *attrs, cx_text *out)
{
  const part_attrs *a = attrs;
  cx_text_format(out, "%lld: ", (long long)a->start);
  cx_graph_shape_print(out, &a->shape);
}

CX_OPS_DEFINE(bucket_part, .attr_size = sizeof(part_attrs), .infer = infer_part,
              .emit = emit_part, .describe = describe_part)

// The tensors in[which[0]], in[which[1]], …, all of one dtype.
static void one_bucket(calx_tensor *const *in, const size_t *which, size_t n,
                       cx_ops_bucket_fn *fn, void *user, calx_tensor **flat,
                       calx_tensor **out)
{
  if (n == 1) {
    out[which[0]] = fn(user, in[which[0]]);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    int64_t count = calx_tensor_numel(in[which[i]]);
    flat[i] = calx_reshape(in[which[i]], calx_dims_of(&count, 1));
  }
  calx_tensor *all = fn(user, calx_cat(flat, n, 0));
  int64_t start = 0;
  for (size_t i = 0; i < n; i++) {
    part_attrs a;
    memset(&a, 0, sizeof a);
    a.shape = *cx_lazy_tensor_shape(in[which[i]]);
    a.start = start;
    start += cx_graph_shape_numel(&a.shape);
    out[which[i]] = cx_ops_record(&cx_ops_bucket_part, &all, 1, &a);
  }
}

void cx_ops_bucketed(calx_tensor *const *in, size_t n, cx_ops_bucket_fn *fn,
                     void *user, calx_tensor **out)
{
  size_t *which = cx_alloc(n * sizeof *which + 1);
  calx_tensor **flat =
      cx_alloc((n < CX_OPS_CAT_MOST ? n : CX_OPS_CAT_MOST) * sizeof *flat + 1);
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  for (size_t i = 0; which != NULL && flat != NULL && i < n; i++) {
    if (out[i] != NULL) continue;
    calx_dtype dtype = cx_lazy_tensor_shape(in[i])->dtype;
    size_t count = 0;
    for (size_t k = i; k < n && count < CX_OPS_CAT_MOST; k++) {
      if (out[k] == NULL && cx_lazy_tensor_shape(in[k])->dtype == dtype) {
        which[count++] = k;
      }
    }
    one_bucket(in, which, count, fn, user, flat, out);
  }
  for (size_t i = 0; i < n; i++) {
    if (out[i] == NULL) out[i] = cx_lazy_tensor_poison(cx_out_of_memory());
  }
  cx_free(which);
  cx_free(flat);
}
