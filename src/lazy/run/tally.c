// lazy/run/tally: how often each op ran, as counters xla::NAME.
//
// Ops are counted when their program is launched, not when they are recorded:
// recording takes no shared memory, so that threads do not wait for each
// other's counts.
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"
#include "lazy/run/program.h"

enum { MOST_OPS = 1024, MOST_NAME = 48 };

typedef struct tally {
  cx_counter counter;
  const cx_graph_op *op;
  char name[MOST_NAME];
} tally;

static tally tallies[MOST_OPS];  // by the op's id
static cx_mutex lock = CX_MUTEX_INIT;
static _Atomic(tally *) known[MOST_OPS];

// NULL: another op has the number, which only ops of tests do.
static tally *tally_of(const cx_graph_op *op)
{
  tally *t = atomic_load_explicit(&known[op->id], memory_order_acquire);
  if (t == NULL) {
    t = &tallies[op->id];
    cx_lock(&lock);
    if (t->op == NULL) {
      t->op = op;
      snprintf(t->name, sizeof t->name, "xla::%s", op->name);
      t->counter.entry.name = t->name;
      atomic_store_explicit(&known[op->id], t, memory_order_release);
    }
    cx_unlock(&lock);
  }
  return t->op == op ? t : NULL;
}

void cx_lazy_tally_ops(const cx_graph_order *o)
{
  uint32_t counts[MOST_OPS];
  const cx_graph_op *met[MOST_OPS];
  size_t n_met = 0;
  memset(counts, 0, sizeof counts);
  for (size_t i = 0; i < o->n_nodes; i++) {
    const cx_graph_op *op = o->nodes[i]->op;
    if (op->id < MOST_OPS && counts[op->id]++ == 0) met[n_met++] = op;
  }
  for (size_t i = 0; i < n_met; i++) {
    tally *t = tally_of(met[i]);
    if (t != NULL) cx_counter_add(&t->counter, counts[met[i]->id]);
  }
}
