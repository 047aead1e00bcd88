// spmd/partition: the pass over a program.
//
// The operations of each block are taken out and made again, in their order, on
// the parts. Regions are made before the operation that has them. A body of
// sdy.manual_computation is a device's program already, along its axes, and
// takes the operation's place.
#include <string.h>

#include "spmd/internal.h"
#include "spmd/spmd.h"
#include "spmd/write.h"

static bool is_manual(const cx_hlo_op *op)
{
  return cx_hlo_str_equal(op->name, "sdy.manual_computation");
}

static const cx_hlo_attr *extra(const cx_hlo_op *op, const char *name)
{
  return cx_hlo_named_attr(op->extra, op->n_extra, name);
}

bool cx_spmd_has_mesh(const cx_hlo_module *m)
{
  for (const cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    if (cx_hlo_str_equal(op->name, "sdy.mesh")) return true;
  }
  return false;
}

// ---- blocks ----

static calx_status *make_block(cx_spmd_state *s, cx_hlo_op *first);

static cx_hlo_value *whole(cx_spmd_state *s, const cx_hlo_value *v)
{
  cx_spmd_sharding none;
  if (!cx_spmd_sharding_new(&s->arena, s->want[v->number].rank, false, &none)) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return NULL;
  }
  return cx_spmd_reshard(s, s->local[v->number], &s->want[v->number], &none);
}

// Takes the operations out of the block, which becomes the place for new ones.
static calx_status *make_region(cx_spmd_state *s, cx_hlo_region *region)
{
  cx_hlo_block *block = region->first, *outside = s->b.block;
  if (block == NULL) return NULL;
  if (block->next != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "spmd: a region with more than one block");
  }
  cx_hlo_op *first = block->first;
  block->first = block->last = NULL;
  for (size_t i = 0; i < block->n_args; i++) {
    s->local[block->args[i].number] = &block->args[i];
  }
  s->b.block = block;
  calx_status *status = make_block(s, first);
  s->b.block = outside;
  return status;
}

static calx_status *make_op(cx_spmd_state *s, cx_hlo_op *op)
{
  int64_t device = -1;
  CALX_TRY(cx_spmd_find_device(s, op, &device));
  if (device >= 0) return cx_spmd_on_one_device(s, op, device);
  for (uint32_t i = 0; i < op->n_regions; i++) {
    CALX_TRY(make_region(s, &op->regions[i]));
  }
  cx_spmd_operation(s, op);
  return NULL;
}

static void make_constraint(cx_spmd_state *s, const cx_hlo_op *op)
{
  const uint32_t from = op->operands[0]->number, to = op->results[0].number;
  s->local[to] =
      cx_spmd_reshard(s, s->local[from], &s->want[from], &s->want[to]);
}

// ---- manual computations ----

// Only the manual axes: the others are not used inside.
static void keep_manual(cx_spmd_sharding *sharding, cx_spmd_axes manual)
{
  for (size_t d = 0; d < sharding->rank; d++) {
    sharding->dims[d] = cx_spmd_axes_in(sharding->dims[d], manual);
  }
  sharding->unreduced = cx_spmd_axes_in(sharding->unreduced, manual);
}

static calx_status *read_sides(cx_spmd_state *s, cx_hlo_op *op,
                               cx_spmd_sharding *in, cx_spmd_sharding *out,
                               cx_hlo_value **results)
{
  cx_spmd_axes manual = 0;
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = &op->results[i];
  CALX_TRY(cx_spmd_read_manual(&s->mesh, extra(op, "manual_axes"), &manual));
  CALX_TRY(cx_spmd_read_list(&s->mesh, &s->arena, extra(op, "in_shardings"),
                             op->operands, op->n_operands, in));
  CALX_TRY(cx_spmd_read_list(&s->mesh, &s->arena, extra(op, "out_shardings"),
                             results, op->n_results, out));
  for (uint32_t i = 0; i < op->n_operands; i++) keep_manual(&in[i], manual);
  for (uint32_t i = 0; i < op->n_results; i++) keep_manual(&out[i], manual);
  return NULL;
}

