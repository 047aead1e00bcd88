// opt/lanes: images of few channels lie in the order of lanes between
// convolutions.
//
// A convolution of few channels runs 16 images at a time (kernel/lanes.h), and
// copies tensors of images to (height, width, channels, 16) and back. If all
// convolutions of a function do, then tensors of images that the function makes
// become (blocks of 16 images, height, width, channels, 16), the convolutions
// get the blocks as a third spatial dimension, and nothing is copied. Vectors
// of elementwise operations and poolings then are full, whatever the number of
// channels.
//
// The walk computes a value in this order if an operand has it, and makes the
// value itself of that. Dead values are removed later.
#include <string.h>

#include "base/alloc.h"
#include "hlo/infer.h"
#include "kernel/internal.h"
#include "opt/passes.h"
#include "opt/shapes.h"

#define LANES CPU_KERNEL_LANES
#define RANK 4  // of images
// Of one convolution both operands and the result would be copied.
#define LEAST_CONVOLUTIONS 2

typedef struct lane_copy {
  cx_hlo_value *made;  // NULL: none
  const cx_hlo_block *block;
} lane_copy;

typedef struct lanes {
  int64_t images;           // dimension 0
  int64_t order[RANK - 1];  // the dimensions of rows, columns and channels
  lane_copy *copies;        // by number: of a value, in the order of lanes
  uint32_t n;
} lanes;

// ---- values -----------------------------------------------------------------

static bool is_images(const lanes *s, const cx_hlo_value *v)
{
  return v->type.non_tensor == NULL && v->type.tensor.rank == RANK &&
         v->type.tensor.dims[0] == s->images;
}

// Where dimension d of images is in the order of lanes; not of dimension 0,
// which becomes two.
static int64_t position_of(const lanes *s, int64_t d)
{
  int64_t i = 0;
  while (s->order[i] != d) i++;
  return i + 1;
}

// The sizes of images of this type in the order of lanes.
static void lane_dims(const lanes *s, const cx_hlo_type *t, int64_t *out)
{
  out[0] = s->images / LANES;
  for (int i = 0; i < RANK - 1; i++) out[1 + i] = t->dims[s->order[i]];
  out[RANK] = LANES;
}

// `kept`, ascending: the dimensions of images that x has between blocks and
// lanes. Gives it the order of images.
static cx_hlo_value *from_lanes(cpu_opt_walk *w, const lanes *s,
                                cx_hlo_value *x, const int64_t *kept, size_t n,
                                const cx_hlo_type *to)
{
  int64_t order[RANK + 1] = { 0, (int64_t)n + 1 };
  for (size_t i = 0; i < n; i++) {
    order[2 + i] = 1;
    for (size_t k = 0; k < n; k++) {
      if (position_of(s, kept[k]) < position_of(s, kept[i])) order[2 + i]++;
    }
  }
  x = cx_hlo_transpose(&w->b, x, order);
  return cx_hlo_reshape(&w->b, x, to->dims, to->rank);
}

static const int64_t all_kept[RANK - 1] = { 1, 2, 3 };

// The value in the order of lanes that v was made of by from_lanes(); NULL:
// none.
static cx_hlo_value *source_of(const lanes *s, const cx_hlo_value *v)
{
  if (!is_images(s, v)) return NULL;
  const cx_hlo_op *reshape = cpu_opt_made_by(v, CX_HLO_OP_RESHAPE);
  if (reshape == NULL) return NULL;
  const cx_hlo_op *turned =
      cpu_opt_made_by(reshape->operands[0], CX_HLO_OP_TRANSPOSE);
  if (turned == NULL) return NULL;
  cx_hlo_value *x = turned->operands[0];
  int64_t dims[RANK + 1];
  lane_dims(s, &v->type.tensor, dims);
  const cx_hlo_type want = { v->type.tensor.elem, RANK + 1, dims };
  if (!cpu_opt_same_dims(&x->type.tensor, &want)) return NULL;
  const cx_hlo_ints p = cx_hlo_op_ints(turned, CX_HLO_A_PERMUTATION);
  if (p.v[0] != 0 || p.v[1] != RANK) return NULL;
  for (int64_t d = 1; d < RANK; d++) {
    if (p.v[1 + d] != position_of(s, d)) return NULL;
  }
  return x;
}

