// graph/extra: its life.
#include "graph/extra.h"

#include "base/alloc.h"

cx_graph_extra *cx_graph_extra_of(cx_graph_extra **extra)
{
  if (*extra == NULL) *extra = cx_calloc(1, sizeof **extra);
  return *extra;
}

void cx_graph_extra_free(cx_graph_extra *extra)
{
  if (extra == NULL) return;
  cx_hook_list_free(&extra->hooks);
  if (extra->context_free != NULL) extra->context_free(extra->context);
  cx_free(extra);
}
