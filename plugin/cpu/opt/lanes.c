// opt/lanes: images of few channels lie in the order of lanes between
// convolutions.
//
// A convolution of few channels runs 16 images at a time (kernel/lanes.h), and
// copies tensors of images to (height, width, channels, 16) and back. If all
// convolutions of a function do, then tensors of images that the function makes
// become (blocks of 16 images, height, width, channels, 16), the convolutions
// get the blocks as a third spatial dimension, and nothing is copied but what
// is padded. Vectors of elementwise operations and poolings then are full,
// whatever the number of channels.
//
// The walk computes a value in this order if an operand has it, and makes the
// value itself of that. Dead values are removed later.
#include "opt/lanes.h"

#include <string.h>

#include "base/alloc.h"
#include "hlo/infer.h"
#include "kernel/internal.h"
#include "opt/passes.h"

#define LANES CPU_KERNEL_LANES
#define RANK CPU_OPT_IMAGE_RANK
// With a single convolution its images and results would be copied all the
// same.
#define LEAST_CONVOLUTIONS 2

static const int64_t all_kept[RANK - 1] = { 1, 2, 3 };

static void replace_by_lanes(cpu_opt_walk *w, const cpu_opt_images *s,
                             cx_hlo_op *op, cx_hlo_value *x)
{
  cpu_opt_replace(w, op,
                  cpu_opt_from_lanes(w, s, x, all_kept, RANK - 1,
                                     &op->results[0].type.tensor));
}

// ---- convolutions -----------------------------------------------------------

// Dimensions of a tensor; images: (0, spatial, channels).
typedef struct roles {
  int64_t images, channels;
  cx_hlo_ints spatial;
} roles;

static bool is_gradient(const cx_hlo_conv_numbers *c)
{
  return c->input_feature == 0;
}

// The two tensors of images that a convolution has: its left operand, and its
// result or, of a gradient by the weights, its right operand.
static void roles_of(const cx_hlo_conv_numbers *c, roles out[2])
{
  if (is_gradient(c)) {
    out[0] = (roles){ 0, c->input_batch, c->input_spatial };
    out[1] = (roles){ c->kernel_input, c->kernel_output, c->kernel_spatial };
  } else {
    out[0] = (roles){ c->input_batch, c->input_feature, c->input_spatial };
    out[1] = (roles){ c->output_batch, c->output_feature, c->output_spatial };
  }
}

static bool is_in_order(const cpu_opt_images *s, const roles *r)
{
  return r->images == 0 && r->channels == s->order[2] &&
         r->spatial.v[0] == s->order[0] && r->spatial.v[1] == s->order[1];
}

// Whether the convolution runs 16 images at a time, and its tensors are as
// those of the ones before.
static bool note_convolution(cpu_opt_images *s, const cx_hlo_op *op)
{
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(op);
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  cpu_kernel_desc desc;
  memset(&desc, 0, sizeof desc);
  if (x->rank != RANK || !cpu_kernel_describe(op, &desc) ||
      !cpu_kernel_runs_in_lanes(&desc)) {
    return false;
  }
  roles r[2];
  roles_of(c, r);
  if (s->images == 0) {
    s->images = x->dims[0];
    s->order[0] = r[0].spatial.v[0];
    s->order[1] = r[0].spatial.v[1];
    s->order[2] = r[0].channels;
  }
  return x->dims[0] == s->images && s->images % LANES == 0 &&
         is_in_order(s, &r[0]) && is_in_order(s, &r[1]);
}

// The window of a convolution with one more spatial dimension, of blocks.
typedef struct conv_window {
  int64_t strides[3], padding[6], lhs_dilation[3], rhs_dilation[3];
  bool reversal[3];
  int64_t
      weights[3];  // the spatial dimensions of the tensor that has no images
} conv_window;

static const int64_t spatial_of_images[3] = { 0, 1, 2 };

