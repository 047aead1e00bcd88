// coll/mpi_exchange: several slices under way, each in one of two rounds.
//
// Transfers of one channel are matched in the order they are posted in, so a
// slice begins its second round only after the one before it did.
#include "coll/mpi_exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/mpi_far.h"
#include "coll/state.h"

enum { LINE = 64, SMALL = 8192 };

typedef struct slice {
  unsigned char *data;     // the caller's
  unsigned char *scratch;  // what comes of the others; what is combined
  int64_t n;               // elements
  bool small, combined, done;
  cpu_coll_mpi_transfer *transfers;  // [2 * sides], of this round
  uint32_t n_transfers;
} slice;

struct cpu_coll_mpi_exchange {
  cpu_coll_visit *visit;
  cpu_coll_reducer reducer;
  uint32_t near;
  size_t size;          // bytes of an element
  int64_t first, next;  // the oldest that is not done; the next to begin
  const void **x;       // [sides]
  slice slices[CPU_COLL_OUTS];
  unsigned char *memory;
};

// ---- parts ------------------------------------------------------------------

typedef struct part {
  int64_t lo, n;
} part;

static part part_of(const cpu_coll_mpi_exchange *x, const slice *s,
                    uint32_t side)
{
  if (s->small) return (part){ 0, s->n };
  const int64_t sides = x->visit->n_sides;
  const int64_t share = ((s->n + sides - 1) / sides + LINE - 1) / LINE * LINE;
  const int64_t lo = share * side < s->n ? share * side : s->n;
  return (part){ lo, s->n - lo < share ? s->n - lo : share };
}

// Where another side's part comes, and (own side) what is combined.
static unsigned char *scratch_of(const cpu_coll_mpi_exchange *x, const slice *s,
                                 uint32_t side)
{
  const part own = part_of(x, s, x->visit->own_side);
  return s->scratch + side * (size_t)own.n * x->size;
}

static void post(cpu_coll_mpi_exchange *x, slice *s, uint32_t side,
                 cpu_coll_mpi_channel channel, bool sends, void *data,
                 int64_t n)
{
  if (n == 0) return;
  cpu_coll_mpi_transfer *t = &s->transfers[s->n_transfers++];
  *t = cpu_coll_mpi_far_transfer(x->visit,
                                 x->visit->sides[side].members[x->near],
                                 channel, sends, data, (size_t)n * x->size);
  cpu_coll_mpi_link_post(x->visit->window->link, t);
}

static void begin_first(cpu_coll_mpi_exchange *x, slice *s)
{
  const uint32_t own = x->visit->own_side;
  const part mine = part_of(x, s, own);
  for (uint32_t i = 0; i < x->visit->n_sides; i++) {
    if (i == own) continue;
    const part theirs = part_of(x, s, i);
    post(x, s, i, CPU_COLL_MPI_FIRST, false, scratch_of(x, s, i), mine.n);
    post(x, s, i, CPU_COLL_MPI_FIRST, true,
         s->data + (size_t)theirs.lo * x->size, theirs.n);
  }
}

static calx_status *combine(cpu_coll_mpi_exchange *x, slice *s)
{
  const uint32_t own = x->visit->own_side;
  const part mine = part_of(x, s, own);
  unsigned char *at = s->data + (size_t)mine.lo * x->size;
  unsigned char *sum = scratch_of(x, s, own);
  for (uint32_t i = 0; i < x->visit->n_sides; i++) {
    x->x[i] = i == own ? at : scratch_of(x, s, i);
  }
  s->combined = true;
  s->n_transfers = 0;
  if (mine.n > 0) {
    CALX_TRY(
        cpu_coll_reduce(&x->reducer, x->x, x->visit->n_sides, 0, mine.n, sum));
    memcpy(at, sum, (size_t)mine.n * x->size);
  }
  if (s->small) return NULL;
  for (uint32_t i = 0; i < x->visit->n_sides; i++) {
    if (i == own) continue;
    const part theirs = part_of(x, s, i);
    post(x, s, i, CPU_COLL_MPI_SECOND, false,
         s->data + (size_t)theirs.lo * x->size, theirs.n);
    post(x, s, i, CPU_COLL_MPI_SECOND, true, at, mine.n);
  }
  return NULL;
}