static cx_hlo_value *copied(cpu_opt_walk *w, const lanes *s, cx_hlo_value *x)
{
  const cx_hlo_type *t = &x->type.tensor;
  int64_t dims[RANK + 1] = { s->images / LANES, LANES };
  int64_t order[RANK + 1] = { [RANK] = 1 };
  memcpy(dims + 2, t->dims + 1, (RANK - 1) * sizeof *dims);
  for (int i = 0; i < RANK - 1; i++) order[1 + i] = s->order[i] + 1;
  x = cx_hlo_reshape(&w->b, x, dims, RANK + 1);
  return cx_hlo_transpose(&w->b, x, order);
}

// A value that does not differ from image to image, broadcast in the order of
// lanes; NULL: it does, or its dimensions would change positions.
static cx_hlo_value *broadcast(cpu_opt_walk *w, const lanes *s,
                               const cx_hlo_op *op, const cx_hlo_type *to)
{
  const cx_hlo_type *from = &op->operands[0]->type.tensor;
  const cx_hlo_ints at = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
  int64_t dims[RANK], positions[RANK];
  size_t n = 0;
  for (size_t i = 0; i < at.n; i++) {
    if (from->dims[i] == 1) continue;
    if (at.v[i] == 0) return NULL;
    dims[n] = from->dims[i];
    positions[n] = position_of(s, at.v[i]);
    if (n > 0 && positions[n] < positions[n - 1]) return NULL;
    n++;
  }
  cx_hlo_value *x = cx_hlo_reshape(&w->b, op->operands[0], dims, n);
  return cpu_opt_broadcast(&w->b, x, to, positions);
}

// v in the order of lanes, before the visited operation.
static cx_hlo_value *in_lanes(cpu_opt_walk *w, lanes *s, const cx_hlo_op *op,
                              cx_hlo_value *v)
{
  int64_t dims[RANK + 1];
  cx_hlo_value *x = source_of(s, v);
  if (x != NULL) return x;
  lane_dims(s, &v->type.tensor, dims);
  const cx_hlo_type t = { v->type.tensor.elem, RANK + 1, dims };
  const unsigned char *element = cpu_opt_splat(v);
  if (element != NULL) return cpu_opt_splat_like(&w->b, &t, element);
  const cx_hlo_op *made = cpu_opt_made_by(v, CX_HLO_OP_BROADCAST_IN_DIM);
  if (made != NULL) x = broadcast(w, s, made, &t);
  if (x != NULL) return x;
  lane_copy *c = v->number < s->n ? &s->copies[v->number] : NULL;
  if (c != NULL && c->made != NULL && c->block == op->block) return c->made;
  x = copied(w, s, v);
  if (c != NULL) *c = (lane_copy){ x, op->block };
  return x;
}

static void replace_by_lanes(cpu_opt_walk *w, const lanes *s, cx_hlo_op *op,
                             cx_hlo_value *x)
{
  cpu_opt_replace(
      w, op,
      from_lanes(w, s, x, all_kept, RANK - 1, &op->results[0].type.tensor));
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

static bool is_in_order(const lanes *s, const roles *r)
{
  return r->images == 0 && r->channels == s->order[2] &&
         r->spatial.v[0] == s->order[0] && r->spatial.v[1] == s->order[1];
}

// Whether the convolution runs 16 images at a time, and its tensors are as
// those of the ones before.
static bool note_convolution(lanes *s, const cx_hlo_op *op)
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

static void gradient(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
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
  cx_hlo_value *x = in_lanes(w, s, op, op->operands[0]);
  cx_hlo_value *by = in_lanes(w, s, op, op->operands[1]);
  x = cx_hlo_convolution(&w->b, x, by, &dims);
  cpu_opt_replace(w, op, cx_hlo_reshape(&w->b, x, to->dims, to->rank));
}

static void forward(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
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
  cx_hlo_value *x = in_lanes(w, s, op, op->operands[0]);
  cx_hlo_value *by = cx_hlo_reshape(&w->b, op->operands[1], sizes, RANK + 1);
  replace_by_lanes(w, s, op, cx_hlo_convolution(&w->b, x, by, &dims));
}

// ---- other operations -------------------------------------------------------

static bool has_lanes(const lanes *s, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (source_of(s, op->operands[i]) != NULL) return true;
  }
  return false;
}

// The operands, those that are images in the order of lanes; NULL: the builder
// has failed.
static cx_hlo_value **lane_operands(cpu_opt_walk *w, lanes *s,
                                    const cx_hlo_op *op)
{
  cx_hlo_value **operands = cpu_opt_values(w, op->n_operands);
  for (uint32_t i = 0; i < op->n_operands && operands != NULL; i++) {
    cx_hlo_value *v = op->operands[i];
    operands[i] = is_images(s, v) ? in_lanes(w, s, op, v) : v;
  }
  return operands;
}