static calx_status *check_part(cx_spmd_state *s, const cx_hlo_value *outer,
                               const cx_spmd_sharding *split,
                               const cx_hlo_value *inner)
{
  if (outer->type.non_tensor != NULL) return NULL;
  const cx_hlo_type part = cx_spmd_local(s, &outer->type.tensor, split->dims);
  if (s->b.failed != NULL || cx_hlo_type_equal(&part, &inner->type.tensor)) {
    return NULL;
  }
  return cx_invalid("sdy.manual_computation: a part of %s is %s, found %s",
                    cx_hlo_shape(&outer->type.tensor).s, cx_hlo_shape(&part).s,
                    cx_hlo_shape(&inner->type.tensor).s);
}

static calx_status *make_manual(cx_spmd_state *s, cx_hlo_op *op)
{
  const size_t n = cx_hlo_op_n_types(op) + 1;
  cx_spmd_sharding *in = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n);
  cx_spmd_sharding *out = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n);
  cx_hlo_value **results = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, n);
  cx_hlo_block *body = op->n_regions == 1 ? op->regions[0].first : NULL;
  if (in == NULL || out == NULL || results == NULL) return cx_out_of_memory();
  if (body == NULL || body->last == NULL || body->n_args != op->n_operands ||
      body->last->n_operands != op->n_results) {
    return cx_invalid(
        "sdy.manual_computation: the body does not fit the operation");
  }
  CALX_TRY(read_sides(s, op, in, out, results));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const uint32_t number = op->operands[i]->number;
    CALX_TRY(check_part(s, op->operands[i], &in[i], &body->args[i]));
    s->local[body->args[i].number] =
        cx_spmd_reshard(s, s->local[number], &s->want[number], &in[i]);
  }
  const cx_hlo_op *end = body->last;
  CALX_TRY(make_block(s, body->first));
  for (uint32_t i = 0; i < op->n_results && s->b.failed == NULL; i++) {
    const uint32_t number = op->results[i].number;
    CALX_TRY(check_part(s, &op->results[i], &out[i], end->operands[i]));
    s->local[number] = cx_spmd_reshard(s, whole(s, end->operands[i]), &out[i],
                                       &s->want[number]);
  }
  return NULL;
}

static calx_status *make_block(cx_spmd_state *s, cx_hlo_op *first)
{
  for (cx_hlo_op *op = first, *next; op != NULL; op = next) {
    next = op->next;
    s->b.loc = op->loc;
    if (cx_hlo_str_equal(op->name, "sdy.return") ||
        op->kind == CX_HLO_OP_FUNC_RETURN) {
      continue;  // the operation around it, or the pass, makes it
    } else if (is_manual(op)) {
      CALX_TRY(make_manual(s, op));
    } else if (cx_spmd_is_identity(op)) {
      make_constraint(s, op);
    } else if (op->kind == CX_HLO_OP_CALL || op->kind == CX_HLO_OP_COMPOSITE) {
      return cx_error(CALX_INTERNAL, "spmd: a call that was not inlined");
    } else {
      CALX_TRY(make_op(s, op));
    }
    if (s->b.failed != NULL) return NULL;
  }
  return NULL;
}

// ---- the entry ----

// Parameters become parts. The whole types stay with the old values.
static calx_status *make_params(cx_spmd_state *s, cx_hlo_func *f)
{
  cx_hlo_block *body = f->body.first;
  cx_hlo_module *m = s->b.module;
  cx_hlo_any *types = CX_ARENA_ARRAY(&m->arena, cx_hlo_any, f->n_params + 1);
  cx_hlo_block *fresh = cx_hlo_block_new(m, &f->body, body->n_args);
  if (types == NULL || fresh == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < body->n_args; i++) {
    const uint32_t number = body->args[i].number;
    types[i] = body->args[i].type;
    if (types[i].non_tensor == NULL) {
      types[i].tensor =
          cx_spmd_local(s, &types[i].tensor, s->want[number].dims);
    }
    fresh->args[i].type = types[i];
    s->local[number] = &fresh->args[i];
  }
  f->params = types;
  f->body.first = f->body.last = fresh;
  s->b.block = fresh;
  return NULL;
}

static const cx_hlo_attr *result_sharding(const cx_hlo_func *f, size_t i)
{
  if (f->result_attrs == NULL) return NULL;
  return cx_hlo_named_attr(f->result_attrs[i].items, f->result_attrs[i].n,
                           "sdy.sharding");
}

