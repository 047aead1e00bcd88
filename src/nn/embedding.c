// nn/embedding: torch.nn.Embedding and EmbeddingBag.
#include "nn/layer.h"
#include "ops/ops.h"

typedef struct embedding {
  calx_module *m;
  int64_t rows, dim, padding;  // padding: a row, or -1
  calx_nn_embedding_options o;
  calx_embedding_bag_mode mode;  // of EmbeddingBag
} embedding;

// ---- rows -------------------------------------------------------------------

// Scales the rows that the indices read, and whose norm is above max_norm, in
// place. PyTorch divides by norm + 1e-7 too.
static void limit_norms(const embedding *e, calx_tensor *weight,
                        calx_tensor *index)
{
  cx_lazy_no_grad_begin();
  int64_t last = 1;
  calx_norm_options o = { .size = sizeof o,
                          .dims = calx_dims_of(&last, 1),
                          .keepdim = true,
                          .p = e->o.norm_type };
  calx_tensor *norm = calx_norm_with(weight, &o);  // (rows, 1)
  calx_create_options create = { .size = sizeof create,
                                 .dtype = calx_tensor_dtype(weight),
                                 .device = calx_tensor_device(weight) };
  calx_tensor *flat = calx_reshape(index, CALX_SHAPE(-1));
  calx_tensor *ones =
      calx_ones_with(CALX_SHAPE(calx_tensor_numel(flat)), &create);
  calx_tensor *read = calx_index_add_with(
      calx_zeros_with(CALX_SHAPE(e->rows), &create), 0, flat, ones, NULL);
  read = calx_gt(calx_unsqueeze(read, 1), calx_scalar(0));
  calx_tensor *limit = calx_scalar(e->o.max_norm);
  calx_tensor *scale =
      calx_div(limit, calx_add_with(norm, calx_scalar(1e-7), NULL));
  calx_tensor *longer = calx_logical_and(read, calx_gt(norm, limit));
  calx_tensor *next = calx_where(longer, calx_mul(weight, scale), weight);
  if (!cx_lazy_tensor_poisoned(next)) calx_assign(weight, next);
  cx_lazy_no_grad_end();
}

// The weight, whose rows at the indices are not longer than max_norm.
static calx_tensor *weight_for(const embedding *e, calx_tensor *index)
{
  calx_tensor *weight = cx_nn_tensor(e->m, "weight");
  bool fits = cx_nn_has_shape(index) &&
              !cx_dtype_is_float(calx_tensor_dtype(index)) &&
              calx_tensor_dtype(index) != CALX_BOOL;
  if (e->o.max_norm != 0 && fits && !cx_nn_module_watched()) {
    limit_norms(e, weight, index);
  }
  return weight;
}

static int64_t padding_option(const embedding *e)
{
  return e->padding == 0 ? CALX_ZERO_INT : e->padding == -1 ? 0 : e->padding;
}

static calx_tensor *forward(void *self, calx_tensor *index)
{
  const embedding *e = self;
  calx_embedding_options o = { .size = sizeof o,
                               .padding_idx = padding_option(e) };
  return calx_embedding_with(index, weight_for(e, index), &o);
}

static void repr(const void *state, cx_text *out)
{
  const embedding *e = state;
  cx_text_format(out, "%lld, %lld", (long long)e->rows, (long long)e->dim);
  if (e->padding >= 0) {
    cx_text_format(out, ", padding_idx=%lld", (long long)e->padding);
  }
  if (e->o.max_norm != 0) {
    cx_text_append(out, ", max_norm=");
    cx_nn_repr_real(out, e->o.max_norm);
  }
  if (e->o.norm_type != 0 && e->o.norm_type != 2) {
    cx_text_append(out, ", norm_type=");
    cx_nn_repr_real(out, e->o.norm_type);
  }
}

// ---- bags -------------------------------------------------------------------

static calx_tensor *bag_forward2(void *self, calx_tensor *index,
                                 calx_tensor *offsets)
{
  const embedding *e = self;
  calx_embedding_bag_options o = { .size = sizeof o,
                                   .mode = e->mode,
                                   .offsets = offsets,
                                   .padding_idx = padding_option(e) };
  return calx_embedding_bag_with(index, weight_for(e, index), &o);
}

// Each row of indices is a bag.
static calx_tensor *bag_forward(void *self, calx_tensor *index)
{
  return bag_forward2(self, index, NULL);
}

