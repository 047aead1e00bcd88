// opt/decompose: convolutions whose images are padded by a whole window or more
// become convolutions of images that are padded before, because oneDNN takes
// less than a window.
#include "kernel/internal.h"
#include "opt/decompose.h"

static int64_t beyond(int64_t padding, int64_t most)
{
  return padding > most ? padding - most : 0;
}

// Splits the padding of spatial dimension i: padding[2] is what stays, the rest
// is added to low and high of the image's dimension. Padding at the end that no
// window reaches stays. False: all stays.
static bool split_padding(const cx_hlo_op *op, size_t i, int64_t *padding,
                          int64_t *low, int64_t *high)
{
  cpu_kernel_conv_dim d;
  cpu_kernel_conv_read_dim(op, i, &d);
  padding[0] = d.low;
  padding[1] = d.high;
  if (d.in_dilation != 1) return false;
  const int64_t window = (d.kernel - 1) * d.kernel_dilation + 1;
  const int64_t most = window < 2 ? 1 : window - 1;
  const int64_t reached = (d.out - 1) * d.stride + window - d.in - d.low;
  const int64_t before = beyond(d.low, most);
  const int64_t behind = beyond(reached < d.high ? reached : d.high, most);
  padding[0] -= before;
  padding[1] -= behind;
  low[d.at[0]] = before;
  high[d.at[0]] = behind;
  return before + behind > 0;
}

cx_hlo_value *cpu_opt_convolution(cpu_opt_walk *w, const cx_hlo_op *op,
                                  cx_hlo_value *const *operands,
                                  const int64_t *padding)
{
  static const cx_hlo_attr_id kept[] = {
    CX_HLO_A_WINDOW_STRIDES,         CX_HLO_A_LHS_DILATION,
    CX_HLO_A_RHS_DILATION,           CX_HLO_A_WINDOW_REVERSAL,
    CX_HLO_A_CONV_DIMENSION_NUMBERS, CX_HLO_A_FEATURE_GROUP_COUNT,
    CX_HLO_A_BATCH_GROUP_COUNT,      CX_HLO_A_PRECISION_CONFIG
  };
  cx_hlo_builder *b = &w->b;
  cx_hlo_op *r =
      cx_hlo_build_begin(b, CX_HLO_OP_CONVOLUTION, operands, 2, 1, 0);
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    cpu_opt_keep_attr(b, r, op, kept[i]);
  }
  cx_hlo_build_attr(b, r, CX_HLO_A_PADDING,
                    cx_hlo_attr_matrix(b->module, padding,
                                       cx_hlo_op_conv(op)->input_spatial.n, 2));
  cx_hlo_build_declare(b, r, 0, &op->results[0].type.tensor);
  return cx_hlo_build_end(b, r);
}

// Padded images have at most so many times the elements of images and results.
// They could have many more, because long strides skip most of the padding.
#define MOST_GROWTH 4

static bool is_moderate(const cx_hlo_op *op, const int64_t *low,
                        const int64_t *high)
{
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  int64_t n = 1;
  for (size_t d = 0; d < x->rank; d++) {
    int64_t size = x->dims[d];
    if (__builtin_add_overflow(size, low[d], &size) ||
        __builtin_add_overflow(size, high[d], &size) ||
        __builtin_mul_overflow(n, size, &n)) {
      return false;
    }
  }
  return n / MOST_GROWTH <=
         cx_hlo_type_elements(x) +
             cx_hlo_type_elements(&op->results[0].type.tensor);
}

void cpu_opt_wide_padding(cpu_opt_walk *w, cx_hlo_op *op)
{
  static const unsigned char zero[16];
  const size_t n = cx_hlo_op_conv(op)->input_spatial.n;
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *y = &op->results[0].type.tensor;
  const cx_hlo_type scalar = { .elem = x->elem };
  if (cx_hlo_type_elements(x) == 0 || cx_hlo_type_elements(y) == 0) return;
  int64_t *lists = cpu_opt_list(w, 3 * x->rank + 2 * n);
  if (lists == NULL) return;
  int64_t *low = lists, *high = low + x->rank, *inner = high + x->rank,
          *padding = inner + x->rank;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    any = split_padding(op, i, padding + 2 * i, low, high) || any;
  }
  if (!any || !is_moderate(op, low, high)) return;
  cx_hlo_value *zeros = cpu_opt_splat_like(&w->b, &scalar, zero);
  cx_hlo_value *operands[] = {
    cx_hlo_pad(&w->b, op->operands[0], zeros, low, high, inner), op->operands[1]
  };
  cpu_opt_replace(w, op, cpu_opt_convolution(w, op, operands, padding));
}