// A parameter whose part has not the type of the result's gives it no memory.
static calx_status *drop_alias(cx_hlo_module *m, cx_hlo_func *f, size_t result)
{
  for (size_t p = 0; f->param_attrs != NULL && p < f->n_params; p++) {
    cx_hlo_named_list *list = &f->param_attrs[p];
    const cx_hlo_attr *attr =
        cx_hlo_named_attr(list->items, list->n, "tf.aliasing_output");
    if (attr != NULL && attr->kind == CX_HLO_ATTR_INT &&
        attr->as.integer == (int64_t)result &&
        !cx_hlo_any_equal(&f->params[p], &f->results[result])) {
      CALX_TRY(cx_spmd_drop_attr(m, list, "tf.aliasing_output"));
    }
  }
  return NULL;
}

// The parts' shapes are no longer those that the shardings split.
static calx_status *drop_shardings(cx_hlo_module *m, cx_hlo_func *f)
{
  for (size_t i = 0; f->param_attrs != NULL && i < f->n_params; i++) {
    CALX_TRY(cx_spmd_drop_attr(m, &f->param_attrs[i], "sdy.sharding"));
  }
  for (size_t i = 0; f->result_attrs != NULL && i < f->n_results; i++) {
    CALX_TRY(cx_spmd_drop_attr(m, &f->result_attrs[i], "sdy.sharding"));
  }
  return NULL;
}

static calx_status *make_results(cx_spmd_state *s, cx_hlo_func *f,
                                 const cx_hlo_op *end, cx_text *out)
{
  cx_hlo_module *m = s->b.module;
  const size_t n = end->n_operands;
  cx_hlo_any *types = CX_ARENA_ARRAY(&m->arena, cx_hlo_any, n + 1);
  cx_hlo_value **values = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, n + 1);
  if (types == NULL || values == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n && s->b.failed == NULL; i++) {
    const cx_hlo_value *v = end->operands[i];
    const cx_hlo_attr *attr = result_sharding(f, i);
    cx_spmd_sharding split = s->want[v->number];
    if (attr != NULL) {
      CALX_TRY(
          cx_spmd_read_sharding(&s->mesh, &s->arena, attr, &v->type, &split));
    }
    values[i] =
        cx_spmd_reshard(s, s->local[v->number], &s->want[v->number], &split);
    if (values[i] != NULL) types[i] = values[i]->type;
    cx_spmd_write(&s->mesh, &s->arena, &split, out);
  }
  cx_hlo_build_end(
      &s->b, cx_hlo_build_begin(&s->b, CX_HLO_OP_FUNC_RETURN, values, n, 0, 0));
  if (s->b.failed != NULL) return NULL;
  f->results = types;
  for (size_t i = 0; i < n; i++) CALX_TRY(drop_alias(m, f, i));
  return drop_shardings(m, f);
}

static calx_status *partition(cx_spmd_state *s, cx_hlo_func *f, cx_text *out)
{
  const cx_hlo_block *body = f->body.first;
  const size_t n = s->n_values;
  s->want = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n);
  s->local = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, n);
  s->rules = CX_ARENA_ARRAY(&s->arena, const cx_spmd_rule *, n);
  if (s->want == NULL || s->local == NULL || s->rules == NULL) {
    return cx_out_of_memory();
  }
  const cx_hlo_op *end = body->last;
  cx_hlo_op *first = body->first;
  CALX_TRY(cx_spmd_propagate(s, f));
  for (size_t i = 0; i < body->n_args; i++) {
    cx_spmd_write(&s->mesh, &s->arena, &s->want[body->args[i].number], out);
  }
  CALX_TRY(make_params(s, f));
  CALX_TRY(make_block(s, first));
  return make_results(s, f, end, out);
}

calx_status *cx_spmd_partition(cx_hlo_module *m, uint32_t n_partitions,
                               cx_text *out_shardings)
{
  cx_hlo_func *f = cx_hlo_entry(m);
  cx_spmd_state s = { .n_values = m->n_values + 1,
                      .n_partitions = n_partitions };
  if (f == NULL || f->body.first == NULL || f->body.first->last == NULL) {
    return NULL;  // the compiler says what is wrong
  }
  s.b.module = m;
  s.b.func = f;
  calx_status *status = cx_spmd_read_meshes(m, &s.arena, n_partitions, &s.mesh);
  if (status == NULL) status = partition(&s, f, out_shardings);
  if (status == NULL) {
    status = s.b.failed;
  } else {
    calx_status_free(s.b.failed);
  }
  m->others.first = m->others.last = NULL;  // meshes say nothing now
  cx_arena_free(&s.arena);
  return status;
}
