// hlo/module: makes and reads programs.
#include "hlo/module.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "hlo/number.h"
#include "hlo/ops.h"

cx_hlo_module *cx_hlo_module_new(void)
{
  return cx_calloc(1, sizeof(cx_hlo_module));
}

void cx_hlo_module_free(cx_hlo_module *m)
{
  if (m == NULL) return;
  cx_arena_free(&m->arena);
  cx_free(m);
}

cx_hlo_str cx_hlo_str_copy(cx_hlo_module *m, const char *s, size_t n)
{
  const char *copy = cx_arena_strndup(&m->arena, s, n);
  return (cx_hlo_str){ copy, copy == NULL ? 0 : n };
}

const int64_t *cx_hlo_ints_copy(cx_hlo_module *m, const int64_t *v, size_t n)
{
  int64_t *copy = CX_ARENA_ARRAY(&m->arena, int64_t, n + 1);
  if (copy != NULL && n > 0) memcpy(copy, v, n * sizeof *v);
  return copy;
}

static size_t bucket_of(const cx_hlo_module *m, cx_hlo_str name)
{
  const cx_hash h = cx_hash_bytes(name.s, name.n, 0);
  return (size_t)(h.low % m->n_buckets);
}

// Appends to the bucket, so that the first function of a name is found.
static void add_to_bucket(cx_hlo_module *m, cx_hlo_func *f)
{
  cx_hlo_func **at = &m->buckets[bucket_of(m, f->name)];
  while (*at != NULL) at = &(*at)->same_bucket;
  f->same_bucket = NULL;
  *at = f;
}

static bool grow_buckets(cx_hlo_module *m)
{
  const size_t n = m->n_buckets == 0 ? 16 : m->n_buckets * 4;
  cx_hlo_func **buckets = CX_ARENA_ARRAY(&m->arena, cx_hlo_func *, n);
  if (buckets == NULL) return false;
  m->buckets = buckets;
  m->n_buckets = n;
  for (cx_hlo_func *f = m->first; f != NULL; f = f->next) add_to_bucket(m, f);
  return true;
}

cx_hlo_func *cx_hlo_func_new(cx_hlo_module *m, cx_hlo_str name)
{
  cx_hlo_func *f = CX_ARENA_NEW(&m->arena, cx_hlo_func);
  if (f == NULL) return NULL;
  if (m->n_funcs == m->n_buckets && !grow_buckets(m)) return NULL;
  f->name = name;
  f->body.func = f;
  f->index = m->n_funcs++;
  if (m->last == NULL) {
    m->first = f;
  } else {
    m->last->next = f;
  }
  m->last = f;
  add_to_bucket(m, f);
  return f;
}

cx_hlo_block *cx_hlo_block_new(cx_hlo_module *m, cx_hlo_region *region,
                               size_t n_args)
{
  cx_hlo_block *block = CX_ARENA_NEW(&m->arena, cx_hlo_block);
  if (block == NULL) return NULL;
  block->args = CX_ARENA_ARRAY(&m->arena, cx_hlo_value, n_args);
  if (block->args == NULL) return NULL;
  for (size_t i = 0; i < n_args; i++) {
    block->args[i].block = block;
    block->args[i].index = (uint32_t)i;
    block->args[i].number = m->n_values++;
  }
  block->n_args = n_args;
  block->region = region;
  if (region->last == NULL) {
    region->first = block;
  } else {
    region->last->next = block;
  }
  region->last = block;
  return block;
}

// The operation and its arrays are one allocation, because a module has
// thousands of operations.
cx_hlo_op *cx_hlo_op_new(cx_hlo_module *m, cx_hlo_op_kind kind,
                         size_t n_operands, size_t n_results, size_t n_regions)
{
  const size_t n_attrs = cx_hlo_op_info_of(kind)->n_attrs;
  const size_t limit = (size_t)1 << 24;
  if (n_operands > limit || n_results > limit || n_regions > limit) return NULL;
  const size_t bytes = sizeof(cx_hlo_op) + n_results * sizeof(cx_hlo_value) +
                       n_regions * sizeof(cx_hlo_region) +
                       n_operands * sizeof(cx_hlo_value *) +
                       n_attrs * sizeof(cx_hlo_attr *);
  cx_hlo_op *op = cx_arena_alloc(&m->arena, bytes);
  if (op == NULL) return NULL;
  op->kind = kind;
  op->n_operands = (uint32_t)n_operands;
  op->n_results = (uint32_t)n_results;
  op->n_regions = (uint32_t)n_regions;
  op->results = (cx_hlo_value *)(op + 1);
  op->regions = (cx_hlo_region *)(op->results + n_results);
  op->operands = (cx_hlo_value **)(op->regions + n_regions);
  op->attrs = (const cx_hlo_attr **)(op->operands + n_operands);
  for (size_t i = 0; i < n_results; i++) {
    op->results[i].op = op;
    op->results[i].index = (uint32_t)i;
    op->results[i].number = m->n_values++;
  }
  for (size_t i = 0; i < n_regions; i++) op->regions[i].op = op;
  return op;
}

void cx_hlo_op_append(cx_hlo_block *block, cx_hlo_op *op)
{
  op->block = block;
  op->previous = block->last;
  if (block->last == NULL) {
    block->first = op;
  } else {
    block->last->next = op;
  }
  block->last = op;
}

// ---- reading ----

bool cx_hlo_str_equal(cx_hlo_str a, const char *s)
{
  size_t i = 0;
  while (i < a.n && s[i] != '\0' && a.s[i] == s[i]) i++;
  return i == a.n && s[i] == '\0';
}

