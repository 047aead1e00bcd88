// Random networks of few channels.
#include "network.h"

#include "../../hlo/check.h"
#include "hlo/build.h"

#define MOST_VALUES 40
#define MOST_RESULTS 16

// Images (images, height, width, channels), or with channels first.
typedef struct net {
  cx_hlo_builder *b;
  unsigned seed;
  bool channels_first;
  int64_t images;
  cx_hlo_value *v[MOST_VALUES], *out[MOST_RESULTS];
  size_t n, n_out;
} net;

static int64_t pick(net *g, int64_t n)
{
  g->seed = g->seed * 1664525u + 1013904223u;
  return (int64_t)(g->seed >> 8) % n;
}

// The dimensions of rows, columns and channels.
static const int64_t *order_of(const net *g)
{
  static const int64_t first[3] = { 2, 3, 1 }, last[3] = { 1, 2, 3 };
  return g->channels_first ? first : last;
}

static int64_t size_of(const net *g, const cx_hlo_value *v, int role)
{
  return cx_hlo_value_type(v)->dims[order_of(g)[role]];
}

static void keep(net *g, cx_hlo_value *v)
{
  if (g->n < MOST_VALUES) g->v[g->n++] = v;
}

static void give(net *g, cx_hlo_value *v)
{
  if (g->n_out < MOST_RESULTS) g->out[g->n_out++] = v;
}

static cx_hlo_value *any(net *g)
{
  // Later ones more often.
  const int64_t n = (int64_t)g->n, a = pick(g, n), c = pick(g, n);
  return g->v[a > c ? a : c];
}

// A value with the sizes of x, which may be x.
static cx_hlo_value *like(net *g, const cx_hlo_value *x)
{
  cx_hlo_value *found = NULL;
  for (size_t i = 0; i < g->n; i++) {
    const bool same =
        cx_hlo_type_equal(cx_hlo_value_type(g->v[i]), cx_hlo_value_type(x));
    if (same && (found == NULL || pick(g, 2) == 0)) found = g->v[i];
  }
  return found;
}

// Numbers -1, 0, 1 and 2, so that sums are exact.
static cx_hlo_value *numbers(net *g, const int64_t *dims, size_t rank)
{
  float x[256];
  size_t n = 1;
  for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
  assert_true(n <= 256);
  for (size_t i = 0; i < n; i++) x[i] = (float)(pick(g, 4) - 1);
  const cx_hlo_type t = { CX_HLO_F32, rank, dims };
  return cx_hlo_constant(g->b, t, x, n * sizeof *x);
}

// ---- operations -------------------------------------------------------------

static void convolve(net *g)
{
  cx_hlo_value *x = any(g);
  const int64_t *order = order_of(g);
  const int64_t spatial[2] = { 0, 1 };
  int64_t kernel[4] = { 1 + pick(g, 3), 1 + pick(g, 3), size_of(g, x, 2),
                        1 + pick(g, 3) };
  if (kernel[0] * kernel[1] == 1) kernel[0] = 2;
  int64_t padding[4], stride[2], dilation[2], holes[2];
  bool reversal[2];
  for (int i = 0; i < 2; i++) {
    padding[2 * i] = pick(g, 3);
    padding[2 * i + 1] = pick(g, 3);
    stride[i] = 1 + (pick(g, 4) == 0);
    dilation[i] = 1 + (pick(g, 4) == 0);
    holes[i] = 1 + (pick(g, 4) == 0);
    reversal[i] = pick(g, 3) == 0;
    const int64_t size = (size_of(g, x, i) - 1) * holes[i] + 1 + padding[2 * i];
    const int64_t need = (kernel[i] - 1) * dilation[i] + 2;
    while (size + padding[2 * i + 1] < need) padding[2 * i + 1]++;
  }
  const cx_hlo_conv_dims d = { .n_spatial = 2,
                               .input_feature = order[2],
                               .input_spatial = order,
                               .kernel_input = 2,
                               .kernel_output = 3,
                               .kernel_spatial = spatial,
                               .output_feature = order[2],
                               .output_spatial = order,
                               .strides = stride,
                               .padding = padding,
                               .lhs_dilation = holes,
                               .rhs_dilation = dilation,
                               .reversal = reversal };
  if (size_of(g, x, 0) > 8 || size_of(g, x, 1) > 8) return;
  keep(g, cx_hlo_convolution(g->b, x, numbers(g, kernel, 4), &d));
}

