// How losses and layers' functions of the recorded cases are spelled in calx.
#include <string.h>

#include "oracle.h"

static double number(const call *c, const char *name, double otherwise)
{
  json_t *v = json_object_get(c->attrs, name);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

// An option of which 0 must be said.
static double said(const call *c, const char *name)
{
  json_t *v = json_object_get(c->attrs, name);
  if (!json_is_number(v)) return 0;
  return json_number_value(v) != 0 ? json_number_value(v) : CALX_ZERO;
}

static bool flag(const call *c, const char *name)
{
  return json_is_true(json_object_get(c->attrs, name));
}

static calx_reduction reduction(const call *c)
{
  const char *r = json_string_value(json_object_get(c->attrs, "reduction"));
  if (r == NULL) return CALX_REDUCTION_DEFAULT;
  if (strcmp(r, "sum") == 0) return CALX_SUM;
  return strcmp(r, "none") == 0 ? CALX_NONE : CALX_MEAN;
}

static calx_tensor *absolute_distance(void *user, calx_tensor *x,
                                      calx_tensor *y)
{
  (void)user;
  return calx_sum(calx_abs(calx_sub(x, y)), .dims = CALX_DIMS(-1));
}

static calx_nll_loss_options nll(const call *c)
{
  int64_t ignore = (int64_t)number(c, "ignore_index", -100);
  return (calx_nll_loss_options){ .size = sizeof(calx_nll_loss_options),
                                  .reduction = reduction(c),
                                  .weight = c->in[2],
                                  .ignore_index =
                                      ignore == 0 ? CALX_ZERO_INT : ignore,
                                  .label_smoothing =
                                      number(c, "label_smoothing", 0) };
}

static calx_tensor *cross_entropy(const call *c)
{
  calx_nll_loss_options o = nll(c);
  return calx_cross_entropy_with(c->in[0], c->in[1], &o);
}

static calx_tensor *nll_loss(const call *c)
{
  calx_nll_loss_options o = nll(c);
  return calx_nll_loss_with(c->in[0], c->in[1], &o);
}

// The numbers of a list, or of one number; none where there is none.
static calx_dims list(const call *c, const char *name)
{
  json_t *v = json_object_get(c->attrs, name);
  calx_dims d = { .count = 0 };
  if (json_is_integer(v)) {
    d.count = 1;
    d.values[0] = json_integer_value(v);
  }
  for (; d.count < json_array_size(v); d.count++) {
    d.values[d.count] = json_integer_value(json_array_get(v, d.count));
  }
  return d;
}

static calx_tensor *fold(const call *c)
{
  calx_fold_options o = { .size = sizeof o };
  const struct {
    const char *name;
    int64_t *to;
  } parts[] = { { "dilation", o.dilation },
                { "padding", o.padding },
                { "stride", o.stride } };
  for (int k = 0; k < 3; k++) {
    calx_dims d = list(c, parts[k].name);
    for (size_t i = 0; i < d.count; i++) parts[k].to[i] = d.values[i];
  }
  return calx_fold_with(c->in[0], list(c, "output_size"),
                        list(c, "kernel_size"), &o);
}

static calx_tensor *unpool(const call *c, int n)
{
  calx_max_unpool_options o = { .size = sizeof o,
                                .stride = list(c, "stride"),
                                .padding = list(c, "padding"),
                                .output_size = list(c, "output_size") };
  calx_dims k = list(c, "kernel_size");
  return n == 1   ? calx_max_unpool1d_with(c->in[0], c->in[1], k, &o)
         : n == 2 ? calx_max_unpool2d_with(c->in[0], c->in[1], k, &o)
                  : calx_max_unpool3d_with(c->in[0], c->in[1], k, &o);
}

static void copy_list(const call *c, const char *name, int64_t *to)
{
  calx_dims d = list(c, name);
  for (size_t i = 0; i < d.count && i < 3; i++) {
    to[i] = d.values[i] != 0 ? d.values[i] : CALX_ZERO_INT;
  }
}

static calx_tensor *max_pool3d(call *c)
{
  calx_dims k = list(c, "kernel_size");
  calx_max_pool3d_options o = { .size = sizeof o,
                                .ceil_mode = flag(c, "ceil_mode"),
                                .kernel_height = k.values[1],
                                .kernel_width = k.values[2],
                                .out_indices = &c->out[1] };
  copy_list(c, "stride", o.stride);
  copy_list(c, "padding", o.padding);
  copy_list(c, "dilation", o.dilation);
  return calx_max_pool3d_with(c->in[0], k.values[0], &o);
}

static calx_tensor *lp_pool(const call *c, int n)
{
  calx_lp_pool_options o = { .size = sizeof o,
                             .ceil_mode = flag(c, "ceil_mode") };
  double p = number(c, "norm_type", 0);
  copy_list(c, "kernel_size", o.kernel_size);
  copy_list(c, "stride", o.stride);
  return n == 1   ? calx_lp_pool1d_with(c->in[0], p, &o)
         : n == 2 ? calx_lp_pool2d_with(c->in[0], p, &o)
                  : calx_lp_pool3d_with(c->in[0], p, &o);
}

static calx_tensor *embedding_bag(const call *c)
{
  const char *mode = json_string_value(json_object_get(c->attrs, "mode"));
  return calx_embedding_bag(
      c->in[0], c->in[1], .offsets = c->in[2], .per_sample_weights = c->in[3],
      .include_last_offset = flag(c, "include_last_offset"),
      .padding_idx = (int64_t)number(c, "padding_idx", CALX_DEFAULT_INT),
      .mode = strcmp(mode, "sum") == 0   ? CALX_BAG_SUM
              : strcmp(mode, "max") == 0 ? CALX_BAG_MAX
                                         : CALX_BAG_MEAN);
}

static calx_tensor *grid_sample(const call *c)
{
  const char *mode = json_string_value(json_object_get(c->attrs, "mode"));
  const char *pad =
      json_string_value(json_object_get(c->attrs, "padding_mode"));
  return calx_grid_sample(
      c->in[0], c->in[1], .align_corners = flag(c, "align_corners"),
      .mode = strcmp(mode, "nearest") == 0   ? CALX_GRID_NEAREST
              : strcmp(mode, "bicubic") == 0 ? CALX_GRID_BICUBIC
                                             : CALX_GRID_BILINEAR,
      .padding_mode = strcmp(pad, "border") == 0       ? CALX_GRID_BORDER
                      : strcmp(pad, "reflection") == 0 ? CALX_GRID_REFLECTION
                                                       : CALX_GRID_ZEROS);
}

#define X c->in[0]
#define Y c->in[1]
#define Z c->in[2]
#define R .reduction = reduction(c)
// clang-format off
#define ROWS(ROW) \
  ROW(margin_ranking_loss, calx_margin_ranking_loss(X, Y, Z, R, .margin = number(c, "margin", 0))) \
  ROW(soft_margin_loss, calx_soft_margin_loss(X, Y, R)) \
  ROW(hinge_embedding_loss, calx_hinge_embedding_loss(X, Y, R, .margin = number(c, "margin", CALX_DEFAULT))) \
  ROW(poisson_nll_loss, calx_poisson_nll_loss(X, Y, R, .no_log_input = !flag(c, "log_input"), .full = flag(c, "full"))) \
  ROW(cosine_embedding_loss, calx_cosine_embedding_loss(X, Y, Z, R, .margin = number(c, "margin", 0))) \
  ROW(triplet_margin_loss, calx_triplet_margin_loss(X, Y, Z, R, .margin = said(c, "margin"), .p = number(c, "p", 0), .swap = flag(c, "swap"))) \
  ROW(triplet_l1, calx_triplet_margin_with_distance_loss(X, Y, Z, R, .margin = said(c, "margin"), .swap = flag(c, "swap"), .distance_function = absolute_distance)) \
  ROW(triplet_default, calx_triplet_margin_with_distance_loss(X, Y, Z, R, .swap = flag(c, "swap"))) \
  ROW(multi_margin_loss, calx_multi_margin_loss(X, Y, R, .p = (int)number(c, "p", 0), .margin = number(c, "margin", CALX_DEFAULT), .weight = Z)) \
  ROW(multilabel_margin_loss, calx_multilabel_margin_loss(X, Y, R)) \
  ROW(multilabel_soft_margin_loss, calx_multilabel_soft_margin_loss(X, Y, R, .weight = Z)) \
  ROW(gaussian_nll_loss, calx_gaussian_nll_loss(X, Y, Z, R, .full = flag(c, "full"), .eps = number(c, "eps", CALX_DEFAULT))) \
  ROW(cross_entropy_weighted, cross_entropy(c)) \
  ROW(nll_loss_weighted, nll_loss(c)) \
  ROW(fold, fold(c)) \
  ROW(max_unpool1d, unpool(c, 1)) \
  ROW(max_unpool2d, unpool(c, 2)) \
  ROW(max_unpool3d, unpool(c, 3)) \
  ROW(grid_sample, grid_sample(c)) \
  ROW(max_pool3d, (c->n_out = 2, max_pool3d(c))) \
  ROW(lp_pool1d, lp_pool(c, 1)) \
  ROW(lp_pool2d, lp_pool(c, 2)) \
  ROW(lp_pool3d, lp_pool(c, 3)) \
  ROW(embedding_bag, embedding_bag(c)) \
  ROW(adaptive_max_indices, (c->n_out = 2, calx_adaptive_max_pool_with_indices(X, list(c, "output_size"), &c->out[1]))) \
  ROW(affine_grid, calx_affine_grid(X, list(c, "sizes"), .align_corners = flag(c, "align_corners"))) \
  ROW(pixel_unshuffle, calx_pixel_unshuffle(X, (int64_t)number(c, "downscale_factor", 0))) \
  ROW(channel_shuffle, calx_channel_shuffle(X, (int64_t)number(c, "groups", 0))) \
  ROW(local_response_norm, calx_local_response_norm(X, (int64_t)number(c, "size", 0), .alpha = said(c, "alpha"), .beta = said(c, "beta"), .k = said(c, "k"))) \
  ROW(rrelu, calx_rrelu(X, .lower = number(c, "lower", CALX_DEFAULT), .upper = number(c, "upper", CALX_DEFAULT))) \
  ROW(bilinear, calx_bilinear(X, Y, Z, c->in[3])) \
  ROW(ctc_loss, calx_ctc_loss(X, Y, Z, c->in[3], R, .blank = (int64_t)number(c, "blank", 0), .zero_infinity = flag(c, "zero_infinity")))
// clang-format on

bool oracle_call_model(call *c)
{
#define CALL(name, expression)     \
  if (strcmp(c->op, #name) == 0) { \
    c->out[0] = (expression);      \
    return true;                   \
  }
  ROWS(CALL)
  return false;
}
