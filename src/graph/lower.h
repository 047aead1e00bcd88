// graph/lower: from an order to a StableHLO module, each op by its own emit.
#ifndef CX_GRAPH_LOWER_H
#define CX_GRAPH_LOWER_H

#include "graph/order.h"
#include "hlo/build.h"

// What an op's emit sees: the builder, its node, its operands' values.
struct cx_graph_emit {
  cx_hlo_builder *b;
  const cx_graph_node *node;
  const void *attrs;
  cx_hlo_value **in;   // n_in
  cx_hlo_value **out;  // n_out, to be filled
  // The node's slots as rank-0 values of their dtype; NULL for a promotable
  // constant that is a constant in this program: then
  // node->slots[k].value.integer holds.
  cx_hlo_value **slots;
  bool sharded;  // the program says how values are split among devices
};

static inline cx_hlo_type cx_hlo_type_of(const cx_graph_shape *s)
{
  return (cx_hlo_type){ cx_hlo_elem_of(s->dtype), s->rank, s->dims };
}

typedef struct cx_graph_lowering {
  const cx_graph_order *order;
  const char *name;  // of the module
  bool promote;      // promotable constants are slots in this program
  bool constants;    // slots are constants; the program has no argument of them
  bool donate;       // write the aliases
  int replicas;      // of a program with collectives; 0: none
  int partitions;    // of a program on all devices of a mesh; 0: none
  // [n_roots], of several partitions: gets how each result is split.
  const cx_spmd_placement **placements;
} cx_graph_lowering;

// Writes the mesh and the placements of parameters and results into the module
// of a request for several partitions, and decides those of the results. What
// is split otherwise than the result that is to take its memory gives up that.
calx_status *cx_graph_shard(const cx_graph_lowering *l,
                            cx_hlo_module *m) CALX_MUST_USE;

calx_status *cx_graph_lower(const cx_graph_lowering *l,
                            cx_hlo_module **out_module) CALX_MUST_USE;

#endif
