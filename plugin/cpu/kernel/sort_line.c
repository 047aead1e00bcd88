// kernel/sort_line: sorts one line.
//
// What is sorted is a line's keys or, where something else goes along or a key
// does not say what its element is, pairs of a key and a value: the other
// operand's element or the place in the line. Of a line whose first elements
// alone are wanted, those that may be among them are collected and sorted.
#include <string.h>

#include "kernel/sort.h"

#define PART 32  // keys of which one may be a candidate
#define FEW 32   // first elements that are kept in order

static bool is_direct(const cpu_kernel_sort_plan *p)
{
  return p->d.payload == CPU_KERNEL_SORT_BESIDE &&
         p->size[1] <= (p->wide ? 8 : 4);
}

// ---- elements ----

static void put(unsigned char *to, uint64_t v, int64_t size)
{
  switch (size) {
    case 1: memcpy(to, &v, 1); break;
    case 2: memcpy(to, &v, 2); break;
    case 4: memcpy(to, &v, 4); break;
    default: memcpy(to, &v, 8); break;
  }
}

static uint64_t get(const unsigned char *from, int64_t size)
{
  uint64_t v = 0;
  switch (size) {
    case 1: memcpy(&v, from, 1); break;
    case 2: memcpy(&v, from, 2); break;
    case 4: memcpy(&v, from, 4); break;
    default: memcpy(&v, from, 8); break;
  }
  return v;
}

// An operand's element at `from` becomes the result's at `to`.
static void move(const cpu_kernel_sort_line *l, int i, int64_t from, int64_t to)
{
  const int64_t size = l->p->size[i];
  const unsigned char *a = l->in[i] + from * l->stride[i];
  unsigned char *b = l->out[i] + to * l->stride[i];
  if (size == 16) {
    memcpy(b, a, 16);
  } else {
    put(b, get(a, size), size);
  }
}

// The element of a key.
static uint64_t element_of(const cpu_kernel_sort_order *o, uint64_t key)
{
  const uint64_t sign = (uint64_t)1 << (o->bits - 1);
  const uint64_t all = sign | (sign - 1);
  if (o->descending) key ^= all;
  if (o->is_float) return key & sign ? key ^ sign : key ^ all;
  return o->is_signed ? key ^ sign : key;
}

// ---- items ----

static void set_items(cpu_kernel_sort_line *l, const void *keys, int64_t lo,
                      int64_t n)
{
  const cpu_kernel_sort_plan *p = l->p;
  const int64_t size = p->size[1], stride = l->stride[1];
  if (!l->pairs) {
    const size_t each = p->wide ? 8 : 4;
    memcpy((unsigned char *)l->m.items[0] + (size_t)lo * each, keys,
           (size_t)n * each);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    const uint64_t value =
        l->slots ? (uint64_t)(lo + i) : get(l->in[1] + (lo + i) * stride, size);
    if (p->wide) {
      const uint64_t key = ((const uint64_t *)keys)[i];
      ((cpu_kernel_sort_pair *)l->m.items[0])[lo + i] =
          (cpu_kernel_sort_pair){ key, value };
    } else {
      const uint64_t key = ((const uint32_t *)keys)[i];
      ((uint64_t *)l->m.items[0])[lo + i] = key << 32 | value;
    }
  }
}

static uint64_t key_of(const cpu_kernel_sort_line *l, int64_t i)
{
  const void *items = l->m.items[l->side];
  if (l->p->wide) {
    return l->pairs ? ((const cpu_kernel_sort_pair *)items)[i].key
                    : ((const uint64_t *)items)[i];
  }
  return l->pairs ? ((const uint64_t *)items)[i] >> 32
                  : ((const uint32_t *)items)[i];
}

static uint64_t value_of(const cpu_kernel_sort_line *l, int64_t i)
{
  const void *items = l->m.items[l->side];
  return l->p->wide ? ((const cpu_kernel_sort_pair *)items)[i].value
                    : ((const uint64_t *)items)[i] & UINT32_MAX;
}

static void sort_items(cpu_kernel_sort_line *l)
{
  if (l->p->wide) {
    l->side = l->pairs ? cpu_kernel_sort_pairs_64(&l->m)
                       : cpu_kernel_sort_keys_64(&l->m);
  } else {
    l->side = l->pairs ? cpu_kernel_sort_pairs_32(&l->m)
                       : cpu_kernel_sort_keys_32(&l->m);
  }
}

// ---- a whole line ----

typedef struct block_keys {
  _Alignas(64) uint64_t keys[CPU_KERNEL_SORT_BLOCK];
} block_keys;

static bool make_keys(const cpu_kernel_sort_line *l, int64_t lo, int64_t n,
                      block_keys *b)
{
  return l->p->fns->keys(&l->p->order, l->in[0] + lo * l->stride[0],
                         l->stride[0], n, b->keys);
}