// Elementwise, or a concatenation along other dimensions.
static void same_operation(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
{
  cx_hlo_value **operands = lane_operands(w, s, op);
  if (operands == NULL) return;
  int64_t dims[RANK + 1];
  lane_dims(s, &op->results[0].type.tensor, dims);
  const cx_hlo_type t = { op->results[0].type.tensor.elem, RANK + 1, dims };
  cx_hlo_op *r = cpu_opt_begin_like(&w->b, op, operands);
  if (op->kind == CX_HLO_OP_CONCATENATE) {
    const int64_t at = position_of(s, cx_hlo_op_int(op, CX_HLO_A_DIMENSION));
    cx_hlo_build_int(&w->b, r, CX_HLO_A_DIMENSION, at);
  }
  cx_hlo_build_declare(&w->b, r, 0, &t);
  replace_by_lanes(w, s, op, cx_hlo_build_end(&w->b, r));
}

// A list with a number for each dimension; out[0] and out[RANK] are set.
static void lane_list(const lanes *s, cx_hlo_ints list, int64_t *out)
{
  for (int i = 0; i < RANK - 1; i++) out[1 + i] = list.v[s->order[i]];
}

static void slice(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
{
  int64_t start[RANK + 1] = { 0 }, stride[RANK + 1] = { 1, [RANK] = 1 };
  int64_t limit[RANK + 1] = { s->images / LANES, [RANK] = LANES };
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_START_INDICES), start);
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_LIMIT_INDICES), limit);
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_STRIDES), stride);
  cx_hlo_value *x = source_of(s, op->operands[0]);
  replace_by_lanes(w, s, op, cx_hlo_slice(&w->b, x, start, limit, stride));
}

static void pad(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
{
  const cx_hlo_ints low_of = cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_LOW);
  int64_t low[RANK + 1] = { 0 }, high[RANK + 1] = { 0 };
  int64_t interior[RANK + 1] = { 0 };
  const cx_hlo_ints inside = cx_hlo_op_ints(op, CX_HLO_A_INTERIOR_PADDING);
  if (low_of.v[0] != 0 || inside.v[0] != 0) return;
  lane_list(s, low_of, low);
  lane_list(s, cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_HIGH), high);
  lane_list(s, inside, interior);
  cx_hlo_value *x = source_of(s, op->operands[0]);
  replace_by_lanes(w, s, op,
                   cx_hlo_pad(&w->b, x, op->operands[1], low, high, interior));
}

// An attribute of a window: a number for each dimension.
static void set_window(cpu_opt_walk *w, const lanes *s, const cx_hlo_op *op,
                       cx_hlo_attr_id id, cx_hlo_op *to)
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
static void windows(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
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
static void reduction(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
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
      list[n++] = position_of(s, d);
    } else {
      // The order of what is left is that of the result.
      if (over_images && position_of(s, d) < last) return;
      last = position_of(s, d);
      kept[n_kept++] = d;
    }
  }
  cx_hlo_value *x = source_of(s, op->operands[0]);
  x = cx_hlo_reduce_with(&w->b, combiner->kind, x, op->operands[1], list, n);
  if (over_images) {
    const int64_t rest = (int64_t)n_kept;
    x = cx_hlo_reduce_with(&w->b, combiner->kind, x, op->operands[1], &rest, 1);
  } else {
    x = from_lanes(w, s, x, kept, n_kept, &op->results[0].type.tensor);
  }
  cpu_opt_replace(w, op, x);
}

// ---- the pass ---------------------------------------------------------------

// An operation on images, which has a value in the order of lanes.
static void move(cpu_opt_walk *w, lanes *s, cx_hlo_op *op)
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
  lanes *s = w->user;
  if (op->kind == CX_HLO_OP_CONVOLUTION) {
    (is_gradient(cx_hlo_op_conv(op)) ? gradient : forward)(w, s, op);
  } else if (op->n_results == 1 && has_lanes(s, op)) {
    if (op->kind == CX_HLO_OP_REDUCE) {
      reduction(w, s, op);
    } else if (is_images(s, &op->results[0])) {
      move(w, s, op);
    }
  }
  return NULL;
}

// Whether all convolutions run 16 images at a time, and there are some.
static bool suits(lanes *s, const cx_hlo_func *f)
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
  lanes s = { .n = m->n_values };
  cx_hlo_func *f = cx_hlo_entry(m);
  if (!suits(&s, f)) return NULL;
  s.copies = cx_calloc(s.n, sizeof *s.copies);
  if (s.copies == NULL) return cx_out_of_memory();
  calx_status *status = cpu_opt_walk_func(m, f, visit, &s, changed);
  cx_free(s.copies);
  return status;
}
