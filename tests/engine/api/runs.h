// runs: programs of one collective each, and running them on a client's share
// of a world.
#ifndef CX_TESTS_ENGINE_API_RUNS_H
#define CX_TESTS_ENGINE_API_RUNS_H

#include "world.h"

enum { ARGS_MOST = 3, DEVICES_MOST = 4, RUNS = 3 };

// A program of one function. In the texts %N is the world's size, %N1 its last
// member, %A all of them.
typedef struct program {
  const char *name;
  int world;  // the size it is for; 0: any
  const char *text;
  const char *types[ARGS_MOST];  // of the arguments and of the results
  const char *out_types[ARGS_MOST];
} program;

#define REGION(op, type)                            \
  "({\n^bb0(%x: tensor<" type ">, %y: tensor<" type \
  ">):\n"                                           \
  "  %z = stablehlo." op " %x, %y : tensor<" type   \
  ">\n"                                             \
  "  stablehlo.return %z : tensor<" type ">\n})"
#define REDUCE(groups, op, elem, type)                           \
  "%r = \"stablehlo.all_reduce\"(%0) <{replica_groups = " groups \
  "}> " REGION(op, elem) " : (tensor<" type ">) -> tensor<" type \
                         ">\nreturn %r : tensor<" type ">"
#define ALL "dense<[%A]> : tensor<1x%Nxi64>"
#define SAME(t) \
  { t },        \
  {             \
    t           \
  }

extern const program programs[];
extern const int n_programs;

// Numbers whose sums and products are exact, for orders that may differ.
extern bool runs_exact;

void write_text(const program *p, int n, char *out);
bool fits(const program *p, int n);
PJRT_Buffer *make_argument(PJRT_Device *device, int id, int argument,
                           const char *type);
// Of one device.
size_t result_bytes(const program *p);
// On the client's devices, of which the first has this number in the world of
// n; each device's results one after another to `out`. The runs are queued
// before any is read.
void run_program(const program *p, int n, PJRT_Client *client, int first,
                 int n_local, unsigned char *out);
// All programs that fit the world, on the share of a peer; the results go to
// the world's shared bytes: of each program those of all devices.
void run_all(peer *self);
size_t all_bytes(int n);
// The same programs in this process alone must give the bits that the world's
// shared bytes have.
void compare_with_one(const world *w);

#endif
