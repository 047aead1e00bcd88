// opt/edit: the walk that rewrites, and copies of operations.
#include "opt/edit.h"

#include <string.h>

#include "base/alloc.h"
#include "hlo/ops.h"

// ---- lists ----

void cpu_opt_unlink(cx_hlo_op *op)
{
  cx_hlo_block *block = op->block;
  if (op->previous == NULL) {
    block->first = op->next;
  } else {
    op->previous->next = op->next;
  }
  if (op->next == NULL) {
    block->last = op->previous;
  } else {
    op->next->previous = op->previous;
  }
  op->next = NULL;
  op->previous = NULL;
}

static void link_before(cx_hlo_op *op, cx_hlo_op *before)
{
  op->block = before->block;
  op->next = before;
  op->previous = before->previous;
  if (before->previous == NULL) {
    before->block->first = op;
  } else {
    before->previous->next = op;
  }
  before->previous = op;
}

// ---- the walk ----

// Makes the map large enough for all present values.
static bool grow_map(cpu_opt_walk *w)
{
  const size_t need = (size_t)w->b.module->n_values + 1;
  const size_t before = w->map_size;
  if (need <= before) return true;
  if (!cx_grow(&w->map, &w->map_size, need + need / 4, sizeof *w->map)) {
    return false;
  }
  memset(w->map + before, 0, (w->map_size - before) * sizeof(*w->map));
  return true;
}

cx_hlo_value *cpu_opt_resolve(const cpu_opt_walk *w, cx_hlo_value *v)
{
  while (v->number < w->map_size && w->map[v->number] != NULL) {
    v = w->map[v->number];
  }
  return v;
}

static void resolve_operands(cpu_opt_walk *w, cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    op->operands[i] = cpu_opt_resolve(w, op->operands[i]);
  }
}

void cpu_opt_replace_all(cpu_opt_walk *w, cx_hlo_op *op,
                         cx_hlo_value *const *values)
{
  w->erase = true;
  if (w->b.failed != NULL) return;
  if (!grow_map(w)) {
    cx_hlo_builder_fail(&w->b, cx_out_of_memory());
    return;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    cx_hlo_value *v = cpu_opt_resolve(w, values[i]);
    if (!cx_hlo_any_equal(&v->type, &op->results[i].type)) {
      const cx_hlo_str name = cpu_opt_name(op);
      cx_hlo_builder_fail(
          &w->b,
          cx_error(CALX_INTERNAL, "%.*s: %s was replaced by %s", (int)name.n,
                   name.s, cx_hlo_shape(&op->results[i].type.tensor).s,
                   cx_hlo_shape(&v->type.tensor).s));
      return;
    }
    w->map[op->results[i].number] = v;
  }
}

void cpu_opt_replace(cpu_opt_walk *w, cx_hlo_op *op, cx_hlo_value *value)
{
  cpu_opt_replace_all(w, op, &value);
}

void cpu_opt_erase(cpu_opt_walk *w, cx_hlo_op *op)
{
  (void)op;
  w->erase = true;
}

void cpu_opt_take_block(cpu_opt_walk *w, cx_hlo_block *block)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  while (block->first != end) {
    cx_hlo_op *op = block->first;
    cpu_opt_unlink(op);
    cx_hlo_op_append(&w->made, op);
  }
}

// Inserts what the visit made before its operation; returns the operation to
// visit next.
static cx_hlo_op *settle(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_op *first = w->made.first;
  while (w->made.first != NULL) {
    cx_hlo_op *made = w->made.first;
    cpu_opt_unlink(made);
    link_before(made, op);
  }
  cx_hlo_op *next = NULL;
  if (w->revisit && first != NULL) {
    next = cpu_opt_inner(first);
    w->changed = true;
  } else {
    next = cpu_opt_next(op);
  }
  if (w->erase) {
    if (next == op) next = cpu_opt_next(op);
    cpu_opt_unlink(op);
    w->changed = true;
  }
  return next;
}

static void *array(cpu_opt_walk *w, size_t n, size_t bytes)
{
  void *p = cx_arena_alloc_array(&w->b.module->arena, bytes, n + 1);
  if (p == NULL) cx_hlo_builder_fail(&w->b, cx_out_of_memory());
  return p;
}

int64_t *cpu_opt_list(cpu_opt_walk *w, size_t n)
{
  return array(w, n, sizeof(int64_t));
}

cx_hlo_value **cpu_opt_values(cpu_opt_walk *w, size_t n)
{
  return array(w, n, sizeof(cx_hlo_value *));
}

cx_hlo_ints cpu_opt_through(cpu_opt_walk *w, cx_hlo_ints p, cx_hlo_ints list)
{
  int64_t *moved = cpu_opt_list(w, list.n);
  if (moved == NULL) return list;
  for (size_t i = 0; i < list.n; i++) moved[i] = p.v[list.v[i]];
  return (cx_hlo_ints){ moved, list.n };
}

cx_hlo_ints cpu_opt_inverse(cpu_opt_walk *w, cx_hlo_ints p)
{
  int64_t *inverse = cpu_opt_list(w, p.n);
  if (inverse == NULL) return p;
  for (size_t i = 0; i < p.n; i++) inverse[p.v[i]] = (int64_t)i;
  return (cx_hlo_ints){ inverse, p.n };
}

