// kernel/conv_onednn_rules: which of oneDNN's candidates for a convolution are
// worth measuring, and which one is likely the fastest.
#include "kernel/conv.h"
#include "kernel/conv_onednn.h"
#include "kernel/onednn.h"

bool cpu_kernel_onednn_has_types(const cpu_kernel_conv_desc *d)
{
  cpu_kernel_math math;
  bool complex;
  return cpu_kernel_math_of(d->types, &math, &complex) &&
         math == CPU_KERNEL_F32 && !complex;
}

void cpu_kernel_onednn_order(const cpu_kernel_conv_desc *d,
                             int order[CPU_KERNEL_ONEDNN_CANDIDATES])
{
  static const cpu_kernel_onednn_layout wide[CPU_KERNEL_ONEDNN_LAYOUTS] = {
    CPU_KERNEL_ONEDNN_ANY, CPU_KERNEL_ONEDNN_LAST, CPU_KERNEL_ONEDNN_AS_GIVEN,
    CPU_KERNEL_ONEDNN_ALL_GIVEN, CPU_KERNEL_ONEDNN_WINOGRAD
  };
  static const cpu_kernel_onednn_layout narrow[CPU_KERNEL_ONEDNN_LAYOUTS] = {
    CPU_KERNEL_ONEDNN_LAST, CPU_KERNEL_ONEDNN_ANY, CPU_KERNEL_ONEDNN_AS_GIVEN,
    CPU_KERNEL_ONEDNN_ALL_GIVEN, CPU_KERNEL_ONEDNN_WINOGRAD
  };
  static const cpu_kernel_onednn_layout placed[CPU_KERNEL_ONEDNN_LAYOUTS] = {
    CPU_KERNEL_ONEDNN_AS_GIVEN, CPU_KERNEL_ONEDNN_ANY, CPU_KERNEL_ONEDNN_LAST,
    CPU_KERNEL_ONEDNN_ALL_GIVEN, CPU_KERNEL_ONEDNN_WINOGRAD
  };
  cpu_kernel_conv_kind kinds[CPU_KERNEL_CONV_FORMS];
  cpu_kernel_conv_likely_forms(d, kinds);
  int n = 0;
  for (int k = 0; k < CPU_KERNEL_CONV_FORMS; k++) {
    cpu_kernel_conv_form f;
    const cpu_kernel_onednn_layout *by = wide;
    if (cpu_kernel_conv_form_of(d, kinds[k], &f)) {
      if (f.src.stride[1] == 1 && f.dst.stride[1] == 1) {
        by = placed;
      } else if (f.src.size[1] < 16 || f.dst.size[1] < 16) {
        by = narrow;
      }
    }
    for (int l = 0; l < CPU_KERNEL_ONEDNN_LAYOUTS; l++) {
      order[n++] = (int)kinds[k] * CPU_KERNEL_ONEDNN_LAYOUTS + (int)by[l];
    }
  }
}

// oneDNN has Winograd's algorithm for AVX-512, with tiles of 4 x 4 results. It
// mostly takes 0.5 to 0.9 of the time of the others (decision 116). It gains
// nothing where many of the tiles' results are not wanted. All tiles share the
// weights, and with few tiles transforming these takes most of the time.
#define WINOGRAD_TILE 4
#define WINOGRAD_WASTE 1.6
#define WINOGRAD_TILES 32
#define WINOGRAD_CHANNELS 32
// Below, oneDNN's matrix product does not make up for generating its code.
#define GEMM_FLOPS 1e8

