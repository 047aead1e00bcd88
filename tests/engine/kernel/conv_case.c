// Random convolutions, by StableHLO's definition.
#include "case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/conv.h"
#include "kernel/matmul.h"

#define MOST 4  // spatial dimensions

typedef struct conv {
  size_t n;
  int64_t batch, features, in, out;  // in, out: of the kernel
  int64_t feature_groups, batch_groups;
  int64_t size[MOST], taps[MOST], results[MOST];
  int64_t stride[MOST], low[MOST], high[MOST], in_dilation[MOST];
  int64_t kernel_dilation[MOST];
  bool reversed[MOST];
  bool positive;               // all elements, of f32
  int64_t order[3][MOST + 2];  // positions of batch, features, spatial...
} conv;

// The offset of batch or in, feature or out, spatial.
static size_t offset(const array *a, const int64_t *order, size_t n,
                     int64_t first, int64_t second, const int64_t *spatial)
{
  int64_t index[MOST + 2];
  index[order[0]] = first;
  index[order[1]] = second;
  for (size_t i = 0; i < n; i++) index[order[2 + i]] = spatial[i];
  size_t at = 0;
  for (size_t i = 0; i < n + 2; i++) {
    at = at * (size_t)a->dims[i] + (size_t)index[i];
  }
  return at;
}

static bool step(int64_t *index, const int64_t *sizes, size_t n)
{
  for (size_t i = n; i-- > 0;) {
    if (++index[i] < sizes[i]) return true;
    index[i] = 0;
  }
  return false;
}

// The element that a tap reads; false: padding or a hole.
static bool meet(const conv *v, const int64_t *result, const int64_t *tap,
                 int64_t *at)
{
  for (size_t i = 0; i < v->n; i++) {
    int64_t t = v->reversed[i] ? v->taps[i] - 1 - tap[i] : tap[i];
    int64_t x =
        result[i] * v->stride[i] + t * v->kernel_dilation[i] - v->low[i];
    if (x < 0 || x % v->in_dilation[i] != 0) return false;
    at[i] = x / v->in_dilation[i];
    if (at[i] >= v->size[i]) return false;
  }
  return true;
}

static void conv_sums(kernel_case *c, const conv *v)
{
  if (c->out.n == 0 || c->rhs.n == 0 || c->lhs.n == 0) return;
  int64_t images = v->batch / v->batch_groups;
  int64_t result[MOST] = { 0 }, tap[MOST] = { 0 }, at[MOST];
  do {
    do {
      if (!meet(v, result, tap, at)) continue;
      for (int64_t n = 0; n < images; n++) {
        for (int64_t o = 0; o < v->out; o++) {
          int64_t fg = o / (v->out / v->feature_groups);
          int64_t bg = o / (v->out / v->batch_groups);
          sum *s = &c->want[offset(&c->out, v->order[2], v->n, n, o, result)];
          for (int64_t i = 0; i < v->in; i++) {
            sum_add(s, &c->lhs,
                    offset(&c->lhs, v->order[0], v->n, bg * images + n,
                           fg * v->in + i, at),
                    &c->rhs, offset(&c->rhs, v->order[1], v->n, i, o, tap),
                    c->out.elem);
          }
        }
      }
    } while (step(tap, v->taps, v->n));
  } while (step(result, v->results, v->n));
}

static void shuffle(int64_t *order, size_t n)
{
  for (size_t i = 0; i < n; i++) order[i] = (int64_t)i;
  if (pick(2) == 0) return;
  for (size_t i = n; i-- > 1;) {
    size_t k = pick((unsigned)i + 1);
    int64_t t = order[i];
    order[i] = order[k];
    order[k] = t;
  }
}

