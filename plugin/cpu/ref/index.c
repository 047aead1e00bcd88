// ref/index: reading and writing at computed indices.
//
// Names are the specification's. Gather and scatter share how an index vector
// addresses the operand: operand dimension index_map[k] starts at its k-th
// number, a batching dimension at the position in the indices, and the others
// at 0.
#include <string.h>

#include "ref/inner.h"

static int64_t clamped(int64_t v, int64_t most)
{
  return v < 0 ? 0 : v > most ? most : v;
}

// Where a part of these sizes begins in x: start indices are moved inside.
static int64_t first_of(const cpu_ref_tensor *x, const cpu_ref_tensor *starts,
                        const int64_t *sizes, const int64_t *step)
{
  int64_t first = 0;
  for (size_t i = 0; i < x->type.rank; i++) {
    const int64_t most = x->type.dims[i] - sizes[i];
    first += clamped(cpu_ref_index_at(&starts[i], 0), most) * step[i];
  }
  return first;
}

calx_status *cpu_ref_dynamic_slice(const cpu_ref_call *c)
{
  int64_t from[CPU_REF_RANK];
  cpu_ref_strides(&c->in->type, from);
  cpu_ref_copy_strided(c, first_of(c->in, c->in + 1, c->out->type.dims, from),
                       from);
  return NULL;
}

static void copy_whole(const cpu_ref_tensor *from, const cpu_ref_tensor *to)
{
  size_t bytes = 0;
  if (from->data == to->data || !cpu_ref_bytes(&to->type, &bytes)) return;
  if (bytes != 0) memcpy(to->data, from->data, bytes);
}

calx_status *cpu_ref_dynamic_update_slice(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_type *update = &in[1].type;
  int64_t from[CPU_REF_RANK];
  int64_t to[CPU_REF_RANK];
  copy_whole(in, out);
  cpu_ref_strides(update, from);
  cpu_ref_strides(&out->type, to);
  const int64_t first = first_of(out, in + 2, update->dims, to);
  cpu_ref_copy(cx_hlo_elem_bytes(update->elem), update->rank, update->dims,
               cpu_ref_at(out, (size_t)first), to, in[1].data, from);
  return NULL;
}

// ---- index vectors ----

// How an index in the result of a gather, or in the updates of a scatter, leads
// to the operand.
typedef struct indexing {
  const cx_hlo_type *operand;
  const cpu_ref_tensor *indices;
  cx_hlo_ints window;  // the dimensions of the result that are the window's
  cx_hlo_ints operand_batch, indices_batch, index_map;
  int64_t index_vector_dim;
  size_t n_along;  // the dimensions of the operand that are the window's
  int64_t along[CPU_REF_RANK];
  int64_t step[CPU_REF_RANK], indices_step[CPU_REF_RANK];
  // Of one index: its numbers outside of the window and in it, and where the
  // window begins in the operand.
  int64_t batch[CPU_REF_RANK], in_window[CPU_REF_RANK], start[CPU_REF_RANK];
} indexing;

// `removed`: dimensions of the operand that the window does not have.
static void indexing_open(indexing *x, cx_hlo_ints removed)
{
  for (size_t i = 0; i < x->operand->rank; i++) {
    if (!cpu_ref_has(removed, (int64_t)i) &&
        !cpu_ref_has(x->operand_batch, (int64_t)i)) {
      x->along[x->n_along++] = (int64_t)i;
    }
  }
  cpu_ref_strides(x->operand, x->step);
  cpu_ref_strides(&x->indices->type, x->indices_step);
}

// Sets what belongs to the index `at`, of `rank` numbers.
static void indexing_find(indexing *x, const int64_t *at, size_t rank)
{
  const cx_hlo_type *indices = &x->indices->type;
  const int64_t v = x->index_vector_dim;
  size_t n_batch = 0, n_window = 0, k = 0;
  int64_t first = 0;
  for (size_t i = 0; i < rank; i++) {
    if (cpu_ref_has(x->window, (int64_t)i)) {
      x->in_window[n_window++] = at[i];
    } else {
      x->batch[n_batch++] = at[i];
    }
  }
  for (size_t i = 0; i < indices->rank; i++) {
    if ((int64_t)i != v) first += x->batch[k++] * x->indices_step[i];
  }
  for (size_t i = 0; i < x->operand->rank; i++) x->start[i] = 0;
  for (size_t i = 0; i < x->index_map.n; i++) {
    const bool vectors = v < (int64_t)indices->rank;
    const int64_t offset = vectors ? (int64_t)i * x->indices_step[v] : 0;
    x->start[x->index_map.v[i]] =
        cpu_ref_index_at(x->indices, (size_t)(first + offset));
  }
  for (size_t i = 0; i < x->operand_batch.n; i++) {
    const int64_t d = x->indices_batch.v[i];
    x->start[x->operand_batch.v[i]] = x->batch[d > v ? d - 1 : d];
  }
}

