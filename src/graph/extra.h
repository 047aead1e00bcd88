// graph/extra: what few nodes and leaves have besides: hooks on gradients, and
// the context of a custom function.
#ifndef CX_GRAPH_EXTRA_H
#define CX_GRAPH_EXTRA_H

#include "base/hook.h"
#include "graph/node.h"

enum {                     // kinds of hooks
  CX_GRAPH_HOOK_GRAD = 1,  // on a gradient: calx_gradient_hook_fn
  CX_GRAPH_HOOK_RETAIN,    // keeps a gradient that the hooks before it made
};

struct cx_graph_extra {
  cx_hook_list hooks;
  void *context;
  void (*context_free)(void *context);  // once, when the node dies
};

// Makes *extra where there is none. NULL: no memory.
cx_graph_extra *cx_graph_extra_of(cx_graph_extra **extra);
void cx_graph_extra_free(cx_graph_extra *extra);  // NULL is accepted

#endif