static void fill_chunk(void *user, int64_t first, int64_t last)
{
  cpu_kernel_sort_line *l = user;
  block_keys b;
  bool odd = false;
  const int64_t end = l->p->d.n * last / l->m.chunks;
  for (int64_t lo = l->p->d.n * first / l->m.chunks; lo < end;
       lo += CPU_KERNEL_SORT_BLOCK) {
    const int64_t left = end - lo;
    const int64_t n =
        left < CPU_KERNEL_SORT_BLOCK ? left : CPU_KERNEL_SORT_BLOCK;
    odd |= make_keys(l, lo, n, &b);
    set_items(l, b.keys, lo, n);
  }
  if (odd) l->odd = true;
}

static void write_results(const cpu_kernel_sort_line *l, int64_t lo, int64_t hi)
{
  const cpu_kernel_sort_plan *p = l->p;
  const bool moves = l->odd || p->selects;
  const int64_t end[] = { hi < p->d.keep[0] ? hi : p->d.keep[0],
                          hi < p->d.keep[1] ? hi : p->d.keep[1] };
  const int64_t key_size = p->wide ? 8 : 4;
  if (!moves && !l->pairs && p->size[0] == key_size &&
      l->stride[0] == key_size) {
    const unsigned char *keys = l->m.items[l->side];
    if (lo < end[0]) {
      p->fns->numbers(&p->order, keys + lo * key_size, end[0] - lo,
                      l->out[0] + lo * key_size);
    }
    return;
  }
  for (int64_t i = lo; i < end[0]; i++) {
    if (moves) {
      move(l, 0, (int64_t)value_of(l, i), i);
    } else {
      put(l->out[0] + i * l->stride[0], element_of(&p->order, key_of(l, i)),
          p->size[0]);
    }
  }
  for (int64_t i = lo; l->out[1] != NULL && i < end[1]; i++) {
    if (l->slots && p->d.payload == CPU_KERNEL_SORT_BESIDE) {
      move(l, 1, (int64_t)value_of(l, i), i);
    } else {
      put(l->out[1] + i * l->stride[1], value_of(l, i), p->size[1]);
    }
  }
}

static void write_chunk(void *user, int64_t first, int64_t last)
{
  const cpu_kernel_sort_line *l = user;
  write_results(l, l->p->d.n * first / l->m.chunks,
                l->p->d.n * last / l->m.chunks);
}

static void each_chunk(cpu_kernel_sort_line *l, cpu_threads_body *body)
{
  if (l->m.chunks == 1) {
    body(l, 0, 1);
  } else {
    cpu_threads_for(l->m.pool, l->m.chunks, 1, body, l);
  }
}

static void sort_whole(cpu_kernel_sort_line *l)
{
  const cpu_kernel_sort_plan *p = l->p;
  l->pairs = p->d.payload != CPU_KERNEL_SORT_ALONE;
  l->slots = l->pairs && !is_direct(p);
  each_chunk(l, fill_chunk);
  if (p->d.keep[0] == 0) {
    l->odd = false;
  } else if (l->odd && !l->slots) {
    l->pairs = l->slots = true;
    each_chunk(l, fill_chunk);
  }
  l->m.n = p->d.n;
  sort_items(l);
  each_chunk(l, write_chunk);
}

// ---- a short line ----

static void sort_short(cpu_kernel_sort_line *l)
{
  const cpu_kernel_sort_desc *d = &l->p->d;
  block_keys b;
  uint32_t slots[CPU_KERNEL_SORT_SHORT + 16];
  memset(b.keys, 0, (size_t)(d->n + 16) * (l->p->wide ? 8 : 4));
  (void)make_keys(l, 0, d->n, &b);
  l->p->fns->slots(b.keys, d->n, slots);
  for (int64_t i = 0; i < d->n; i++) {
    const int64_t to = slots[i];
    if (to < d->keep[0]) move(l, 0, i, to);
    if (l->out[1] == NULL || to >= d->keep[1]) continue;
    if (d->payload == CPU_KERNEL_SORT_POSITIONS) {
      put(l->out[1] + to * l->stride[1], (uint64_t)i, l->p->size[1]);
    } else {
      move(l, 1, i, to);
    }
  }
}

// ---- the first elements ----

// Sorts the candidates and keeps the first ones. They came in their order, so
// that equal ones keep it.
static void sort_candidates(cpu_kernel_sort_line *l, int64_t keep)
{
  const size_t each = l->p->wide ? sizeof(cpu_kernel_sort_pair) : 8;
  l->side = 0;
  sort_items(l);
  if (l->m.n > keep) l->m.n = keep;
  if (l->side == 1) {
    memcpy(l->m.items[0], l->m.items[1], (size_t)l->m.n * each);
    l->side = 0;
  }
}

