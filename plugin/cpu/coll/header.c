// coll/header: what a device came to a collective with, in words that others
// compare.
#include <string.h>

#include "base/hash.h"
#include "coll/say.h"
#include "coll/state.h"
#include "hlo/ops.h"

static void put_header(cx_text *out, const uint64_t *w)
{
  const cx_hlo_op_kind kind = (cx_hlo_op_kind)(w[CPU_COLL_W_KIND] & 0xffff);
  const uint64_t n = w[CPU_COLL_W_KIND] >> 32;
  int64_t dims[CPU_COLL_DIMS];
  for (int i = 0; i < CPU_COLL_DIMS; i++) {
    dims[i] = (int64_t)w[CPU_COLL_W_DIMS + i];
  }
  const uint64_t rank = w[CPU_COLL_W_SHAPE];
  const cx_hlo_type type = { (cx_hlo_elem)(w[CPU_COLL_W_KIND] >> 16 & 0xffff),
                             rank < CPU_COLL_DIMS ? (size_t)rank
                                                  : CPU_COLL_DIMS,
                             dims };
  cx_text_format(out, "%s of %s", cx_hlo_op_short(kind), cx_hlo_shape(&type).s);
  if (rank > CPU_COLL_DIMS) cx_text_append(out, " and more dimensions");
  if (n > 1) cx_text_format(out, " and %u more", (unsigned)(n - 1));
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
  uint64_t region = r->kind;
  if (op->n_regions > 0 && r->kind == CX_HLO_OP_OTHER) {
    const cx_hlo_op *i = r->region->first->first;
    for (; i != NULL; i = i->next) {
      region = hash_of(&i->kind, sizeof i->kind, region);
    }
  }
  int64_t words[2 + sizeof numbers / sizeof *numbers] = {
    op->n_regions == 0 ? 0 : (int64_t)region, (int64_t)r->elem
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

void cpu_coll_header_write(const cpu_coll_visit *v, const cpu_coll_reducer *r,
                           cpu_coll_state *s)
{
  const cx_hlo_op *op = v->part->op;
  const cx_hlo_type *first = &v->part->operands[0].type;
  uint64_t w[CPU_COLL_WORDS] = { 0 };
  w[CPU_COLL_W_INDEX] = v->launch->n_done;
  w[CPU_COLL_W_PROGRAM] = v->launch->program;
  w[CPU_COLL_W_KIND] = (uint64_t)op->kind | (uint64_t)first->elem << 16 |
                       (uint64_t)op->n_operands << 32;
  w[CPU_COLL_W_SHAPE] = first->rank;
  for (size_t i = 0; i < first->rank && i < CPU_COLL_DIMS; i++) {
    w[CPU_COLL_W_DIMS + i] = (uint64_t)first->dims[i];
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_type *t = &v->part->operands[i].type;
    const uint64_t seed = w[CPU_COLL_W_TYPES] * 64 + (uint64_t)t->elem;
    w[CPU_COLL_W_TYPES] = hash_of(t->dims, t->rank * sizeof *t->dims, seed);
  }
  w[CPU_COLL_W_GROUP] =
      hash_of(v->group->members, v->group->n * sizeof *v->group->members, 0);
  for (uint32_t i = 0; i < v->group->n && v->window->share.all <= 64; i++) {
    const uint32_t device = v->launch->devices[v->group->members[i]];
    w[CPU_COLL_W_MEMBERS] |= UINT64_C(1) << device;
  }
  w[CPU_COLL_W_REST] = hash_attributes(op, r);
  for (int i = 0; i < CPU_COLL_WORDS; i++) {
    atomic_store_explicit(&s->header[i], w[i], memory_order_relaxed);
  }
}

void cpu_coll_header_read(const cpu_coll_state *s, uint64_t *out)
{
  for (int k = 0; k < CPU_COLL_WORDS; k++) {
    out[k] = atomic_load_explicit(&s->header[k], memory_order_acquire);
  }
}

void cpu_coll_news_write(cpu_coll_state *s, const cpu_coll_news *news)
{
  uint64_t words[sizeof *news / sizeof(uint64_t)];
  memcpy(words, news, sizeof *news);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    atomic_store_explicit(&s->news[i], words[i], memory_order_relaxed);
  }
}

void cpu_coll_news_read(const cpu_coll_state *s, cpu_coll_news *out)
{
  uint64_t words[sizeof *out / sizeof(uint64_t)];
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    words[i] = atomic_load_explicit(&s->news[i], memory_order_relaxed);
  }
  memcpy(out, words, sizeof *out);
  out->words[sizeof out->words - 1] = '\0';
}

void cpu_coll_put_mismatch(cx_text *out, const cpu_coll_launch *l, uint32_t a,
                           const uint64_t *x, uint32_t b, const uint64_t *y)
{
  cx_text one = { 0 }, two = { 0 };
  put_header(&one, x);
  put_header(&two, y);
  cpu_coll_put_difference(out, l, l->n_done, a, &one, b, &two);
  if (x[CPU_COLL_W_INDEX] != y[CPU_COLL_W_INDEX]) {
    cx_text_format(out, ", as its collective %u",
                   (unsigned)y[CPU_COLL_W_INDEX]);
  } else if (x[CPU_COLL_W_KIND] != y[CPU_COLL_W_KIND] ||
             x[CPU_COLL_W_TYPES] != y[CPU_COLL_W_TYPES]) {
    // The words say it.
  } else if (x[CPU_COLL_W_GROUP] != y[CPU_COLL_W_GROUP]) {
    cx_text_append(out, ", with another group");
  } else if (x[CPU_COLL_W_REST] != y[CPU_COLL_W_REST]) {
    cx_text_append(out, ", with other attributes or regions");
  } else {
    cx_text_append(out, ", of another program");
  }
}