static void read_window(const cx_hlo_op *op, conv_window *out,
                        cx_hlo_conv_dims *dims)
{
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(op);
  const cx_hlo_ints weights =
      is_gradient(c) ? c->output_spatial : c->kernel_spatial;
  *out = (conv_window){ { 1 }, { 0 }, { 1 }, { 1 }, { false }, { 0 } };
  for (size_t i = 0; i < 2; i++) {
    cpu_kernel_conv_dim d;
    cpu_kernel_conv_read_dim(op, i, &d);
    out->strides[1 + i] = d.stride;
    out->padding[2 + 2 * i] = d.low;
    out->padding[3 + 2 * i] = d.high;
    out->lhs_dilation[1 + i] = d.in_dilation;
    out->rhs_dilation[1 + i] = d.kernel_dilation;
    out->reversal[1 + i] = d.reversed != 0;
    out->weights[1 + i] = weights.v[i] + 1;
  }
  *dims = (cx_hlo_conv_dims){ .n_spatial = 3,
                              .input_spatial = spatial_of_images,
                              .strides = out->strides,
                              .padding = out->padding,
                              .lhs_dilation = out->lhs_dilation,
                              .rhs_dilation = out->rhs_dilation,
                              .reversal = out->reversal };
}

static void gradient(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(op);
  const cx_hlo_type *to = &op->results[0].type.tensor;
  conv_window window;
  cx_hlo_conv_dims dims;
  read_window(op, &window, &dims);
  dims.input_batch = dims.kernel_output = 3;
  dims.input_feature = dims.kernel_input = 4;
  dims.kernel_spatial = spatial_of_images;
  dims.output_batch = c->output_batch + 1;
  dims.output_feature = c->output_feature + 1;
  dims.output_spatial = window.weights;
  cx_hlo_value *x = cpu_opt_in_lanes(w, s, op, op->operands[0]);
  cx_hlo_value *by = cpu_opt_in_lanes(w, s, op, op->operands[1]);
  x = cx_hlo_convolution(&w->b, x, by, &dims);
  cpu_opt_replace(w, op, cx_hlo_reshape(&w->b, x, to->dims, to->rank));
}

static void forward(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  const cx_hlo_conv_numbers *c = cx_hlo_op_conv(op);
  const cx_hlo_type *kernel = &op->operands[1]->type.tensor;
  int64_t sizes[RANK + 1] = { 1 };
  memcpy(sizes + 1, kernel->dims, RANK * sizeof *sizes);
  conv_window window;
  cx_hlo_conv_dims dims;
  read_window(op, &window, &dims);
  dims.input_batch = dims.output_batch = 4;
  dims.input_feature = dims.output_feature = 3;
  dims.kernel_input = c->kernel_input + 1;
  dims.kernel_output = c->kernel_output + 1;
  dims.kernel_spatial = window.weights;
  dims.output_spatial = spatial_of_images;
  cx_hlo_value *x = cpu_opt_in_lanes(w, s, op, op->operands[0]);
  cx_hlo_value *by = cx_hlo_reshape(&w->b, op->operands[1], sizes, RANK + 1);
  replace_by_lanes(w, s, op, cx_hlo_convolution(&w->b, x, by, &dims));
}

// ---- other operations -------------------------------------------------------

static bool has_lanes(const cpu_opt_images *s, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (cpu_opt_lane_source(s, op->operands[i]) != NULL) return true;
  }
  return false;
}

// The operands, those that are images in the order of lanes; NULL: the builder
// has failed.
static cx_hlo_value **lane_operands(cpu_opt_walk *w, cpu_opt_images *s,
                                    const cx_hlo_op *op)
{
  cx_hlo_value **operands = cpu_opt_values(w, op->n_operands);
  for (uint32_t i = 0; i < op->n_operands && operands != NULL; i++) {
    cx_hlo_value *v = op->operands[i];
    operands[i] = cpu_opt_is_images(s, v) ? cpu_opt_in_lanes(w, s, op, v) : v;
  }
  return operands;
}