static bool all_done(const slice *s)
{
  for (uint32_t i = 0; i < s->n_transfers; i++) {
    if (!atomic_load(&s->transfers[i].done)) return false;
  }
  return true;
}

// Does what can be done, oldest first; *moved: something.
static calx_status *advance(cpu_coll_mpi_exchange *x, bool *moved)
{
  bool in_order = true;
  for (int64_t k = x->first; k < x->next; k++) {
    slice *s = &x->slices[k % CPU_COLL_OUTS];
    if (s->done) continue;
    const bool ready = all_done(s);
    if (ready && s->combined) {
      s->done = *moved = true;
    } else if (ready && in_order) {
      *moved = true;
      CALX_TRY(combine(x, s));
    }
    in_order = in_order && s->combined;
  }
  while (x->first < x->next && x->slices[x->first % CPU_COLL_OUTS].done) {
    x->first++;
  }
  return NULL;
}

// ---- for others -------------------------------------------------------------

calx_status *cpu_coll_mpi_exchange_new(cpu_coll_visit *v,
                                       const cpu_coll_reducer *r, uint32_t near,
                                       size_t most, cpu_coll_mpi_exchange **out)
{
  const size_t sides = v->n_sides;
  *out = NULL;
  cpu_coll_mpi_exchange *x = cx_calloc(1, sizeof *x);
  if (x == NULL) return cx_out_of_memory();
  x->visit = v;
  x->reducer = *r;
  x->reducer.from = r->elem;
  x->near = near;
  x->size = cx_hlo_elem_bytes(r->elem);
  // A small slice comes whole from each side, of a large one a part.
  const size_t large = most / sides + LINE * x->size + x->size;
  const size_t small = most < SMALL ? most : SMALL;
  const size_t scratch =
      (sides * (large > small ? large : small) + LINE) / LINE * LINE;
  const size_t transfers = 2 * sides * sizeof(cpu_coll_mpi_transfer);
  x->x = cx_alloc(sides * sizeof *x->x);
  x->memory = cx_calloc(CPU_COLL_OUTS, scratch + transfers);
  if (x->x == NULL || x->memory == NULL) {
    cpu_coll_mpi_exchange_free(x);
    return cx_out_of_memory();
  }
  unsigned char *at = x->memory + CPU_COLL_OUTS * transfers;
  for (size_t i = 0; i < CPU_COLL_OUTS; i++) {
    x->slices[i].transfers =
        (cpu_coll_mpi_transfer *)(void *)(x->memory + i * transfers);
    x->slices[i].scratch = at + i * scratch;
  }
  *out = x;
  return NULL;
}

void cpu_coll_mpi_exchange_free(cpu_coll_mpi_exchange *x)
{
  if (x == NULL) return;
  if (x->first == x->next) {
    cx_free(x->memory);
  } else {
    // MPI may still write to it.
    cpu_coll_mpi_far_lose(x->visit);
  }
  cx_free(x->x);
  cx_free(x);
}

calx_status *cpu_coll_mpi_exchange_begin(cpu_coll_mpi_exchange *x, int64_t k,
                                         void *data, int64_t elements)
{
  bool moved = false;
  slice *s = &x->slices[k % CPU_COLL_OUTS];
  s->data = data;
  s->n = elements;
  s->small = (size_t)elements * x->size <= SMALL;
  s->combined = s->done = false;
  s->n_transfers = 0;
  x->next = k + 1;
  begin_first(x, s);
  cpu_coll_mpi_link_poll(x->visit->window->link);
  return advance(x, &moved);
}

calx_status *cpu_coll_mpi_exchange_end(cpu_coll_mpi_exchange *x, int64_t k)
{
  calx_status *status = NULL;
  for (cpu_coll_mpi_wait wait = { 0 }; status == NULL;) {
    const uint32_t bell = cpu_coll_mpi_link_bell(x->visit->window->link);
    bool moved = false;
    status = advance(x, &moved);
    if (x->first > k) break;
    if (moved) wait = (cpu_coll_mpi_wait){ 0 };
    if (status == NULL && !moved) {
      status = cpu_coll_mpi_far_pause(x->visit, &wait, bell);
    }
  }
  return status;
}