static void pick_dim(conv *v, size_t i, unsigned kind)
{
  v->size[i] = 1 + pick(9);
  v->taps[i] = 1 + pick(4);
  v->stride[i] = v->in_dilation[i] = v->kernel_dilation[i] = 1;
  if (pick(3) == 0) v->kernel_dilation[i] += pick(3);
  if (kind != 1 && pick(3) == 0) v->stride[i] += pick(3);
  if (kind == 1 || (kind == 3 && pick(3) == 0)) v->in_dilation[i] += pick(3);
  v->reversed[i] = kind != 0 && pick(3) == 0;
  v->low[i] = pick(4);
  v->high[i] = pick(4);
  if (kind == 3 && pick(3) == 0) v->low[i] = -(int64_t)pick(3);
  if (kind == 3 && pick(3) == 0) v->high[i] = -(int64_t)pick(3);
  if (kind == 2) v->taps[i] = 1 + pick((unsigned)v->size[i]);
  for (;;) {
    int64_t window = (v->taps[i] - 1) * v->kernel_dilation[i] + 1;
    int64_t padded =
        (v->size[i] - 1) * v->in_dilation[i] + 1 + v->low[i] + v->high[i];
    v->results[i] = padded <= 0 || window > padded
                        ? 0
                        : (padded - window) / v->stride[i] + 1;
    if (padded >= 0 && (v->results[i] > 0 || pick(10) == 0)) return;
    v->high[i]++;
  }
}

// The order of gradients by the weights: features before batch.
static void exchange(conv *v)
{
  for (size_t i = 0; i < v->n + 2; i++) v->order[0][i] = (int64_t)i;
  v->order[0][0] = 1;
  v->order[0][1] = 0;
}

// 0: forward, 1: as an input gradient, 2: as a weight gradient, 3: anything.
static void pick_conv(conv *v)
{
  memset(v, 0, sizeof *v);
  const unsigned kind = pick(4);
  v->n = pick(kind == 3 ? 5 : 4);
  v->feature_groups = v->batch_groups = 1;
  const int64_t groups = pick(3) == 0 ? 1 + pick(4) : 1;
  if (kind == 2 || (kind == 3 && pick(2) == 0)) {
    v->batch_groups = groups;
  } else {
    v->feature_groups = groups;
  }
  v->batch = v->batch_groups * (pick(8) == 0 ? 16 + pick(20) : 1 + pick(4));
  v->in = pick(6) == 0 ? 16 + pick(4) : 1 + pick(5);
  if (pick(60) == 0) v->in = 0;
  v->features = v->in * v->feature_groups;
  v->out = groups * (pick(6) == 0 ? 16 : 1 + (int64_t)pick(6));
  for (size_t i = 0; i < v->n; i++) pick_dim(v, i, kind);
  for (size_t t = 0; t < 3; t++) shuffle(v->order[t], v->n + 2);
  if (kind == 2 && pick(2) == 0) exchange(v);
}

static void pick_narrow(conv *v)
{
  memset(v, 0, sizeof *v);
  const unsigned kind = pick(3);
  v->n = 1 + pick(2);
  v->feature_groups = v->batch_groups = 1;
  v->batch = 16 + pick(24);
  v->in = 1 + pick(4);
  if (kind == 2) {
    v->in = v->batch;
    v->batch = 1 + pick(4);
  }
  v->features = v->in;
  v->out = 1 + pick(11);
  for (size_t i = 0; i < v->n; i++) pick_dim(v, i, kind);
  for (size_t t = 0; t < 3; t++) shuffle(v->order[t], v->n + 2);
  if (kind == 2) exchange(v);
}

// Of a tensor: blocks, pixels, `channels`, then 16 images, which are `images`
// (0 or 1) of the first two dimensions.
static void images_last(conv *v, size_t tensor, int images)
{
  for (size_t i = 0; i < v->n; i++) v->order[tensor][2 + i] = (int64_t)i;
  v->order[tensor][1 - images] = (int64_t)v->n;
  v->order[tensor][images] = (int64_t)v->n + 1;
}

