// opt/same: equality of attributes, operations and small regions.
#include "opt/same.h"

#include <string.h>

#include "base/hash.h"
#include "hlo/ops.h"
#include "opt/edit.h"

// Operations of a region; larger ones count as different, to bound the time.
#define MOST_IN_REGION 16

// ---- attributes ----

static bool same_elements(const cx_hlo_elements *a, const cx_hlo_elements *b)
{
  return a->splat == b->splat && a->size == b->size &&
         cx_hlo_any_equal(&a->type, &b->type) &&
         (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static bool same_fields(cx_hlo_struct which, const void *a, const void *b)
{
  const cx_hlo_struct_info info = cx_hlo_struct_info_of(which);
  for (size_t i = 0; i < info.n_fields; i++) {
    const cx_hlo_field *f = &info.fields[i];
    const char *x = (const char *)a + f->offset;
    const char *y = (const char *)b + f->offset;
    if (f->kind == CX_HLO_FIELD_INTS || f->kind == CX_HLO_FIELD_LIST) {
      cx_hlo_ints p;
      cx_hlo_ints q;
      memcpy(&p, x, sizeof p);
      memcpy(&q, y, sizeof q);
      if (!cpu_opt_same_ints(p, q)) return false;
    } else if (memcmp(x, y, sizeof(int64_t)) != 0) {
      return false;  // other fields are 8 bytes each
    }
  }
  return true;
}

static bool same_conv(const cx_hlo_conv_numbers *a,
                      const cx_hlo_conv_numbers *b)
{
  return a->input_batch == b->input_batch &&
         a->input_feature == b->input_feature &&
         a->kernel_input == b->kernel_input &&
         a->kernel_output == b->kernel_output &&
         a->output_batch == b->output_batch &&
         a->output_feature == b->output_feature &&
         cpu_opt_same_ints(a->input_spatial, b->input_spatial) &&
         cpu_opt_same_ints(a->kernel_spatial, b->kernel_spatial) &&
         cpu_opt_same_ints(a->output_spatial, b->output_spatial);
}

static bool same_list(const cx_hlo_attr *a, const cx_hlo_attr *b)
{
  if (a->as.list.n != b->as.list.n) return false;
  for (size_t i = 0; i < a->as.list.n; i++) {
    if (!cpu_opt_attr_same(a->as.list.items[i], b->as.list.items[i])) {
      return false;
    }
  }
  return true;
}

static bool same_dict(const cx_hlo_attr *a, const cx_hlo_attr *b)
{
  if (a->as.dict.n != b->as.dict.n) return false;
  for (size_t i = 0; i < a->as.dict.n; i++) {
    const cx_hlo_named *x = &a->as.dict.items[i];
    const cx_hlo_named *y = &b->as.dict.items[i];
    if (!cx_hlo_str_same(x->name, y->name) ||
        !cpu_opt_attr_same(x->attr, y->attr)) {
      return false;
    }
  }
  return true;
}

// Recurses as deeply as attributes nest, which the parser bounds.
bool cpu_opt_attr_same(const cx_hlo_attr *a, const cx_hlo_attr *b)
{
  if (a == b) return true;
  if (a == NULL || b == NULL) return false;
  if (a->kind != b->kind || a->elem != b->elem || a->which != b->which) {
    return false;
  }
  switch (a->kind) {
    case CX_HLO_ATTR_UNIT: return true;
    case CX_HLO_ATTR_BOOL: return a->as.flag == b->as.flag;
    case CX_HLO_ATTR_INT:
    case CX_HLO_ATTR_CHOICE: return a->as.integer == b->as.integer;
    case CX_HLO_ATTR_FLOAT: return a->as.bits == b->as.bits;
    case CX_HLO_ATTR_STRING:
    case CX_HLO_ATTR_SYMBOL:
    case CX_HLO_ATTR_TEXT: return cx_hlo_str_same(a->as.text, b->as.text);
    case CX_HLO_ATTR_TYPE: return cx_hlo_any_equal(&a->as.type, &b->as.type);
    case CX_HLO_ATTR_ELEMENTS:
      return same_elements(&a->as.elements, &b->as.elements);
    case CX_HLO_ATTR_ARRAY: return cpu_opt_same_ints(a->as.ints, b->as.ints);
    case CX_HLO_ATTR_LIST: return same_list(a, b);
    case CX_HLO_ATTR_DICT: return same_dict(a, b);
    case CX_HLO_ATTR_STRUCT:
      return same_fields((cx_hlo_struct)a->which, a->as.fields, b->as.fields);
    case CX_HLO_ATTR_CONV: return same_conv(a->as.conv, b->as.conv);
    default: return false;
  }
}

// ---- operations ----

// Compares everything but operands and regions.
static bool same_kind(const cx_hlo_op *a, const cx_hlo_op *b)
{
  if (a->kind != b->kind || a->n_operands != b->n_operands ||
      a->n_results != b->n_results || a->n_regions != b->n_regions ||
      a->n_extra != b->n_extra || !cx_hlo_str_same(a->name, b->name)) {
    return false;
  }
  for (uint32_t i = 0; i < a->n_results; i++) {
    if (!cx_hlo_any_equal(&a->results[i].type, &b->results[i].type)) {
      return false;
    }
  }
  const size_t n_attrs = cx_hlo_op_info_of(a->kind)->n_attrs;
  for (size_t i = 0; i < n_attrs; i++) {
    if (!cpu_opt_attr_same(a->attrs[i], b->attrs[i])) return false;
  }
  for (size_t i = 0; i < a->n_extra; i++) {
    if (!cx_hlo_str_same(a->extra[i].name, b->extra[i].name) ||
        !cpu_opt_attr_same(a->extra[i].attr, b->extra[i].attr)) {
      return false;
    }
  }
  return true;
}

// Whether x in block a corresponds to y in block b: both are the same argument,
// the same result of operations at the same position, or one value from
// outside.
static bool same_in(const cx_hlo_value *x, const cx_hlo_block *a,
                    const cx_hlo_value *y, const cx_hlo_block *b)
{
  if (x == y) return true;
  if (x->index != y->index) return false;
  if (x->op == NULL || y->op == NULL) {
    return x->op == y->op && x->block == a && y->block == b;
  }
  if (x->op->block != a || y->op->block != b) return false;
  const cx_hlo_op *p = x->op;
  const cx_hlo_op *q = y->op;
  while (p != NULL && q != NULL) {
    p = p->previous;
    q = q->previous;
  }
  return p == q;
}

bool cpu_opt_region_same(const cx_hlo_region *a, const cx_hlo_region *b)
{
  const cx_hlo_block *x = a->first;
  const cx_hlo_block *y = b->first;
  if (x == NULL || y == NULL) return x == y;
  if (x->n_args != y->n_args) return false;
  for (size_t i = 0; i < x->n_args; i++) {
    if (!cx_hlo_any_equal(&x->args[i].type, &y->args[i].type)) return false;
  }
  const cx_hlo_op *p = x->first;
  const cx_hlo_op *q = y->first;
  for (int n = 0; p != NULL && q != NULL; n++, p = p->next, q = q->next) {
    if (n == MOST_IN_REGION || p->n_regions != 0 || !same_kind(p, q)) {
      return false;
    }
    for (uint32_t i = 0; i < p->n_operands; i++) {
      if (!same_in(p->operands[i], x, q->operands[i], y)) return false;
    }
  }
  return p == q;
}

bool cpu_opt_same(const cx_hlo_op *a, const cx_hlo_op *b)
{
  if (!same_kind(a, b)) return false;
  for (uint32_t i = 0; i < a->n_operands; i++) {
    if (a->operands[i] != b->operands[i]) return false;
  }
  for (uint32_t i = 0; i < a->n_regions; i++) {
    if (!cpu_opt_region_same(&a->regions[i], &b->regions[i])) return false;
  }
  return true;
}

// ---- hash ----

static uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

static uint64_t mix_ints(uint64_t h, cx_hlo_ints list)
{
  for (size_t i = 0; i < list.n; i++) h = mix(h, (uint64_t)list.v[i]);
  return mix(h, list.n);
}

// Distinguishes the attributes of usual programs; others need the comparison.
static uint64_t mix_attr(uint64_t h, const cx_hlo_attr *a)
{
  if (a == NULL) return mix(h, 0);
  h = mix(h, (uint64_t)a->kind + 1);
  switch (a->kind) {
    case CX_HLO_ATTR_INT:
    case CX_HLO_ATTR_CHOICE: return mix(h, (uint64_t)a->as.integer);
    case CX_HLO_ATTR_BOOL: return mix(h, a->as.flag);
    case CX_HLO_ATTR_FLOAT: return mix(h, a->as.bits);
    case CX_HLO_ATTR_ARRAY: return mix_ints(h, a->as.ints);
    case CX_HLO_ATTR_ELEMENTS: {
      const size_t limit = 4096;
      const size_t n = a->as.elements.size;
      h = mix(h, n);
      return mix(
          h, cx_hash_bytes(a->as.elements.data, n < limit ? n : limit, 0).low);
    }
    default: return h;
  }
}

uint64_t cpu_opt_hash(const cx_hlo_op *op)
{
  uint64_t h = mix(0, (uint64_t)op->kind);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    h = mix(h, op->operands[i]->number);
  }
  const size_t n_attrs = cx_hlo_op_info_of(op->kind)->n_attrs;
  for (size_t i = 0; i < n_attrs; i++) h = mix_attr(h, op->attrs[i]);
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_type *t = &op->results[i].type.tensor;
    h = mix(h, (uint64_t)t->elem);
    h = mix_ints(h, (cx_hlo_ints){ t->dims, t->rank });
  }
  for (uint32_t i = 0; i < op->n_regions; i++) {
    const cx_hlo_block *block = op->regions[i].first;
    h = mix(h, block == NULL || block->first == NULL
                   ? 0
                   : (uint64_t)block->first->kind);
  }
  return h;
}