// Elementwise, or a concatenation along other dimensions.
static void same_operation(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  cx_hlo_value **operands = lane_operands(w, s, op);
  if (operands == NULL) return;
  int64_t dims[RANK + 1];
  cpu_opt_lane_dims(s, &op->results[0].type.tensor, dims);
  const cx_hlo_type t = { op->results[0].type.tensor.elem, RANK + 1, dims };
  cx_hlo_op *r = cpu_opt_begin_like(&w->b, op, operands);
  if (op->kind == CX_HLO_OP_CONCATENATE) {
    const int64_t at =
        cpu_opt_lane_position(s, cx_hlo_op_int(op, CX_HLO_A_DIMENSION));
    cx_hlo_build_int(&w->b, r, CX_HLO_A_DIMENSION, at);
  }
  cx_hlo_build_declare(&w->b, r, 0, &t);
  replace_by_lanes(w, s, op, cx_hlo_build_end(&w->b, r));
}

// A list with a number for each dimension; out[0] and out[RANK] are set.
static void lane_list(const cpu_opt_images *s, cx_hlo_ints list, int64_t *out)
{
  for (int i = 0; i < RANK - 1; i++) out[1 + i] = list.v[s->order[i]];
}

static void slice(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  int64_t start[RANK + 1] = { 0 }, stride[RANK + 1] = { 1, [RANK] = 1 };
  int64_t limit[RANK + 1] = { s->images / LANES, [RANK] = LANES };
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_START_INDICES), start);
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_LIMIT_INDICES), limit);
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_STRIDES), stride);
  cx_hlo_value *x = cpu_opt_lane_source(s, op->operands[0]);
  replace_by_lanes(w, s, op, cx_hlo_slice(&w->b, x, start, limit, stride));
}

static void pad(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  const cx_hlo_ints low_of = cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_LOW);
  int64_t low[RANK + 1] = { 0 }, high[RANK + 1] = { 0 };
  int64_t interior[RANK + 1] = { 0 };
  const cx_hlo_ints inside = cx_hlo_op_ints(op, CX_HLO_A_INTERIOR_PADDING);
  if (low_of.v[0] != 0 || inside.v[0] != 0) return;
  lane_list(s, low_of, low);
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_HIGH), high);
  lane_list(s, inside, interior);
  cx_hlo_value *x = cpu_opt_lane_source(s, op->operands[0]);
  replace_by_lanes(w, s, op,
                   cx_hlo_pad(&w->b, x, op->operands[1], low, high, interior));
}

// An attribute of a window: a number for each dimension.
static void set_window(cpu_opt_walk *w, const cpu_opt_images *s,
                       const cx_hlo_op *op, cx_hlo_attr_id id, cx_hlo_op *to)
{
  int64_t list[RANK + 1];
  for (int i = 0; i < RANK - 1; i++) {
    list[1 + i] = cx_hlo_op_int_at(op, id, (size_t)s->order[i]);
  }
  list[0] = list[RANK] = 1;
  cx_hlo_build_ints(&w->b, to, id, list, RANK + 1);
}

static bool is_plain_along_images(const cx_hlo_op *op)
{
  return cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, 0) == 1 &&
         cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, 0) == 1 &&
         cx_hlo_padding_at(op, 0, 0) == 0 && cx_hlo_padding_at(op, 0, 1) == 0;
}

// A reduce_window or select_and_scatter. Its regions move to the new operation.
static void windows(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  int64_t padding[2 * (RANK + 1)] = { 0 };
  cx_hlo_value **operands = lane_operands(w, s, op);
  if (operands == NULL) return;
  for (int i = 0; i < RANK - 1; i++) {
    for (size_t side = 0; side < 2; side++) {
      padding[2 * (1 + (size_t)i) + side] =
          cx_hlo_padding_at(op, (size_t)s->order[i], side);
    }
  }
  cx_hlo_op *r =
      cx_hlo_build_begin(&w->b, op->kind, operands, op->n_operands, 1, 0);
  if (r == NULL) return;
  set_window(w, s, op, CX_HLO_A_WINDOW_DIMENSIONS, r);
  set_window(w, s, op, CX_HLO_A_WINDOW_STRIDES, r);
  if (op->kind == CX_HLO_OP_REDUCE_WINDOW) {
    set_window(w, s, op, CX_HLO_A_BASE_DILATIONS, r);
    set_window(w, s, op, CX_HLO_A_WINDOW_DILATIONS, r);
  }
  cx_hlo_build_attr(&w->b, r, CX_HLO_A_PADDING,
                    cx_hlo_attr_matrix(w->b.module, padding, RANK + 1, 2));
  r->regions = op->regions;
  r->n_regions = op->n_regions;
  for (uint32_t i = 0; i < r->n_regions; i++) r->regions[i].op = r;
  op->n_regions = 0;
  replace_by_lanes(w, s, op, cx_hlo_build_end(&w->b, r));
}