// Blocks of 16 images in the order of lanes: forward, an input gradient or a
// gradient by the weights.
static void pick_lanes(conv *v)
{
  const unsigned kind = pick(3);
  const int64_t blocks = 2 + pick(3), channels = 1 + pick(11);
  int64_t taps, results;
  memset(v, 0, sizeof *v);
  v->n = 3;
  v->feature_groups = v->batch_groups = 1;
  v->batch = kind == 2 ? channels : 16;
  v->features = v->in = kind == 2 ? 16 : channels;
  v->out = 1 + pick(11);
  v->size[0] = blocks;
  v->taps[0] = kind == 2 ? blocks : 1;
  v->results[0] = kind == 2 ? 1 : blocks;
  v->stride[0] = v->in_dilation[0] = v->kernel_dilation[0] = 1;
  do {
    pick_dim(v, 1, kind);
    pick_dim(v, 2, kind);
    taps = blocks * v->taps[1] * v->taps[2];
    results = v->results[1] * v->results[2];
  } while (results == 0 || v->size[1] == 1 || v->size[2] == 1 ||
           v->in_dilation[1] > 2 || v->in_dilation[2] > 2 ||
           (kind == 2 && taps <= results));
  images_last(v, 0, kind == 2 ? 1 : 0);
  shuffle(v->order[kind == 2 ? 2 : 1], v->n + 2);
  images_last(v, kind == 2 ? 1 : 2, 0);
}

static void pick_wide(conv *v)
{
  for (size_t i = 0; i < v->n; i++) {
    v->size[i] = v->taps[i] + 8;
    v->low[i] = v->high[i] = pick(3);
    v->stride[i] = v->kernel_dilation[i] = 1;
    v->results[i] = v->size[i] + 2 * v->low[i] - v->taps[i] + 1;
  }
}

// Any convolution with groups; the gradient by the weights has batch groups.
static void pick_depthwise(conv *v)
{
  memset(v, 0, sizeof *v);
  const unsigned kind = pick(3);
  const int64_t groups = 2 + pick(30);
  v->n = 1 + pick(3);
  v->feature_groups = v->batch_groups = 1;
  *(kind == 2 ? &v->batch_groups : &v->feature_groups) = groups;
  v->in = kind == 2 ? 1 + (int64_t)pick(4) : 1;
  v->batch = kind == 2 ? groups : 1 + (int64_t)pick(4);
  v->features = v->in * v->feature_groups;
  v->out = groups;
  for (size_t i = 0; i < v->n; i++) pick_dim(v, i, kind);
  // Gradients for kernels of more than 3 x 3 taps.
  if (kind == 2 && pick(2) == 0) pick_wide(v);
  for (size_t t = 0; t < 3; t++) shuffle(v->order[t], v->n + 2);
  if (kind == 2 && pick(2) == 0) exchange(v);
}

// Channels last: images before pixels before features. `turned`: features
// first, as in gradients by the weights.
static void channels_last(conv *v, size_t tensor, bool turned)
{
  v->order[tensor][turned ? 1 : 0] = 0;
  v->order[tensor][turned ? 0 : 1] = (int64_t)v->n + 1;
  for (size_t i = 0; i < v->n; i++) v->order[tensor][2 + i] = (int64_t)i + 1;
}

// A convolution of one tap, or the gradient by its weights.
static void pick_product(conv *v)
{
  memset(v, 0, sizeof *v);
  const bool gradient = pick(2) == 0;
  v->n = pick(4);
  v->feature_groups = v->batch_groups = 1;
  v->batch = 1 + pick(20);
  v->features = v->in = 1 + pick(20);
  v->out = 1 + pick(20);
  for (size_t i = 0; i < v->n; i++) {
    v->size[i] = 1 + pick(5);
    v->taps[i] = gradient ? v->size[i] : 1;
    v->results[i] = gradient ? 1 : v->size[i];
    v->stride[i] = v->in_dilation[i] = v->kernel_dilation[i] = 1;
  }
  channels_last(v, 0, gradient);
  channels_last(v, 1, false);
  channels_last(v, 2, false);
  if (!gradient) shuffle(v->order[1], v->n + 2);
  // Sometimes one that is similar, but no matrix product.
  if (pick(8) == 0) shuffle(v->order[pick(3)], v->n + 2);
}

