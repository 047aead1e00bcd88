// kernel/sort_type: what sort.h says of keys, for keys of the type T. SORT_OF
// makes the names.

static void SORT_OF(load)(const unsigned char *from, int64_t stride, int bytes,
                          int64_t n, T *out)
{
#define LOAD(type)                           \
  for (int64_t i = 0; i < n; i++) {          \
    type x;                                  \
    memcpy(&x, from + i * stride, sizeof x); \
    out[i] = (T)x;                           \
  }
  if (bytes == (int)sizeof(T) && stride == bytes) {
    memcpy(out, from, (size_t)n * sizeof(T));
  } else if (bytes == 8) {
    LOAD(uint64_t)
  } else if (bytes == 4) {
    LOAD(uint32_t)
  } else if (bytes == 2) {
    LOAD(uint16_t)
  } else {
    LOAD(uint8_t)
  }
#undef LOAD
}

// Zeros become 0, and NaNs the largest number.
static bool SORT_OF(make_equal)(T sign, T infinity, int64_t n, T *x)
{
  T odd = 0;
  for (int64_t i = 0; i < n; i++) {
    const T size = x[i] & ~sign;
    const T is_nan = size > infinity;
    const T is_minus_zero = x[i] == sign;
    odd |= is_nan | is_minus_zero;
    const T number = is_minus_zero ? 0 : x[i];
    x[i] = is_nan ? sign - 1 : number;
  }
  return odd != 0;
}

static bool SORT_OF(keys)(const cpu_kernel_sort_order *o,
                          const unsigned char *from, int64_t stride, int64_t n,
                          void *out)
{
  T *x = out;
  const T sign = (T)1 << (o->bits - 1);
  const T all = sign | (sign - 1);
  const T flip = o->descending ? all : 0;
  bool odd = false;
  SORT_OF(load)(from, stride, o->bits / 8, n, x);
  if (!o->is_float) {
    const T change = flip ^ (o->is_signed ? sign : 0);
    for (int64_t i = 0; i < n; i++) x[i] ^= change;
    return false;
  }
  if (o->equal) {
    odd = SORT_OF(make_equal)(sign, (T)o->infinity, n, x);
  }
  for (int64_t i = 0; i < n; i++) {
    const T minus = x[i] & sign ? all : sign;
    x[i] ^= minus ^ flip;
  }
  return odd;
}

static void SORT_OF(numbers)(const cpu_kernel_sort_order *o, const void *keys,
                             int64_t n, void *out)
{
  const T *k = keys;
  T *x = out;
  const T sign = (T)1 << (o->bits - 1);
  const T all = sign | (sign - 1);
  const T flip = o->descending ? all : 0;
  const T plus = o->is_float || o->is_signed ? sign : 0;
  const T minus = o->is_float ? all : plus;
  for (int64_t i = 0; i < n; i++) {
    const T v = k[i] ^ flip;
    x[i] = v ^ (v & sign ? plus : minus);
  }
}

// Counts for each key those that go before it: smaller ones, and equal ones
// that stand before it.
static void SORT_OF(slots)(const void *keys, int64_t n, uint32_t *out)
{
  enum { LANES = 64 / sizeof(T) };
  const T *k = keys;
  for (int64_t at = 0; at < n; at += LANES) {
    T count[LANES] = { 0 };
    for (int64_t j = 0; j < n; j++) {
      const T other = k[j];
      const T equal = j < at;  // goes before all equal ones of the vector
      for (int i = 0; i < LANES; i++) {
        count[i] += (T)(other < k[at + i]) |
                    ((T)(other == k[at + i]) & (equal | (T)(j < at + i)));
      }
    }
    for (int i = 0; i < LANES; i++) out[at + i] = (uint32_t)count[i];
  }
}

static bool SORT_OF(below)(const void *keys, int64_t n, uint64_t limit)
{
  const T *k = keys;
  const T least = (T)limit;
  T any = 0;
  for (int64_t i = 0; i < n; i++) any |= k[i] < least;
  return any != 0;
}

#undef T
#undef SORT_OF
