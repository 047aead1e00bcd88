// hlo/names: a table of names with scopes, for values and aliases.
//
// Leaving a scope removes the names of the scope, the newest first. Chains have
// the newest name first, so removing a name is popping it.
#ifndef CX_HLO_NAMES_H
#define CX_HLO_NAMES_H

#include "hlo/module.h"

typedef struct cx_hlo_name {
  cx_hlo_str text;  // lives as long as the text that was read
  void *item;
  size_t count;  // of values that share the name: %a:2
  uint32_t hash;
  uint32_t next;  // in the bucket: index + 1; 0: the last
} cx_hlo_name;

typedef struct cx_hlo_names {
  cx_hlo_name *items;
  size_t n, capacity;
  uint32_t *buckets;
  size_t n_buckets;
  uint64_t seed;  // set by the user; a text cannot be made to collide
} cx_hlo_names;

void cx_hlo_names_free(cx_hlo_names *names);
const cx_hlo_name *cx_hlo_names_find(const cx_hlo_names *names, cx_hlo_str s);
bool cx_hlo_names_add(cx_hlo_names *names, cx_hlo_str s, void *item,
                      size_t count);  // false: no memory
void cx_hlo_names_cut(cx_hlo_names *names,
                      size_t n);  // removes the newest, until n are left

#endif
