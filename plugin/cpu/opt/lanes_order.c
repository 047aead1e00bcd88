// opt/lanes_order: values in the order of lanes, and values that are made of
// them.
#include "opt/lanes.h"

#include <string.h>

#define LANES CPU_KERNEL_LANES
#define RANK CPU_OPT_IMAGE_RANK

bool cpu_opt_is_images(const cpu_opt_images *s, const cx_hlo_value *v)
{
  return v->type.non_tensor == NULL && v->type.tensor.rank == RANK &&
         v->type.tensor.dims[0] == s->images;
}

int64_t cpu_opt_lane_position(const cpu_opt_images *s, int64_t d)
{
  int64_t i = 0;
  while (s->order[i] != d) i++;
  return i + 1;
}

void cpu_opt_lane_dims(const cpu_opt_images *s, const cx_hlo_type *t,
                       int64_t *out)
{
  out[0] = s->images / LANES;
  for (int i = 0; i < RANK - 1; i++) out[1 + i] = t->dims[s->order[i]];
  out[RANK] = LANES;
}

cx_hlo_value *cpu_opt_from_lanes(cpu_opt_walk *w, const cpu_opt_images *s,
                                 cx_hlo_value *x, const int64_t *kept, size_t n,
                                 const cx_hlo_type *to)
{
  int64_t order[RANK + 1] = { 0, (int64_t)n + 1 };
  for (size_t i = 0; i < n; i++) {
    order[2 + i] = 1;
    for (size_t k = 0; k < n; k++) {
      if (cpu_opt_lane_position(s, kept[k]) < cpu_opt_lane_position(s, kept[i]))
        order[2 + i]++;
    }
  }
  x = cx_hlo_transpose(&w->b, x, order);
  return cx_hlo_reshape(&w->b, x, to->dims, to->rank);
}

cx_hlo_value *cpu_opt_lane_source(const cpu_opt_images *s,
                                  const cx_hlo_value *v)
{
  if (!cpu_opt_is_images(s, v)) return NULL;
  const cx_hlo_op *reshape = cpu_opt_made_by(v, CX_HLO_OP_RESHAPE);
  if (reshape == NULL) return NULL;
  const cx_hlo_op *turned =
      cpu_opt_made_by(reshape->operands[0], CX_HLO_OP_TRANSPOSE);
  if (turned == NULL) return NULL;
  cx_hlo_value *x = turned->operands[0];
  int64_t dims[RANK + 1];
  cpu_opt_lane_dims(s, &v->type.tensor, dims);
  const cx_hlo_type want = { v->type.tensor.elem, RANK + 1, dims };
  if (!cpu_opt_same_dims(&x->type.tensor, &want)) return NULL;
  const cx_hlo_ints p = cx_hlo_op_ints(turned, CX_HLO_A_PERMUTATION);
  if (p.v[0] != 0 || p.v[1] != RANK) return NULL;
  for (int64_t d = 1; d < RANK; d++) {
    if (p.v[1 + d] != cpu_opt_lane_position(s, d)) return NULL;
  }
  return x;
}

static cx_hlo_value *copied(cpu_opt_walk *w, const cpu_opt_images *s,
                            cx_hlo_value *x)
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
static cx_hlo_value *broadcast(cpu_opt_walk *w, const cpu_opt_images *s,
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
    positions[n] = cpu_opt_lane_position(s, at.v[i]);
    if (n > 0 && positions[n] < positions[n - 1]) return NULL;
    n++;
  }
  cx_hlo_value *x = cx_hlo_reshape(&w->b, op->operands[0], dims, n);
  return cpu_opt_broadcast(&w->b, x, to, positions);
}

cx_hlo_value *cpu_opt_in_lanes(cpu_opt_walk *w, cpu_opt_images *s,
                               const cx_hlo_op *op, cx_hlo_value *v)
{
  int64_t dims[RANK + 1];
  cx_hlo_value *x = cpu_opt_lane_source(s, v);
  if (x != NULL) return x;
  cpu_opt_lane_dims(s, &v->type.tensor, dims);
  const cx_hlo_type t = { v->type.tensor.elem, RANK + 1, dims };
  const unsigned char *element = cpu_opt_splat(v);
  if (element != NULL) return cpu_opt_splat_like(&w->b, &t, element);
  const cx_hlo_op *made = cpu_opt_made_by(v, CX_HLO_OP_BROADCAST_IN_DIM);
  if (made != NULL) x = broadcast(w, s, made, &t);
  if (x != NULL) return x;
  cpu_opt_lane_copy *c = v->number < s->n ? &s->copies[v->number] : NULL;
  if (c != NULL && c->made != NULL && c->block == op->block) return c->made;
  x = copied(w, s, v);
  if (c != NULL) *c = (cpu_opt_lane_copy){ x, op->block };
  return x;
}