calx_status *cpu_opt_walk_func(cx_hlo_module *m, cx_hlo_func *f,
                               cpu_opt_visit_fn *visit, void *user,
                               bool *changed)
{
  cpu_opt_walk w = { .user = user };
  w.b.module = m;
  w.b.func = f;
  calx_status *status = grow_map(&w) ? NULL : cx_out_of_memory();
  cx_hlo_op *op = cpu_opt_first(f->body.first);
  while (op != NULL && status == NULL) {
    w.b.block = &w.made;
    w.b.loc = op->loc;
    w.erase = false;
    w.revisit = false;
    resolve_operands(&w, op);
    status = visit(&w, op);
    if (status == NULL) {
      status = w.b.failed;
    } else {
      calx_status_free(w.b.failed);
    }
    w.b.failed = NULL;
    if (status == NULL) op = settle(&w, op);
  }
  if (w.changed) *changed = true;
  cx_free(w.map);
  return status;
}

// ---- copies ----

static void copy_attrs(cx_hlo_op *to, const cx_hlo_op *op)
{
  const size_t n = cx_hlo_op_info_of(op->kind)->n_attrs;
  for (size_t i = 0; i < n; i++) to->attrs[i] = op->attrs[i];
}

void cpu_opt_keep_attr(cx_hlo_builder *b, cx_hlo_op *to, const cx_hlo_op *op,
                       cx_hlo_attr_id id)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, id);
  if (attr != NULL) cx_hlo_build_attr(b, to, id, attr);
}

cx_hlo_value *cpu_opt_broadcast(cx_hlo_builder *b, cx_hlo_value *x,
                                const cx_hlo_type *to, const int64_t *dims)
{
  return cx_hlo_broadcast_in_dim(b, x, to->dims, to->rank, dims);
}

cx_hlo_op *cpu_opt_begin_like(cx_hlo_builder *b, const cx_hlo_op *op,
                              cx_hlo_value *const *operands)
{
  cx_hlo_op *r =
      cx_hlo_build_begin(b, op->kind, operands, op->n_operands, 1, 0);
  if (r != NULL) copy_attrs(r, op);
  return r;
}

cx_hlo_op *cpu_opt_copy_op(cx_hlo_module *m, const cx_hlo_op *op,
                           cx_hlo_value **map)
{
  cx_hlo_op *copy =
      cx_hlo_op_new(m, op->kind, op->n_operands, op->n_results, op->n_regions);
  if (copy == NULL) return NULL;
  copy->name = op->name;
  copy->extra = op->extra;
  copy->n_extra = op->n_extra;
  copy->loc = op->loc;
  copy_attrs(copy, op);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    cx_hlo_value *to = map[op->operands[i]->number];
    copy->operands[i] = to == NULL ? op->operands[i] : to;
  }
  for (uint32_t i = 0; i < op->n_results; i++) {
    copy->results[i].type = op->results[i].type;
    map[op->results[i].number] = &copy->results[i];
  }
  return copy;
}

// Gives the copy empty blocks with the arguments of op's, which it maps.
static bool copy_blocks(cx_hlo_module *m, const cx_hlo_op *op, cx_hlo_op *copy,
                        cx_hlo_value **map)
{
  for (uint32_t r = 0; r < op->n_regions; r++) {
    const cx_hlo_block *from = op->regions[r].first;
    if (from == NULL) continue;
    cx_hlo_block *to = cx_hlo_block_new(m, &copy->regions[r], from->n_args);
    if (to == NULL) return false;
    for (size_t i = 0; i < from->n_args; i++) {
      to->args[i].type = from->args[i].type;
      map[from->args[i].number] = &to->args[i];
    }
  }
  return true;
}

// The first region from `r` on that has operations; n_regions: none.
static size_t filled_region(const cx_hlo_op *op, size_t r)
{
  while (r < op->n_regions && (op->regions[r].first == NULL ||
                               op->regions[r].first->first == NULL)) {
    r++;
  }
  return r;
}

bool cpu_opt_copy_block(cx_hlo_module *m, const cx_hlo_block *block,
                        cx_hlo_block *to, cx_hlo_value **map)
{
  const cx_hlo_op *end = cx_hlo_terminator(block);
  const cx_hlo_op *op = block->first;
  while (op != NULL && op != end) {
    cx_hlo_op *copy = cpu_opt_copy_op(m, op, map);
    if (copy == NULL || !copy_blocks(m, op, copy, map)) return false;
    cx_hlo_op_append(to, copy);
    size_t r = filled_region(op, 0);
    // Out, until there is a region to enter or a next operation.
    while (r == op->n_regions && op->next == NULL && op->block != block) {
      const cx_hlo_region *region = op->block->region;
      op = region->op;
      copy = to->region->op;
      to = copy->block;
      r = filled_region(op, (size_t)(region - op->regions) + 1);
    }
    if (r < op->n_regions) {
      to = copy->regions[r].first;
      op = op->regions[r].first->first;
    } else {
      op = op->next;
    }
  }
  return true;
}

// ---- all operations ----

bool cpu_opt_any(const cx_hlo_func *f, cpu_opt_question *is_so)
{
  const cx_hlo_op *op = cpu_opt_first(f->body.first);
  while (op != NULL && !is_so(op)) op = cpu_opt_next(op);
  return op != NULL;
}

uint32_t *cpu_opt_uses(const cx_hlo_module *m, cx_hlo_func *f)
{
  uint32_t *uses = cx_calloc((size_t)m->n_values + 1, sizeof *uses);
  if (uses == NULL) return NULL;
  for (cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
       op = cpu_opt_next(op)) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
      uses[op->operands[i]->number]++;
    }
  }
  return uses;
}
