// graph/differ: why two graphs are not the same program.
#ifndef CX_GRAPH_DIFFER_H
#define CX_GRAPH_DIFFER_H

#include "graph/order.h"

// What is kept of a compiled graph for later comparison: its key, and per node
// the op and call site. Owned by the caller.
typedef struct cx_graph_outline cx_graph_outline;
// NULL without memory.
cx_graph_outline *cx_graph_outline_new(const cx_graph_order *order);
void cx_graph_outline_free(cx_graph_outline *outline);
const cx_graph_key *cx_graph_outline_key(const cx_graph_outline *outline);

// How near two graphs are: the leading nodes that agree, and how many more
// nodes one of them has.
size_t cx_graph_outline_common(const cx_graph_outline *known,
                               const cx_graph_order *order);
size_t cx_graph_outline_excess(const cx_graph_outline *known,
                               const cx_graph_order *order);
// Where one graph is compared with an earlier one (theirs and ours are NULL):
// "the batch's data of mnist.c:20 was f32[128,1,28,28], is f32[96,1,28,28],
// first used by conv2d at model.c:12" where a tensor that the graph begins with
// is the reason, else "mul at mnist.c:31: operand 0 was f32[], is f32[1]".
// Of two graphs that exist at once, here of "rank 0" and of "rank 1":
// "mul at mnist.c:31: operand 0 is f32[128,10] on rank 0, f32[64,10] on rank
// 1".
void cx_graph_outline_differ(const cx_graph_outline *known, const char *theirs,
                             const cx_graph_order *order, const char *ours,
                             cx_text *out);

#endif