static void bag_repr(const void *state, cx_text *out)
{
  static const char *const modes[] = { "mean", "sum", "max" };
  embedding e = *(const embedding *)state;
  int64_t padding = e.padding;
  e.padding = -1;
  repr(&e, out);
  cx_text_format(out, ", mode='%s'", modes[e.mode]);
  if (padding >= 0) {
    cx_text_format(out, ", padding_idx=%lld", (long long)padding);
  }
}

// ---- making -----------------------------------------------------------------

static const cx_nn_layer embedding_layer = { "Embedding", "embedding", forward,
                                             repr, NULL };
static const cx_nn_layer bag_layer = { "EmbeddingBag", "embedding_bag",
                                       bag_forward, bag_repr, bag_forward2 };

static calx_status *check(embedding *e, const char *call)
{
  if (e->rows <= 0 || e->dim <= 0) {
    return cx_invalid("%s: %lld rows of %lld, positive numbers are wanted",
                      call, (long long)e->rows, (long long)e->dim);
  }
  int64_t padding = e->o.padding_idx;
  e->padding = padding == 0               ? -1
               : padding == CALX_ZERO_INT ? 0
               : padding < 0              ? padding + e->rows
                                          : padding;
  if (padding != 0 && (e->padding < 0 || e->padding >= e->rows)) {
    return cx_invalid("%s: padding_idx %lld is no row of %lld", call,
                      (long long)padding, (long long)e->rows);
  }
  if (!(e->o.max_norm >= 0) || !(e->o.norm_type >= 0)) {
    return cx_invalid(
        "%s: max_norm %g and norm_type %g, positive numbers are "
        "wanted",
        call, e->o.max_norm, e->o.norm_type);
  }
  if ((unsigned)e->mode > CALX_BAG_MAX) {
    return cx_invalid("%s: mode %d is no calx_embedding_bag_mode", call,
                      (int)e->mode);
  }
  return cx_nn_check_dtype(call, e->o.dtype);
}

// Normal values, the padding's row 0.
static calx_tensor *initial(const embedding *e)
{
  calx_create_options o = { .size = sizeof o, .dtype = e->o.dtype };
  if (o.dtype == CALX_DTYPE_DEFAULT) o.dtype = CALX_F32;
  calx_tensor *w = cx_nn_normal(CALX_SHAPE(e->rows, e->dim), o.dtype);
  if (e->padding < 0) return w;
  o.dtype = CALX_I64;
  calx_tensor *row = calx_arange_with(0, (double)e->rows, 1, &o);
  calx_tensor *kept =
      calx_ne(calx_unsqueeze(row, 1), calx_scalar_int(e->padding));
  return calx_where(kept, w, calx_scalar(0));
}

static calx_module *make(const cx_nn_layer *layer, calx_module *parent,
                         const char *name, embedding sizes, calx_status *bad)
{
  void *state;
  calx_module *m = cx_nn_make(layer, parent, name, sizeof(embedding), &state);
  embedding *e = state;
  if (e == NULL) {
    calx_status_free(bad);
    return m;
  }
  sizes.m = m;
  *e = sizes;
  if (bad == NULL) bad = check(e, layer->call);
  if (bad != NULL) {
    cx_nn_module_fail(m, bad);
    return m;
  }
  calx_scope *scope = calx_scope_begin();
  calx_module_param(m, "weight", initial(e));
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}

calx_module *calx_nn_embedding_with(calx_module *parent, const char *name,
                                    int64_t num_embeddings,
                                    int64_t embedding_dim,
                                    const calx_nn_embedding_options *options)
{
  embedding e = { .rows = num_embeddings, .dim = embedding_dim };
  calx_status *bad =
      cx_options_take(embedding_layer.call, options, &e.o, sizeof e.o);
  return make(&embedding_layer, parent, name, e, bad);
}

calx_module *calx_nn_embedding_bag_with(
    calx_module *parent, const char *name, int64_t num_embeddings,
    int64_t embedding_dim, const calx_nn_embedding_bag_options *options)
{
  calx_nn_embedding_bag_options o;
  calx_status *bad = cx_options_take(bag_layer.call, options, &o, sizeof o);
  embedding e = { .rows = num_embeddings,
                  .dim = embedding_dim,
                  .o = { .padding_idx = o.padding_idx,
                         .max_norm = o.max_norm,
                         .norm_type = o.norm_type,
                         .dtype = o.dtype },
                  .mode = o.mode };
  return make(&bag_layer, parent, name, e, bad);
}
