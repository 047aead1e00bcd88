// coll/header: a submission as a row of 64-bit fields, which members compare;
// and a failure, which they read. Both are stored by atomic words.
#include <string.h>

#include "base/hash.h"
#include "coll/state.h"
#include "hlo/ops.h"

void cpu_coll_words_store(_Atomic uint64_t *to, const uint64_t *words, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
  }
}

static void words_load(const _Atomic uint64_t *from, uint64_t *out, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    out[i] = atomic_load_explicit(&from[i], memory_order_acquire);
  }
}

static uint64_t hash_of(const void *data, size_t bytes, uint64_t seed)
{
  return cx_hash_bytes(data, bytes, seed).low;
}

static uint64_t hash_attributes(const cx_hlo_op *op, const cpu_coll_reducer *r)
{
  static const cx_hlo_attr_id numbers[] = {
    CX_HLO_A_ALL_GATHER_DIM, CX_HLO_A_SCATTER_DIMENSION,
    CX_HLO_A_SPLIT_DIMENSION, CX_HLO_A_CONCAT_DIMENSION, CX_HLO_A_SPLIT_COUNT
  };
  // A body that only the interpreter runs is compared by its operations.
  uint64_t body = r->kind;
  if (op->n_regions > 0 && r->kind == CX_HLO_OP_OTHER) {
    const cx_hlo_op *i = r->body->first->first;
    for (; i != NULL; i = i->next) {
      body = hash_of(&i->kind, sizeof i->kind, body);
    }
  }
  int64_t words[2 + sizeof numbers / sizeof *numbers] = {
    op->n_regions == 0 ? 0 : (int64_t)body, (int64_t)r->elem
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const bool set = cx_hlo_op_attr(op, numbers[i]) != NULL;
    words[2 + i] = set ? cx_hlo_op_int(op, numbers[i]) : -1;
  }
  const uint64_t hash = hash_of(words, sizeof words, 0);
  const cx_hlo_attr *pairs =
      op->kind == CX_HLO_OP_COLLECTIVE_PERMUTE
          ? cx_hlo_op_attr(op, CX_HLO_A_SOURCE_TARGET_PAIRS)
          : NULL;
  if (pairs == NULL) return hash;
  return hash_of(pairs->as.elements.data, pairs->as.elements.size, hash);
}

void cpu_coll_header_write(const cpu_coll_participant *p,
                           const cpu_coll_reducer *r, cpu_coll_state *s)
{
  const cx_hlo_op *op = p->submission->op;
  const cx_hlo_type *first = &p->submission->operands[0].type;
  uint64_t header[CPU_COLL_FIELDS] = { 0 };
  header[CPU_COLL_FIELD_INDEX] = p->launch->n_done;
  header[CPU_COLL_FIELD_PROGRAM] = p->launch->program;
  header[CPU_COLL_FIELD_KIND] = (uint64_t)op->kind |
                                (uint64_t)first->elem << 16 |
                                (uint64_t)op->n_operands << 32;
  header[CPU_COLL_FIELD_SHAPE] = first->rank;
  for (size_t i = 0; i < first->rank && i < CPU_COLL_DIMS; i++) {
    header[CPU_COLL_FIELD_DIMS + i] = (uint64_t)first->dims[i];
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_type *t = &p->submission->operands[i].type;
    const uint64_t seed = header[CPU_COLL_FIELD_TYPES] * 64 + (uint64_t)t->elem;
    header[CPU_COLL_FIELD_TYPES] =
        hash_of(t->dims, t->rank * sizeof *t->dims, seed);
  }
  header[CPU_COLL_FIELD_GROUP] =
      hash_of(p->group->members, p->group->n * sizeof *p->group->members, 0);
  for (uint32_t i = 0; i < p->group->n && p->coll->topology.n_world <= 64;
       i++) {
    const uint32_t device = p->launch->devices[p->group->members[i]];
    header[CPU_COLL_FIELD_MEMBERS] |= UINT64_C(1) << device;
  }
  header[CPU_COLL_FIELD_REST] = hash_attributes(op, r);
  cpu_coll_words_store(s->header, header, CPU_COLL_FIELDS);
}

void cpu_coll_header_read(const cpu_coll_state *s, uint64_t *out)
{
  words_load(s->header, out, CPU_COLL_FIELDS);
}

void cpu_coll_failure_write(cpu_coll_state *s, const cpu_coll_failure *failure,
                            uint64_t launch)
{
  uint64_t words[sizeof *failure / sizeof(uint64_t)];
  memcpy(words, failure, sizeof *failure);
  (void)atomic_exchange(&s->failed, 0);
  cpu_coll_words_store(s->failure, words, sizeof words / sizeof *words);
  atomic_store(&s->failed, launch);
}

bool cpu_coll_failure_read(cpu_coll_state *s, uint64_t launch,
                           cpu_coll_failure *out)
{
  uint64_t words[sizeof *out / sizeof(uint64_t)];
  if (atomic_load(&s->failed) != launch) return false;
  words_load(s->failure, words, sizeof words / sizeof *words);
  memcpy(out, words, sizeof *out);
  out->message[sizeof out->message - 1] = '\0';
  // A read-modify-write: the loads above cannot move behind it.
  return atomic_fetch_or(&s->failed, 0) == launch;
}
