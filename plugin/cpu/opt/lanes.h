// opt/lanes: what the files of this pass share: images, tensors of rank 4, and
// the same in the order of lanes, (blocks of 16 images, rows, columns,
// channels, 16).
#ifndef CPU_OPT_LANES_H
#define CPU_OPT_LANES_H

#include "kernel/kernel.h"
#include "opt/edit.h"

#define CPU_OPT_IMAGE_RANK 4

// A value in the order of lanes, made in this block.
typedef struct cpu_opt_lane_copy {
  cx_hlo_value *made;  // NULL: none
  const cx_hlo_block *block;
} cpu_opt_lane_copy;

typedef struct cpu_opt_images {
  int64_t images;                         // how many: the size of dimension 0
  int64_t order[CPU_OPT_IMAGE_RANK - 1];  // dimensions: rows, columns, channels
  cpu_opt_lane_copy *copies;              // by number of the value
  uint32_t n;
} cpu_opt_images;

bool cpu_opt_is_images(const cpu_opt_images *s, const cx_hlo_value *v);

// Where dimension d of images is in the order of lanes; not of dimension 0,
// which becomes two.
int64_t cpu_opt_lane_position(const cpu_opt_images *s, int64_t d);

// The sizes of images of this type in the order of lanes.
void cpu_opt_lane_dims(const cpu_opt_images *s, const cx_hlo_type *t,
                       int64_t *out);

// v in the order of lanes, before the visited operation.
cx_hlo_value *cpu_opt_in_lanes(cpu_opt_walk *w, cpu_opt_images *s,
                               const cx_hlo_op *op, cx_hlo_value *v);

// The opposite. `kept`, ascending: the n dimensions of images that x has
// between blocks and lanes.
cx_hlo_value *cpu_opt_from_lanes(cpu_opt_walk *w, const cpu_opt_images *s,
                                 cx_hlo_value *x, const int64_t *kept, size_t n,
                                 const cx_hlo_type *to);

// The value of which cpu_opt_from_lanes() made v; NULL: v is none of these.
cx_hlo_value *cpu_opt_lane_source(const cpu_opt_images *s,
                                  const cx_hlo_value *v);

#endif