static void add_candidate(cpu_kernel_sort_line *l, const block_keys *b,
                          int64_t lo, int64_t i)
{
  if (l->p->wide) {
    ((cpu_kernel_sort_pair *)l->m.items[0])[l->m.n++] =
        (cpu_kernel_sort_pair){ b->keys[i], (uint64_t)(lo + i) };
  } else {
    const uint64_t key = ((const uint32_t *)b->keys)[i];
    ((uint64_t *)l->m.items[0])[l->m.n++] = key << 32 | (uint64_t)(lo + i);
  }
}

// Those of a block below the limit, or all until it is known.
static void add_candidates(cpu_kernel_sort_line *l, const block_keys *b,
                           int64_t lo, int64_t n, bool full, uint64_t limit)
{
  const cpu_kernel_sort_plan *p = l->p;
  for (int64_t at = 0; at < n; at += PART) {
    const int64_t end = n - at < PART ? n : at + PART;
    const unsigned char *keys =
        (const unsigned char *)b->keys + at * (p->wide ? 8 : 4);
    if (full && !p->fns->below(keys, end - at, limit)) continue;
    for (int64_t i = at; i < end; i++) {
      const uint64_t key =
          p->wide ? b->keys[i] : ((const uint32_t *)b->keys)[i];
      if (!full || key < limit) add_candidate(l, b, lo, i);
    }
  }
}

// Puts an item among the `kept` first ones, of which there are *n.
static void insert(uint64_t *items, int64_t *n, int64_t kept, uint64_t item)
{
  int64_t at = *n < kept ? (*n)++ : kept - 1;
  for (; at > 0 && items[at - 1] > item; at--) items[at] = items[at - 1];
  items[at] = item;
}

// The few first elements of 32-bit keys: each that is among those so far is
// inserted. An item is its key and its place, so that no two are equal.
static void select_few(cpu_kernel_sort_line *l, int64_t keep)
{
  const cpu_kernel_sort_plan *p = l->p;
  uint64_t *items = l->m.items[0];
  block_keys b;
  int64_t n = 0;
  for (int64_t lo = 0; lo < p->d.n; lo += CPU_KERNEL_SORT_BLOCK) {
    const int64_t left = p->d.n - lo;
    const int64_t part =
        left < CPU_KERNEL_SORT_BLOCK ? left : CPU_KERNEL_SORT_BLOCK;
    (void)make_keys(l, lo, part, &b);
    const uint32_t *keys = (const uint32_t *)b.keys;
    for (int64_t at = 0; at < part; at += PART) {
      const int64_t end = part - at < PART ? part : at + PART;
      if (n == keep &&
          !p->fns->below(keys + at, end - at, items[keep - 1] >> 32)) {
        continue;
      }
      for (int64_t i = at; i < end; i++) {
        if (n == keep && keys[i] >= items[keep - 1] >> 32) continue;
        insert(items, &n, keep, (uint64_t)keys[i] << 32 | (uint64_t)(lo + i));
      }
    }
  }
  l->m.n = n;
  l->side = 0;
  write_results(l, 0, n);
}

static void select_first(cpu_kernel_sort_line *l)
{
  const cpu_kernel_sort_plan *p = l->p;
  const int64_t n = p->d.n, keep = cpu_kernel_sort_kept(&p->d);
  block_keys b;
  bool full = false;
  uint64_t limit = 0;  // only smaller keys are wanted, once it is full
  l->pairs = l->slots = true;
  if (!p->wide && keep <= FEW) {
    select_few(l, keep);
    return;
  }
  for (int64_t lo = 0; lo < n; lo += CPU_KERNEL_SORT_BLOCK) {
    const int64_t part =
        n - lo < CPU_KERNEL_SORT_BLOCK ? n - lo : CPU_KERNEL_SORT_BLOCK;
    (void)make_keys(l, lo, part, &b);
    if (full && !p->fns->below(b.keys, part, limit)) continue;
    add_candidates(l, &b, lo, part, full, limit);
    if (l->m.n + CPU_KERNEL_SORT_BLOCK <= p->room) continue;
    sort_candidates(l, keep);
    full = true;
    limit = key_of(l, keep - 1);
  }
  sort_candidates(l, keep);
  write_results(l, 0, keep);
}

void cpu_kernel_sort_line_run(cpu_kernel_sort_line *l)
{
  if (l->p->d.n <= CPU_KERNEL_SORT_SHORT) {
    sort_short(l);
  } else if (l->p->selects) {
    select_first(l);
  } else {
    sort_whole(l);
  }
}