// Convolutions for Winograd's algorithm: 3 x 3 taps, or as many results.
static void pick_winograd(conv *v)
{
  memset(v, 0, sizeof *v);
  const bool gradient = pick(2) == 0;
  v->n = 2;
  v->feature_groups = v->batch_groups = 1;
  v->batch = gradient ? 32 : 4;
  v->features = v->in = gradient ? 4 : 32;
  v->out = 32;
  for (size_t i = 0; i < v->n; i++) {
    v->size[i] = 12 + pick(3);
    v->taps[i] = gradient ? v->size[i] : 3;
    v->results[i] = gradient ? 3 : v->size[i];
    v->low[i] = v->high[i] = 1;
    v->stride[i] = v->in_dilation[i] = v->kernel_dilation[i] = 1;
  }
  for (size_t t = 0; t < 3; t++) {
    if (pick(2) == 0) {
      channels_last(v, t, gradient && t == 0);
    } else {
      for (size_t i = 0; i < v->n + 2; i++) v->order[t][i] = (int64_t)i;
    }
  }
  if (gradient && v->order[0][0] == 0) exchange(v);
}

// Sizes around those of vectors, groups of rows and blocks of inner elements.
static int64_t pick_channels(int64_t most)
{
  static const int64_t sizes[] = { 1, 3, 8, 16, 17, 31, 48, 70, 130, 300 };
  int64_t size;
  do {
    size = sizes[pick(sizeof sizes / sizeof *sizes)];
  } while (size > most);
  return size;
}

// 0: forward, 1: an input gradient, 2: a gradient by the weights.
static void pick_implicit(conv *v)
{
  memset(v, 0, sizeof *v);
  const unsigned kind = pick(3);
  v->n = 1 + pick(3);
  v->feature_groups = v->batch_groups = 1;
  v->batch = kind == 2 ? pick_channels(130) : 1 + pick(4);
  v->features = v->in = kind == 2 ? 1 + pick(4) : pick_channels(300);
  v->out = pick_channels(130);
  for (size_t i = 0; i < v->n; i++) {
    do {
      pick_dim(v, i, kind);
    } while (v->results[i] == 0);
    if (kind == 2) v->reversed[i] = false;
  }
  for (size_t t = 0; t < 3; t++) channels_last(v, t, kind == 2 && t == 0);
  if (kind == 2) {  // the taps' rows are together in the result
    v->order[2][0] = (int64_t)v->n;
    for (size_t i = 0; i < v->n; i++) v->order[2][2 + i] = (int64_t)i;
  } else if (pick(2) == 0) {
    v->order[1][0] = (int64_t)v->n + 1;
    v->order[1][1] = 0;
  }
}

// As many channels, images and pixels as split products take (on AMX), and few
// more.
static void pick_split(conv *v)
{
  int64_t taps, results;
  do {
    pick_implicit(v);
    taps = results = 1;
    for (size_t i = 0; i < v->n; i++) {
      taps *= v->taps[i];
      results *= v->results[i];
    }
  } while (taps * results > 200);
  v->out = 128 + pick(40);
  if (v->order[0][1] == 0) {  // a gradient by the weights
    // 2000 pixels are divided into parts.
    const bool few = pick(2) == 0;
    v->batch = 16 + (few ? 256 / results + pick(40) : 96 / results);
    v->features = v->in = (few ? 128 : 2000) / taps + 1 + pick(4);
  } else {
    v->batch = 256 / results + 1 + pick(4);
    v->features = v->in = 128 + pick(40);
  }
}

// A gradient by the weights whose elements are sums of 12,000 products of one
// sign or more, for kernels that add them up one after the other. Those for
// AVX-512 do so for images of one channel.
static void pick_long(conv *v)
{
  const bool wide = cpu_kernel_vector_bytes() > 32;
  memset(v, 0, sizeof *v);
  v->n = 2;
  v->feature_groups = v->batch_groups = 1;
  v->features = v->in = wide ? 32 : 64;  // images
  v->batch = wide ? 1 : 16;              // channels of them
  v->out = wide ? 32 : 16;
  v->positive = true;
  for (size_t i = 0; i < v->n; i++) {
    v->taps[i] = wide ? 28 : 14;
    v->results[i] = wide ? 3 : 2;
    v->size[i] = v->taps[i] + v->results[i] - 1;
    v->stride[i] = v->in_dilation[i] = v->kernel_dilation[i] = 1;
  }
  for (size_t t = 0; t < 3; t++) channels_last(v, t, t == 0);
}