// ---- gather ----

calx_status *cpu_ref_do_gather(const cpu_ref_call *c, const int64_t *sizes)
{
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(c->op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const cpu_ref_tensor *x = c->in, *out = c->out;
  indexing index = { .operand = &x->type,
                     .indices = &c->in[1],
                     .window = g->offset,
                     .operand_batch = g->operand_batch,
                     .indices_batch = g->indices_batch,
                     .index_map = g->index_map,
                     .index_vector_dim = g->index_vector_dim };
  indexing_open(&index, g->collapsed);
  const size_t bytes = cx_hlo_elem_bytes(x->type.elem);
  // Along a last dimension of the window the start is the same: one row.
  const size_t rank = out->type.rank;
  const bool rows = rank != 0 && index.n_along != 0 &&
                    cpu_ref_has(g->offset, (int64_t)rank - 1);
  const int64_t row = rows ? out->type.dims[rank - 1] : 1;
  const int64_t row_step =
      rows ? index.step[index.along[index.n_along - 1]] : 1;
  const int64_t one = 1;
  int64_t at[CPU_REF_RANK] = { 0 };
  const size_t n = cpu_ref_count(out);
  for (size_t o = 0; o < n; o += (size_t)row) {
    indexing_find(&index, at, rank);
    int64_t from = 0;
    for (size_t i = 0; i < x->type.rank; i++) {
      from +=
          clamped(index.start[i], x->type.dims[i] - sizes[i]) * index.step[i];
    }
    for (size_t i = 0; i < index.n_along; i++) {
      from += index.in_window[i] * index.step[index.along[i]];
    }
    cpu_ref_copy(bytes, 1, &row, cpu_ref_at(out, o), &one,
                 cpu_ref_at(x, (size_t)from), &row_step);
    cpu_ref_next(rows ? rank - 1 : rank, out->type.dims, at);
  }
  return NULL;
}

calx_status *cpu_ref_gather(const cpu_ref_call *c)
{
  return cpu_ref_do_gather(c, cx_hlo_op_ints(c->op, CX_HLO_A_SLICE_SIZES).v);
}

// torch_index_select: result[b.., o.., i.., rest] = x[b.., o.., index[b..,
// i..], rest], where b are batch_dims dimensions and dim is replaced by the
// index's.
calx_status *cpu_ref_index_select(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cpu_ref_tensor *x = &in[0];
  const cpu_ref_tensor *index = &in[1];
  const int64_t rank = (int64_t)x->type.rank;
  int64_t dim = cx_hlo_op_int(c->op, CX_HLO_A_DIM);
  int64_t b = cx_hlo_op_int(c->op, CX_HLO_A_BATCH_DIMS);
  if (dim < 0) dim += rank;
  if (b < 0) b += (int64_t)index->type.rank;
  if (b < 0 || b > (int64_t)index->type.rank || dim < b || dim >= rank ||
      out->type.rank + 1 + (size_t)b != x->type.rank + index->type.rank) {
    return cpu_ref_bad(c->op, CALX_INVALID_ARGUMENT, "%s at %s is not %s",
                       CPU_REF_SHAPE(x), CPU_REF_SHAPE(index),
                       CPU_REF_SHAPE(out));
  }
  const int64_t extra = (int64_t)index->type.rank - b;
  const size_t bytes = cx_hlo_elem_bytes(x->type.elem);
  int64_t x_step[CPU_REF_RANK];
  int64_t i_step[CPU_REF_RANK];
  int64_t at[CPU_REF_RANK] = { 0 };
  cpu_ref_strides(&x->type, x_step);
  cpu_ref_strides(&index->type, i_step);
  const size_t n = cpu_ref_count(out);
  for (size_t o = 0; o < n; o++) {
    int64_t from = 0;
    int64_t which = 0;
    for (int64_t i = 0; i < dim; i++) {
      from += clamped(at[i], x->type.dims[i] - 1) * x_step[i];
    }
    for (int64_t i = 0; i < b; i++) which += at[i] * i_step[i];
    for (int64_t i = 0; i < extra; i++) which += at[dim + i] * i_step[b + i];
    for (int64_t i = dim + 1; i < rank; i++) {
      from += clamped(at[i + extra - 1], x->type.dims[i] - 1) * x_step[i];
    }
    const size_t n_index = cpu_ref_count(index);
    if (n_index == 0 || x->type.dims[dim] == 0) break;
    which = clamped(which, (int64_t)n_index - 1);
    from +=
        clamped(cpu_ref_index_at(index, (size_t)which), x->type.dims[dim] - 1) *
        x_step[dim];
    memcpy(cpu_ref_at(out, o), cpu_ref_at(x, (size_t)from), bytes);
    cpu_ref_next(out->type.rank, out->type.dims, at);
  }
  return NULL;
}

// ---- scatter ----

typedef struct scatter_state {
  cpu_ref_body body;
  indexing index;
  size_t n;  // inputs
  const cpu_ref_tensor *updates, *out;
  const void **args;      // 2n: results' elements, updates'
  void **results;         // n
  unsigned char *memory;  // of them, 16 bytes an element
} scatter_state;

// Combines element `to` of the results with element `from` of the updates.
static calx_status *combine(scatter_state *s, size_t to, size_t from)
{
  const size_t bytes = cx_hlo_elem_bytes(s->out[0].type.elem);
  const size_t update_bytes = cx_hlo_elem_bytes(s->updates[0].type.elem);
  if (s->body.single == CX_HLO_OP_RETURN && bytes == update_bytes) {
    memcpy(cpu_ref_at(&s->out[0], to), cpu_ref_at(&s->updates[0], from), bytes);
    return NULL;
  }
  for (size_t i = 0; i < s->n; i++) {
    unsigned char *update = s->memory + 16 * (s->n + i);
    s->args[i] = cpu_ref_at(&s->out[i], to);
    s->args[s->n + i] = update;
    s->results[i] = s->memory + 16 * i;
    cpu_ref_convert(s->updates[i].type.elem, cpu_ref_at(&s->updates[i], from),
                    cpu_ref_body_elem(&s->body, s->n + i), update, 1);
  }
  CALX_TRY(cpu_ref_body_run(&s->body, s->args, s->results, 1));
  for (size_t i = 0; i < s->n; i++) {
    memcpy(cpu_ref_at(&s->out[i], to), s->results[i],
           cx_hlo_elem_bytes(s->out[i].type.elem));
  }
  return NULL;
}

static calx_status *scatter_all(scatter_state *s)
{
  indexing *x = &s->index;
  const cx_hlo_type *update = &s->updates[0].type;
  int64_t at[CPU_REF_RANK] = { 0 };
  const size_t n = cpu_ref_count(&s->updates[0]);
  for (size_t u = 0; u < n; u++) {
    if (u % 4096 == 4095) CALX_TRY(cpu_ref_interrupted(s->body.machine));
    indexing_find(x, at, update->rank);
    int64_t to = 0;
    bool inside = true;
    for (size_t i = 0; i < x->n_along; i++) {
      int64_t *v = &x->start[x->along[i]];
      inside = inside && !__builtin_add_overflow(*v, x->in_window[i], v);
    }
    for (size_t i = 0; i < x->operand->rank && inside; i++) {
      inside = x->start[i] >= 0 && x->start[i] < x->operand->dims[i];
      if (inside) to += x->start[i] * x->step[i];
    }
    if (inside) CALX_TRY(combine(s, (size_t)to, u));
    cpu_ref_next(update->rank, update->dims, at);
  }
  return NULL;
}

static calx_status *scatter_into(scatter_state *s, const cpu_ref_call *c)
{
  const cx_hlo_scatter_numbers *d =
      cx_hlo_op_struct(c->op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS);
  for (size_t i = 0; i < s->n; i++) {
    const cpu_ref_tensor *from = &c->in[i], *to = &c->out[i];
    if (from->data == to->data) continue;
    cpu_ref_convert(from->type.elem, from->data, to->type.elem, to->data,
                    cpu_ref_count(from));
  }
  s->index = (indexing){ .operand = &c->out[0].type,
                         .indices = &c->in[s->n],
                         .window = d->window,
                         .operand_batch = d->operand_batch,
                         .indices_batch = d->indices_batch,
                         .index_map = d->index_map,
                         .index_vector_dim = d->index_vector_dim };
  indexing_open(&s->index, d->inserted);
  return scatter_all(s);
}

calx_status *cpu_ref_scatter(const cpu_ref_call *c)
{
  const size_t n = c->op->n_results;
  scatter_state s = { .n = n, .updates = c->in + n + 1, .out = c->out };
  cpu_ref_buffer *memory = NULL;
  CALX_TRY(cpu_ref_scratch(c, n, 32 + 3 * sizeof(void *), &memory));
  s.memory = memory->data;
  s.args = (const void **)(void *)(memory->data + 32 * n);
  s.results = (void **)(void *)(memory->data + 32 * n) + 2 * n;
  calx_status *status = cpu_ref_body_open(c, &c->op->regions[0], 1, &s.body);
  if (status == NULL) status = scatter_into(&s, c);
  cpu_ref_body_close(&s.body);
  cpu_ref_buffer_release(c->machine, memory);
  return status;
}
