// hlo/names: a hash table with chaining. The entries are in one array.
#include "hlo/names.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

void cx_hlo_names_free(cx_hlo_names *names)
{
  cx_free(names->items);
  cx_free(names->buckets);
  *names = (cx_hlo_names){ 0 };
}

static uint32_t hash_of(const cx_hlo_names *names, cx_hlo_str s)
{
  return (uint32_t)cx_hash_bytes(s.s, s.n, names->seed).low;
}

const cx_hlo_name *cx_hlo_names_find(const cx_hlo_names *names, cx_hlo_str s)
{
  if (names->n_buckets == 0) return NULL;
  const uint32_t hash = hash_of(names, s);
  uint32_t at = names->buckets[hash & (names->n_buckets - 1)];
  for (; at != 0; at = names->items[at - 1].next) {
    const cx_hlo_name *name = &names->items[at - 1];
    if (name->hash == hash && name->text.n == s.n &&
        memcmp(name->text.s, s.s, s.n) == 0) {
      return name;
    }
  }
  return NULL;
}

static void link_in(cx_hlo_names *names, size_t i)
{
  cx_hlo_name *name = &names->items[i];
  uint32_t *bucket = &names->buckets[name->hash & (names->n_buckets - 1)];
  name->next = *bucket;
  *bucket = (uint32_t)i + 1;
}

static bool grow_buckets(cx_hlo_names *names)
{
  const size_t n = names->n_buckets == 0 ? 64 : names->n_buckets * 2;
  uint32_t *buckets = cx_calloc(n, sizeof *buckets);
  if (buckets == NULL) return false;
  cx_free(names->buckets);
  names->buckets = buckets;
  names->n_buckets = n;
  for (size_t i = 0; i < names->n; i++) link_in(names, i);
  return true;
}

bool cx_hlo_names_add(cx_hlo_names *names, cx_hlo_str s, void *item,
                      size_t count)
{
  if (names->n == names->n_buckets && !grow_buckets(names)) return false;
  if (!cx_grow(&names->items, &names->capacity, names->n + 1,
               sizeof *names->items)) {
    return false;
  }
  names->items[names->n] =
      (cx_hlo_name){ s, item, count, hash_of(names, s), 0 };
  link_in(names, names->n++);
  return true;
}

void cx_hlo_names_cut(cx_hlo_names *names, size_t n)
{
  while (names->n > n) {
    const cx_hlo_name *name = &names->items[--names->n];
    names->buckets[name->hash & (names->n_buckets - 1)] = name->next;
  }
}