static void make_positive(array *a)
{
  float *v = (float *)(void *)a->data;
  for (size_t i = 0; i < a->n; i++) v[i] = fabsf(v[i]);
}

// The builder only makes convolutions of operands of one type.
static void make_conv(kernel_case *c, const conv *of,
                      const cx_hlo_elem elems[3])
{
  const conv v = *of;
  int64_t dims[2][MOST + 2], padding[2 * MOST];
  dims[0][v.order[0][0]] = v.batch;
  dims[0][v.order[0][1]] = v.features;
  dims[1][v.order[1][0]] = v.in;
  dims[1][v.order[1][1]] = v.out;
  for (size_t i = 0; i < v.n; i++) {
    dims[0][v.order[0][2 + i]] = v.size[i];
    dims[1][v.order[1][2 + i]] = v.taps[i];
    padding[2 * i] = v.low[i];
    padding[2 * i + 1] = v.high[i];
  }
  memset(c, 0, sizeof *c);
  array_init(&c->lhs, elems[0], dims[0], v.n + 2);
  array_init(&c->rhs, elems[0], dims[1], v.n + 2);
  array_fill(&c->lhs);
  array_fill(&c->rhs);
  if (v.positive) {
    make_positive(&c->lhs);
    make_positive(&c->rhs);
  }
  const cx_hlo_type params[2] = { array_type(&c->lhs), array_type(&c->rhs) };
  const cx_hlo_conv_dims numbers = { .n_spatial = v.n,
                                     .input_batch = v.order[0][0],
                                     .input_feature = v.order[0][1],
                                     .input_spatial = v.order[0] + 2,
                                     .kernel_input = v.order[1][0],
                                     .kernel_output = v.order[1][1],
                                     .kernel_spatial = v.order[1] + 2,
                                     .output_batch = v.order[2][0],
                                     .output_feature = v.order[2][1],
                                     .output_spatial = v.order[2] + 2,
                                     .strides = v.stride,
                                     .padding = padding,
                                     .lhs_dilation = v.in_dilation,
                                     .rhs_dilation = v.kernel_dilation,
                                     .reversal = v.reversed,
                                     .feature_groups = v.feature_groups,
                                     .batch_groups = v.batch_groups };
  cx_hlo_builder *b;
  assert_null(cx_hlo_builder_new("m", "main", params, 2, &b));
  case_finish(
      c, b,
      cx_hlo_convolution(b, cx_hlo_param(b, 0), cx_hlo_param(b, 1), &numbers),
      elems[2]);
  conv_sums(c, &v);
}

void conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_conv(&v);
  make_conv(c, &v, elems);
}

void narrow_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_narrow(&v);
  make_conv(c, &v, elems);
}

void lanes_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_lanes(&v);
  make_conv(c, &v, elems);
  c->choice = CPU_KERNEL_CONV_CHOICE_LANES;
  c->name = "of 16 images at once";
}

void depthwise_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_depthwise(&v);
  make_conv(c, &v, elems);
}

void product_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_product(&v);
  make_conv(c, &v, elems);
}

void winograd_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_winograd(&v);
  make_conv(c, &v, elems);
}

void long_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_long(&v);
  make_conv(c, &v, elems);
}

void implicit_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_implicit(&v);
  make_conv(c, &v, elems);
  c->choice = CPU_KERNEL_CONV_CHOICE_IMPLICIT;
  c->name = "implicit product";
}

void split_conv_case(kernel_case *c, const cx_hlo_elem elems[3])
{
  conv v;
  pick_split(&v);
  make_conv(c, &v, elems);
  c->choice = CPU_KERNEL_CONV_CHOICE_IMPLICIT;
  c->name = cpu_kernel_has_tiles() ? "split" : "implicit product";
}