static bool is_winograd(const cpu_kernel_conv_form *f)
{
  bool is = f->n == 2 && f->groups == 1 && cpu_kernel_vector_bytes() == 64;
  int64_t tiles = f->dst.size[0];
  double waste = 1;
  for (int i = 0; i < f->n; i++) {
    const int64_t results = f->dst.size[2 + i];
    const int64_t n = (results + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    is = is && f->weights.size[2 + i] == 3 && f->stride[i] == 1 &&
         f->dilation[i] == 1;
    tiles *= n;
    waste *= (double)(n * WINOGRAD_TILE) / (double)results;
  }
  return is && waste <= WINOGRAD_WASTE && tiles >= WINOGRAD_TILES &&
         f->src.size[1] >= WINOGRAD_CHANNELS &&
         f->dst.size[1] >= WINOGRAD_CHANNELS;
}

// Whether it is a matrix product.
static bool is_product(const cpu_kernel_conv_form *f)
{
  bool is = f->groups == 1;
  for (int i = 0; i < f->n; i++) {
    is = is && f->weights.size[2 + i] == 1 && f->stride[i] == 1 &&
         f->low[i] == 0 && f->high[i] == 0;
  }
  return is;
}

// Whether it is strided, with several taps.
static bool is_spread(const cpu_kernel_conv_form *f)
{
  bool strided = false;
  int64_t taps = 1;
  for (int i = 0; i < f->n; i++) {
    strided = strided || f->stride[i] > 1;
    taps *= f->weights.size[f->weights.n - f->n + i];
  }
  return strided && taps > 1;
}

static int list_layouts(
    const cpu_kernel_conv_desc *d, const cpu_kernel_conv_form *f,
    cpu_kernel_onednn_layout out[CPU_KERNEL_CONV_CANDIDATES])
{
  const bool placed = f->src.stride[1] == 1 && f->dst.stride[1] == 1;
  const bool narrow = f->src.size[1] < 16 || f->dst.size[1] < 16;
  int n = 0;
  out[n++] = placed   ? CPU_KERNEL_ONEDNN_AS_GIVEN
             : narrow ? CPU_KERNEL_ONEDNN_LAST
                      : CPU_KERNEL_ONEDNN_ANY;
  if (is_product(f)) {
    const bool plain = !placed || f->kind == CPU_KERNEL_CONV_WEIGHTS;
    if (plain && cpu_kernel_conv_flops(d) >= GEMM_FLOPS)
      out[n++] = CPU_KERNEL_ONEDNN_ALL_GIVEN;
    return n;
  }
  out[n++] = placed || narrow ? CPU_KERNEL_ONEDNN_ANY : CPU_KERNEL_ONEDNN_LAST;
  if (!placed && f->groups > 1) out[n++] = CPU_KERNEL_ONEDNN_AS_GIVEN;
  return n;
}

// Only candidates of the likeliest form: a gradient by the weights is slow in
// another form, other convolutions are slow in its form, and the other two
// forms differ little. With channels last oneDNN's kernels are within some
// percent of each other, except for strided gradients by the weights.
void cpu_kernel_conv_onednn_candidates(const cpu_kernel_conv_desc *d,
                                       cpu_kernel_conv_candidates *out)
{
  *out = (cpu_kernel_conv_candidates){ .sure = CPU_KERNEL_CONV_CHOICE_NONE };
  if (!cpu_kernel_onednn_has_types(d) || cpu_kernel_onednn_get() == NULL)
    return;
  cpu_kernel_conv_kind kinds[CPU_KERNEL_CONV_FORMS];
  cpu_kernel_conv_form f;
  cpu_kernel_conv_likely_forms(d, kinds);
  int k = 0;
  while (k < CPU_KERNEL_CONV_FORMS && !cpu_kernel_conv_form_of(d, kinds[k], &f))
    k++;
  if (k == CPU_KERNEL_CONV_FORMS) return;
  const int64_t first = CPU_KERNEL_CONV_CHOICE_ONEDNN +
                        (int64_t)kinds[k] * CPU_KERNEL_ONEDNN_LAYOUTS;
  cpu_kernel_onednn_layout layouts[CPU_KERNEL_CONV_CANDIDATES];
  out->n = list_layouts(d, &f, layouts);
  for (int i = 0; i < out->n; i++)
    out->choices[i] = first + (int64_t)layouts[i];
  if (is_winograd(&f)) out->sure = first + CPU_KERNEL_ONEDNN_WINOGRAD;
  out->by_weights = kinds[k] == CPU_KERNEL_CONV_WEIGHTS;
  out->enough = f.src.stride[1] == 1 && f.dst.stride[1] == 1 &&
                !(out->by_weights && is_spread(&f));
}

// The parts are equal, so there may be more of them than the longest sum needs:
// at most so many times as many, because each is a call.
#define MOST_TIMES 4

// oneDNN adds all products of one element of a gradient by the weights to one
// float: one for each image, row and column. On AVX-512 it does so only for
// images of few channels. The error grows with the number of products: see
// docs/decisions/106. 0: no sum is too long.
static int64_t longest_sum(const cpu_kernel_conv_form *f)
{
  if (f->kind != CPU_KERNEL_CONV_WEIGHTS) return 0;
  if (cpu_kernel_vector_bytes() <= 32) return 2048;
  return f->src.size[1] < 16 ? 4096 : 0;
}

int64_t cpu_kernel_onednn_parts(const cpu_kernel_conv_form *f)
{
  const int64_t longest = longest_sum(f), images = f->dst.size[0];
  if (longest == 0) return 1;
  int64_t sum = images;
  for (int i = 0; i < f->n; i++) sum *= f->dst.size[2 + i];
  const int64_t least = (sum + longest - 1) / longest;
  if (least <= 1) return 1;
  if (least >= images) return images;
  for (int64_t parts = least; parts <= MOST_TIMES * least; parts++) {
    if (images % parts == 0) return parts;
  }
  return 1;
}