bool cx_hlo_str_same(cx_hlo_str a, cx_hlo_str b)
{
  return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

cx_hlo_func *cx_hlo_func_find(const cx_hlo_module *m, cx_hlo_str name)
{
  if (m->n_buckets == 0) return NULL;
  cx_hlo_func *f = m->buckets[bucket_of(m, name)];
  while (f != NULL && !cx_hlo_str_same(f->name, name)) f = f->same_bucket;
  return f;
}

cx_hlo_func *cx_hlo_entry(const cx_hlo_module *m)
{
  cx_hlo_func *f = cx_hlo_func_find(m, (cx_hlo_str){ "main", 4 });
  return f == NULL && m->first == m->last ? m->first : f;
}

// The parser bounds the nesting of types, and so the depth of the recursion.
bool cx_hlo_any_equal(const cx_hlo_any *a, const cx_hlo_any *b)
{
  if (!cx_hlo_type_equal(&a->tensor, &b->tensor)) return false;
  if (a->non_tensor == b->non_tensor) return true;
  if (a->non_tensor == NULL || b->non_tensor == NULL) return false;
  const cx_hlo_non_tensor *x = a->non_tensor;
  const cx_hlo_non_tensor *y = b->non_tensor;
  if (x->kind != y->kind || x->elem != y->elem || x->n_parts != y->n_parts ||
      x->n_inputs != y->n_inputs || !cx_hlo_str_same(x->text, y->text)) {
    return false;
  }
  for (size_t i = 0; i < x->n_parts; i++) {
    if (!cx_hlo_any_equal(&x->parts[i], &y->parts[i])) return false;
  }
  return true;
}

cx_hlo_op *cx_hlo_terminator(const cx_hlo_block *block)
{
  cx_hlo_op *op = block->last;
  const bool is_return = op != NULL && (op->kind == CX_HLO_OP_RETURN ||
                                        op->kind == CX_HLO_OP_FUNC_RETURN);
  return is_return ? op : NULL;
}

static const cx_hlo_attr_rule *find_rule(const cx_hlo_op *op, cx_hlo_attr_id id,
                                         const cx_hlo_attr **out)
{
  const cx_hlo_op_info *info = cx_hlo_op_info_of(op->kind);
  *out = NULL;
  for (size_t i = 0; i < info->n_attrs; i++) {
    if (info->attrs[i].id == id) {
      *out = op->attrs[i];
      return &info->attrs[i];
    }
  }
  return NULL;
}

const cx_hlo_attr *cx_hlo_named_attr(const cx_hlo_named *items, size_t n,
                                     const char *name)
{
  for (size_t i = 0; i < n; i++) {
    if (cx_hlo_str_equal(items[i].name, name)) return items[i].attr;
  }
  return NULL;
}

const cx_hlo_attr *cx_hlo_op_attr(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = NULL;
  find_rule(op, id, &attr);
  return attr;
}

int64_t cx_hlo_op_int(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = NULL;
  const cx_hlo_attr_rule *rule = find_rule(op, id, &attr);
  if (attr != NULL) {
    return attr->kind == CX_HLO_ATTR_BOOL ? attr->as.flag : attr->as.integer;
  }
  return rule == NULL ? 0 : rule->fallback;
}

cx_hlo_ints cx_hlo_op_ints(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, id);
  return attr == NULL ? (cx_hlo_ints){ NULL, 0 } : attr->as.ints;
}

const void *cx_hlo_op_struct(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, id);
  return attr == NULL ? NULL : attr->as.fields;
}

const cx_hlo_conv_numbers *cx_hlo_op_conv(const cx_hlo_op *op)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, CX_HLO_A_CONV_DIMENSION_NUMBERS);
  return attr == NULL ? NULL : attr->as.conv;
}

bool cx_hlo_op_flag(const cx_hlo_op *op, cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, id);
  if (attr != NULL && attr->kind == CX_HLO_ATTR_UNIT) return true;
  return cx_hlo_op_int(op, id) != 0;
}

cx_hlo_str cx_hlo_op_callee(const cx_hlo_op *op)
{
  const bool composite = op->kind == CX_HLO_OP_COMPOSITE;
  return cx_hlo_op_attr(op,
                        composite ? CX_HLO_A_DECOMPOSITION : CX_HLO_A_CALLEE)
      ->as.text;
}

int64_t cx_hlo_elements_int(const cx_hlo_elements *e, size_t i)
{
  const cx_hlo_elem elem = e->type.tensor.elem;
  const size_t at = e->splat ? 0 : i * cx_hlo_elem_bytes(elem);
  return cx_hlo_load_int(elem, e->data + at);
}

// ---- reading ----

const cx_hlo_op *cx_hlo_block_combiner(const cx_hlo_block *block, size_t i)
{
  const cx_hlo_op *end = block->last;
  const cx_hlo_value *out = end->operands[i];
  const cx_hlo_value *x = &block->args[i];
  const cx_hlo_value *y = &block->args[end->n_operands + i];
  const cx_hlo_op *op = out->op;
  if (op == NULL || op->n_operands != 2 || out != &op->results[0]) return NULL;
  const bool both = (op->operands[0] == x && op->operands[1] == y) ||
                    (op->operands[0] == y && op->operands[1] == x);
  switch (op->kind) {
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_MULTIPLY:
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM:
    case CX_HLO_OP_AND:
    case CX_HLO_OP_OR:
    case CX_HLO_OP_XOR: return both ? op : NULL;
    default: return NULL;
  }
}
