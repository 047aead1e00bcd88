// kernel/sort_radix: a radix sort of items of the type ITEM, whose key is
// KEY(item), of BITS bits. RADIX_OF makes the names. From the lowest digit on,
// so that it is stable.

typedef struct RADIX_OF(pass) {
  const cpu_kernel_sort_memory *m;
  const ITEM *from;
  ITEM *to;
  uint32_t *counts;
  int shift, bits;
} RADIX_OF(pass);

static void RADIX_OF(count)(void *user, int64_t lo, int64_t hi)
{
  const RADIX_OF(pass) *p = user;
  for (int64_t c = lo; c < hi; c++) {
    uint32_t *counts = p->counts + (c << CPU_KERNEL_SORT_DIGIT);
    const uint32_t mask = (1u << p->bits) - 1;
    const int64_t end = chunk_begin(p->m, c + 1);
    memset(counts, 0, sizeof *counts << p->bits);
    for (int64_t i = chunk_begin(p->m, c); i < end; i++) {
      counts[(KEY(p->from[i]) >> p->shift) & mask]++;
    }
  }
}

// Of one chunk, whose counts do not change from pass to pass: all digits.
static void RADIX_OF(count_all)(const cpu_kernel_sort_memory *m, int digit)
{
  const ITEM *from = m->items[0];
  const uint32_t mask = (1u << digit) - 1;
  const int digits = (BITS + digit - 1) / digit;
  memset(m->counts, 0,
         (sizeof *m->counts << CPU_KERNEL_SORT_DIGIT) * (size_t)digits);
  for (int64_t i = 0; i < m->n; i++) {
    const uint64_t key = KEY(from[i]);
    for (int k = 0; k < digits; k++) {
      m->counts[(k << CPU_KERNEL_SORT_DIGIT) + ((key >> k * digit) & mask)]++;
    }
  }
}

static void RADIX_OF(spread)(void *user, int64_t lo, int64_t hi)
{
  const RADIX_OF(pass) *p = user;
  for (int64_t c = lo; c < hi; c++) {
    uint32_t *next = p->counts + (c << CPU_KERNEL_SORT_DIGIT);
    const uint32_t mask = (1u << p->bits) - 1;
    const int64_t end = chunk_begin(p->m, c + 1);
    for (int64_t i = chunk_begin(p->m, c); i < end; i++) {
      const ITEM x = p->from[i];
      p->to[next[(KEY(x) >> p->shift) & mask]++] = x;
    }
  }
}

int RADIX_OF(cpu_kernel_sort)(const cpu_kernel_sort_memory *m)
{
  const int digit = m->n < LONG_DIGITS ? 8 : CPU_KERNEL_SORT_DIGIT;
  int side = 0;
  if (m->chunks == 1) RADIX_OF(count_all)(m, digit);
  for (int k = 0; k * digit < BITS; k++) {
    const int left = BITS - k * digit;
    RADIX_OF(pass)
    p = { .m = m,
          .from = m->items[side],
          .to = m->items[1 - side],
          .counts = m->counts,
          .shift = k * digit,
          .bits = left < digit ? left : digit };
    if (m->chunks == 1) {
      p.counts += k << CPU_KERNEL_SORT_DIGIT;
    } else {
      each_chunk(m, RADIX_OF(count), &p);
    }
    if (!first_slots(m, p.counts, p.bits)) continue;
    each_chunk(m, RADIX_OF(spread), &p);
    side = 1 - side;
  }
  return side;
}

#undef ITEM
#undef KEY
#undef BITS
#undef RADIX_OF