// The gradient by the weights: y as the kernel on x.
static void convolve_images(net *g)
{
  cx_hlo_value *x = any(g), *y = any(g);
  const int64_t *order = order_of(g);
  const int64_t spatial[2] = { 2, 0 };
  int64_t padding[4] = { 0 };
  for (int i = 0; i < 2; i++) {
    if (size_of(g, y, i) > size_of(g, x, i)) return;
    padding[2 * i] = 1;
    if (size_of(g, y, i) < 2) return;
  }
  const cx_hlo_conv_dims d = { .n_spatial = 2,
                               .input_batch = order[2],
                               .input_feature = 0,
                               .input_spatial = order,
                               .kernel_output = order[2],
                               .kernel_input = 0,
                               .kernel_spatial = order,
                               .output_batch = 1,
                               .output_feature = 3,
                               .output_spatial = spatial,
                               .padding = padding };
  give(g, cx_hlo_convolution(g->b, x, y, &d));
}

static void combine(net *g)
{
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_ADD, CX_HLO_OP_SUBTRACT,
                                          CX_HLO_OP_MAXIMUM };
  cx_hlo_value *x = any(g), *y = NULL;
  const cx_hlo_type *t = cx_hlo_value_type(x);
  const int64_t *order = order_of(g);
  // Along images, channels, or rows and columns.
  const int64_t at[2] = { order[0], order[1] };
  const int64_t dims[2] = { t->dims[at[0]], t->dims[at[1]] };
  switch (pick(g, 6)) {
    case 0: y = cx_hlo_splat(g->b, *t, 0.375); break;
    case 1: {
      const int64_t zero = 0;
      y = cx_hlo_broadcast_in_dim(g->b, numbers(g, &t->dims[0], 1), t->dims, 4,
                                  &zero);
      break;
    }
    case 2:
      y = cx_hlo_broadcast_in_dim(g->b, numbers(g, &t->dims[order[2]], 1),
                                  t->dims, 4, &order[2]);
      break;
    case 3:
      y = cx_hlo_broadcast_in_dim(g->b, numbers(g, dims, 2), t->dims, 4, at);
      break;
    case 4: {
      const int64_t ones[4] = { 1, 1, 1, 1 }, all[4] = { 0, 1, 2, 3 };
      y = cx_hlo_broadcast_in_dim(g->b, numbers(g, ones, 4), t->dims, 4, all);
      break;
    }
    default: y = like(g, x); break;
  }
  keep(g, cx_hlo_binary(g->b, kinds[pick(g, 3)], x, y));
}

static void choose(net *g)
{
  cx_hlo_value *x = any(g), *y = like(g, x);
  cx_hlo_value *zero = cx_hlo_splat(g->b, *cx_hlo_value_type(x), 0);
  cx_hlo_value *positive = cx_hlo_compare(g->b, CX_HLO_GT, x, zero);
  if (pick(g, 3) == 0) give(g, positive);
  keep(g, cx_hlo_select(g->b, positive, y, zero));
}

static void at_least(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                     cx_hlo_value **out)
{
  (void)user;
  *out = cx_hlo_compare(b, CX_HLO_GE, args[0], args[1]);
}

static void add_up(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                   cx_hlo_value **out)
{
  (void)user;
  *out = cx_hlo_binary(b, CX_HLO_OP_ADD, args[0], args[1]);
}

// A pooling and, at times, its gradient.
static void pool(net *g)
{
  cx_hlo_value *x = any(g);
  const cx_hlo_type scalar = { CX_HLO_F32, 0, NULL };
  const int64_t *order = order_of(g);
  int64_t size[4] = { 1, 1, 1, 1 }, stride[4] = { 1, 1, 1, 1 };
  int64_t padding[8] = { 0 };
  for (int i = 0; i < 2; i++) {
    size[order[i]] = 1 + pick(g, 2);
    stride[order[i]] = 1 + pick(g, 3);
    padding[2 * order[i]] = pick(g, 2) == 0 && size[order[i]] > 1;
  }
  // Over images too, which the pass leaves as it is.
  if (pick(g, 8) == 0) stride[0] = g->images == 16 ? 1 : 2;
  const cx_hlo_window window = { .dimensions = size,
                                 .strides = stride,
                                 .padding = padding };
  cx_hlo_value *y = cx_hlo_reduce_window_with(
      g->b, CX_HLO_OP_MAXIMUM, x, cx_hlo_lowest(g->b, CX_HLO_F32), &window);
  if (stride[0] == 1) {
    keep(g, y);
  } else {
    give(g, y);
  }
  if (pick(g, 2) == 0) return;
  keep(g, cx_hlo_select_and_scatter(g->b, x, y, cx_hlo_splat(g->b, scalar, 0),
                                    &window, at_least, add_up, NULL));
}