// A reduction over images becomes one over their blocks, which keeps 16 sums,
// and one over these.
static void reduction(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const cx_hlo_op *combiner = cx_hlo_block_combiner(op->regions[0].first, 0);
  const bool over_images = cx_hlo_ints_have(dims, 0);
  if (combiner == NULL ||
      op->results[0].type.tensor.elem != op->operands[0]->type.tensor.elem ||
      (over_images && !cpu_opt_may_repeat(combiner, op->operands[1]))) {
    return;
  }
  int64_t list[RANK], kept[RANK - 1], last = 0;
  size_t n = 0, n_kept = 0;
  if (over_images) list[n++] = 0;
  for (int64_t d = 1; d < RANK; d++) {
    if (cx_hlo_ints_have(dims, d)) {
      list[n++] = cpu_opt_lane_position(s, d);
    } else {
      // The order of what is left is that of the result.
      if (over_images && cpu_opt_lane_position(s, d) < last) return;
      last = cpu_opt_lane_position(s, d);
      kept[n_kept++] = d;
    }
  }
  cx_hlo_value *x = cpu_opt_lane_source(s, op->operands[0]);
  x = cx_hlo_reduce_with(&w->b, combiner->kind, x, op->operands[1], list, n);
  if (over_images) {
    const int64_t rest = (int64_t)n_kept;
    x = cx_hlo_reduce_with(&w->b, combiner->kind, x, op->operands[1], &rest, 1);
  } else {
    x = cpu_opt_from_lanes(w, s, x, kept, n_kept, &op->results[0].type.tensor);
  }
  cpu_opt_replace(w, op, x);
}

// ---- the pass ---------------------------------------------------------------

// An operation on images, which has a value in the order of lanes.
static void move(cpu_opt_walk *w, cpu_opt_images *s, cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_SLICE: slice(w, s, op); break;
    case CX_HLO_OP_PAD: pad(w, s, op); break;
    case CX_HLO_OP_CONCATENATE:
      if (cx_hlo_op_int(op, CX_HLO_A_DIMENSION) != 0) same_operation(w, s, op);
      break;
    case CX_HLO_OP_REDUCE_WINDOW:
    case CX_HLO_OP_SELECT_AND_SCATTER:
      if (is_plain_along_images(op)) windows(w, s, op);
      break;
    default:
      if (cpu_opt_is_elementwise(op)) same_operation(w, s, op);
  }
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  cpu_opt_images *s = w->user;
  if (op->kind == CX_HLO_OP_CONVOLUTION) {
    (is_gradient(cx_hlo_op_conv(op)) ? gradient : forward)(w, s, op);
  } else if (op->n_results == 1 && has_lanes(s, op)) {
    if (op->kind == CX_HLO_OP_REDUCE) {
      reduction(w, s, op);
    } else if (cpu_opt_is_images(s, &op->results[0])) {
      move(w, s, op);
    }
  }
  return NULL;
}

// Whether all convolutions run 16 images at a time, and there are some.
static bool suits(cpu_opt_images *s, const cx_hlo_func *f)
{
  size_t n = 0;
  for (cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
       op = cpu_opt_next(op)) {
    if (op->kind != CX_HLO_OP_CONVOLUTION) continue;
    if (!note_convolution(s, op)) return false;
    n++;
  }
  return n >= LEAST_CONVOLUTIONS;
}

calx_status *cpu_opt_lanes(cx_hlo_module *m, bool *changed)
{
  cpu_opt_images s = { .n = m->n_values };
  cx_hlo_func *f = cx_hlo_entry(m);
  if (!suits(&s, f)) return NULL;
  s.copies = cx_calloc(s.n, sizeof *s.copies);
  if (s.copies == NULL) return cx_out_of_memory();
  calx_status *status = cpu_opt_walk_func(m, f, visit, &s, changed);
  cx_free(s.copies);
  return status;
}
