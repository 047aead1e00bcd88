// world: devices as threads that run the collectives of one function each.
//
// A device's program is a function of a module; its collectives run in their
// order, each on the operands that the function's arguments are, and their
// results are kept as numbers.
#ifndef TESTS_ENGINE_COLL_WORLD_H
#define TESTS_ENGINE_COLL_WORLD_H

#include <math.h>

#include "base/thread.h"
#include "coll/coll.h"
#include "hlo/check.h"
#include "world/segment.h"

enum { MOST_DEVICES = 8, MOST_VALUES = 64, MOST_ARGS = 4 };

// The region of a reduction of scalars: BODY("stablehlo.add", "f32").
#define BODY(op, type)                                                 \
  "{\n^bb0(%x: tensor<" type ">, %y: tensor<" type                     \
  ">):\n"                                                              \
  "  %s = \"" op "\"(%x, %y) : (tensor<" type ">, tensor<" type        \
  ">) -> tensor<" type ">\n  \"stablehlo.return\"(%s) : (tensor<" type \
  ">) -> ()\n}"

// The module of one text, verified.
cx_hlo_module *world_parse(const char *text);
// One collective on `n` operands of type `in`, with `n` results of type `out`.
cx_hlo_module *world_one(const char *op, size_t n, const char *attributes,
                         const char *region, const char *in, const char *out);
const cx_hlo_op *world_op(const cx_hlo_module *m);

typedef struct world_device {
  const cx_hlo_module *module;  // NULL: it never starts
  cpu_coll_launch launch;
  double in[MOST_VALUES];   // all operands, one after another
  double out[MOST_VALUES];  // the results
  int times;                // how often the collective runs; 0: once
  bool in_place;            // results lie in the operands' memory
  bool shifted;             // … and one element further
  bool skips;               // ends well without coming
  const char *dies;         // ends so, instead of coming
  int64_t late_ms;
  calx_status *status;  // how it went; the test frees it
} world_device;

typedef struct world {
  cpu_coll *coll;
  // Of each device: `coll`, or as if they were of several processes.
  cpu_coll *apart[MOST_DEVICES];
  uint32_t device_groups[MOST_DEVICES];
  cx_world_segment segment;
  uint32_t n_replicas, n_partitions;
  int64_t timeout_ms;
  uint64_t run;
  world_device devices[MOST_DEVICES];
} world;

// How many devices the worlds have that are of one process: 0: all of them.
extern uint32_t world_together;
void world_start(world *w, uint32_t n_replicas, uint32_t n_partitions);
// All devices run their module's collective and end.
void world_run(world *w);
void world_end(world *w);

#endif