static void cut_or_pad(net *g)
{
  cx_hlo_value *x = any(g);
  const cx_hlo_type scalar = { CX_HLO_F32, 0, NULL };
  int64_t a[4] = { 0 }, c[4], d[4] = { 1, 1, 1, 1 };
  for (int i = 0; i < 4; i++) c[i] = cx_hlo_value_type(x)->dims[i];
  const int64_t at = 1 + pick(g, 3);
  if (pick(g, 2) == 0 && c[at] > 1) {
    a[at] = pick(g, 2);
    d[at] = 1 + pick(g, 2);
    keep(g, cx_hlo_slice(g->b, x, a, c, d));
    return;
  }
  const int64_t low[4] = { 0 }, none[4] = { 0 };
  a[at] = c[at] < 6 ? 1 + pick(g, 2) : 0;
  keep(g, cx_hlo_pad(g->b, x, cx_hlo_splat(g->b, scalar, 0.375), low, a, none));
}

static void join(net *g)
{
  cx_hlo_value *x = any(g), *both[2] = { x, like(g, x) };
  const int64_t at = pick(g, 4);
  if (at > 0 && cx_hlo_value_type(x)->dims[at] > 4) return;
  x = cx_hlo_concatenate(g->b, both, 2, at);
  if (at == 0) {
    give(g, x);
  } else {
    keep(g, x);
  }
}

static void reduce(net *g)
{
  cx_hlo_value *x = any(g);
  const cx_hlo_type scalar = { CX_HLO_F32, 0, NULL };
  int64_t dims[4];
  size_t n = 0;
  for (int64_t d = 0; d < 4; d++) {
    if (pick(g, 2) == 0) dims[n++] = d;
  }
  const bool sum = pick(g, 2) == 0;
  cx_hlo_value *init = sum ? cx_hlo_splat(g->b, scalar, (double)pick(g, 2))
                           : cx_hlo_lowest(g->b, CX_HLO_F32);
  give(g, cx_hlo_reduce_with(g->b, sum ? CX_HLO_OP_ADD : CX_HLO_OP_MAXIMUM, x,
                             init, dims, n));
}

static void flatten(net *g)
{
  cx_hlo_value *x = any(g);
  const int64_t n = cx_hlo_type_elements(cx_hlo_value_type(x));
  const int64_t dims[2] = { g->images, n / g->images };
  give(g, cx_hlo_reshape(g->b, x, dims, 2));
}

// ---- networks ---------------------------------------------------------------

cx_hlo_module *network_new(unsigned seed)
{
  static void (*const steps[])(net *) = { convolve, convolve,   convolve_images,
                                          combine,  combine,    choose,
                                          pool,     cut_or_pad, join,
                                          reduce,   flatten };
  net g = { .seed = seed * 2654435761u + 1 };
  g.channels_first = pick(&g, 2) == 0;
  g.images = 16 + 16 * pick(&g, 2);
  int64_t dims[4] = { g.images };
  const int64_t *order = order_of(&g);
  for (int i = 0; i < 2; i++) dims[order[i]] = 3 + pick(&g, 4);
  dims[order[2]] = 1 + pick(&g, 3);
  const cx_hlo_type param = { CX_HLO_F32, 4, dims };
  CHECK_OK(cx_hlo_builder_new("m", "main", &param, 1, &g.b));
  keep(&g, cx_hlo_param(g.b, 0));
  convolve(&g);
  for (int i = 0; i < 14; i++) steps[pick(&g, 11)](&g);
  give(&g, g.v[g.n - 1]);
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_builder_finish(g.b, g.out, g.n_out, &m));
  CHECK_OK(cx_hlo_verify(m));
  return m;
}
