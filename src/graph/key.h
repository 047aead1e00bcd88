// graph/key: what the readers of a key need to know of its grammar (key.c).
#ifndef CX_GRAPH_KEY_H
#define CX_GRAPH_KEY_H

#include "graph/order.h"

#define CX_GRAPH_KEY_PARAM (UINT32_C(1) << 31)

#endif
