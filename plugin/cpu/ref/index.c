// ref/index: reading and writing at computed indices.
//
// Names are the specification's. Gather and scatter share how an index vector
// addresses the operand: operand dimension index_map[k] starts at its k-th
// number, a batching dimension at the position in the indices, and the others
// at 0.
#include <string.h>

#include "ref/inner.h"

static char *at_of(const cpu_ref_tensor *t, int64_t i)
{
  return (char *)t->data + i * (int64_t)cx_hlo_elem_bytes(t->type.elem);
}

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

calx_status *cpu_ref_dynamic_slice(cpu_ref_machine *m, const cx_hlo_op *op,
                                   const cpu_ref_tensor *in,
                                   const cpu_ref_tensor *out)
{
  (void)m;
  (void)op;
  int64_t from[CPU_REF_RANK];
  int64_t to[CPU_REF_RANK];
  cpu_ref_strides(&in->type, from);
  cpu_ref_strides(&out->type, to);
  const int64_t first = first_of(in, in + 1, out->type.dims, from);
  cpu_ref_copy(cx_hlo_elem_bytes(in->type.elem), out->type.rank, out->type.dims,
               out->data, to, at_of(in, first), from);
  return NULL;
}

static void copy_whole(const cpu_ref_tensor *from, const cpu_ref_tensor *to)
{
  size_t bytes = 0;
  if (from->data == to->data || !cpu_ref_bytes(&to->type, &bytes)) return;
  if (bytes != 0) memcpy(to->data, from->data, bytes);
}

calx_status *cpu_ref_dynamic_update_slice(cpu_ref_machine *m,
                                          const cx_hlo_op *op,
                                          const cpu_ref_tensor *in,
                                          const cpu_ref_tensor *out)
{
  (void)m;
  (void)op;
  const cx_hlo_type *update = &in[1].type;
  int64_t from[CPU_REF_RANK];
  int64_t to[CPU_REF_RANK];
  copy_whole(in, out);
  cpu_ref_strides(update, from);
  cpu_ref_strides(&out->type, to);
  const int64_t first = first_of(out, in + 2, update->dims, to);
  cpu_ref_copy(cx_hlo_elem_bytes(update->elem), update->rank, update->dims,
               at_of(out, first), to, in[1].data, from);
  return NULL;
}

// ---- index vectors ----

typedef struct addressing {
  const cpu_ref_tensor *indices;
  cx_hlo_ints operand_batch, indices_batch, index_map;
  int64_t index_vector_dim;
  int64_t step[CPU_REF_RANK];  // of the indices
} addressing;

static void addressing_open(addressing *a, const cpu_ref_tensor *indices,
                            cx_hlo_ints operand_batch,
                            cx_hlo_ints indices_batch, cx_hlo_ints index_map,
                            int64_t index_vector_dim)
{
  a->indices = indices;
  a->operand_batch = operand_batch;
  a->indices_batch = indices_batch;
  a->index_map = index_map;
  a->index_vector_dim = index_vector_dim;
  cpu_ref_strides(&indices->type, a->step);
}

// The start in the operand (of `rank` dimensions) that belongs to the batch
// position `batch`, one number per dimension of the indices but the index
// vectors'.
static void start_of(const addressing *a, const int64_t *batch, size_t rank,
                     int64_t *start)
{
  const int64_t v = a->index_vector_dim;
  const bool vectors = v < (int64_t)a->indices->type.rank;
  int64_t at = 0;
  size_t k = 0;
  for (size_t i = 0; i < a->indices->type.rank; i++) {
    if ((int64_t)i != v) at += batch[k++] * a->step[i];
  }
  for (size_t i = 0; i < rank; i++) start[i] = 0;
  for (size_t i = 0; i < a->index_map.n; i++) {
    const int64_t offset = vectors ? (int64_t)i * a->step[v] : 0;
    start[a->index_map.v[i]] =
        cpu_ref_index_at(a->indices, (size_t)(at + offset));
  }
  for (size_t i = 0; i < a->operand_batch.n; i++) {
    const int64_t d = a->indices_batch.v[i];
    start[a->operand_batch.v[i]] = batch[d > v ? d - 1 : d];
  }
}

// Splits a position in the result (or update) into its batch part and its
// index in the window.
static void split(const int64_t *at, size_t rank, cx_hlo_ints window,
                  int64_t *batch, int64_t *in_window)
{
  size_t b = 0;
  size_t w = 0;
  for (size_t i = 0; i < rank; i++) {
    if (cpu_ref_has(window, (int64_t)i)) {
      in_window[w++] = at[i];
    } else {
      batch[b++] = at[i];
    }
  }
}

// The operand's dimensions that the window runs along.
static size_t window_dims(size_t rank, cx_hlo_ints gone, cx_hlo_ints batch,
                          int64_t *out)
{
  size_t n = 0;
  for (size_t i = 0; i < rank; i++) {
    if (!cpu_ref_has(gone, (int64_t)i) && !cpu_ref_has(batch, (int64_t)i)) {
      out[n++] = (int64_t)i;
    }
  }
  return n;
}

// ---- gather ----

calx_status *cpu_ref_do_gather(const cx_hlo_op *op, const cpu_ref_tensor *in,
                               const cpu_ref_tensor *out, const int64_t *sizes)
{
  const cx_hlo_gather_numbers *g =
      cx_hlo_op_struct(op, CX_HLO_A_GATHER_DIMENSION_NUMBERS);
  const cpu_ref_tensor *x = &in[0];
  const size_t rank = x->type.rank;
  const size_t bytes = cx_hlo_elem_bytes(x->type.elem);
  addressing a;
  addressing_open(&a, &in[1], g->operand_batch, g->indices_batch, g->index_map,
                  g->index_vector_dim);
  int64_t step[CPU_REF_RANK];
  int64_t at[CPU_REF_RANK] = { 0 };
  int64_t batch[CPU_REF_RANK] = { 0 };
  int64_t in_window[CPU_REF_RANK];
  int64_t start[CPU_REF_RANK];
  int64_t along[CPU_REF_RANK];
  const size_t n_along =
      window_dims(rank, g->collapsed, g->operand_batch, along);
  cpu_ref_strides(&x->type, step);
  // Along a last dimension of the window the start is the same: one row.
  const size_t out_rank = out->type.rank;
  const bool rows = out_rank != 0 && n_along != 0 &&
                    cpu_ref_has(g->offset, (int64_t)out_rank - 1);
  const int64_t run = rows ? out->type.dims[out_rank - 1] : 1;
  const int64_t one = 1;
  const int64_t run_step = rows ? step[along[n_along - 1]] : 1;
  const size_t n = cpu_ref_count(out);
  for (size_t o = 0; o < n; o += (size_t)run) {
    split(at, out_rank, g->offset, batch, in_window);
    start_of(&a, batch, rank, start);
    int64_t from = 0;
    for (size_t i = 0; i < rank; i++) {
      from += clamped(start[i], x->type.dims[i] - sizes[i]) * step[i];
    }
    for (size_t i = 0; i < n_along; i++) from += in_window[i] * step[along[i]];
    cpu_ref_copy(bytes, 1, &run, (char *)out->data + o * bytes, &one,
                 at_of(x, from), &run_step);
    cpu_ref_next(rows ? out_rank - 1 : out_rank, out->type.dims, at);
  }
  return NULL;
}

calx_status *cpu_ref_gather(cpu_ref_machine *m, const cx_hlo_op *op,
                            const cpu_ref_tensor *in, const cpu_ref_tensor *out)
{
  (void)m;
  return cpu_ref_do_gather(op, in, out,
                           cx_hlo_op_ints(op, CX_HLO_A_SLICE_SIZES).v);
}

// torch_index_select: result[b.., o.., i.., rest] = x[b.., o.., index[b..,
// i..], rest], where b are batch_dims dimensions and dim is replaced by the
// index's.
calx_status *cpu_ref_index_select(cpu_ref_machine *m, const cx_hlo_op *op,
                                  const cpu_ref_tensor *in,
                                  const cpu_ref_tensor *out)
{
  (void)m;
  const cpu_ref_tensor *x = &in[0];
  const cpu_ref_tensor *index = &in[1];
  const int64_t rank = (int64_t)x->type.rank;
  int64_t dim = cx_hlo_op_int(op, CX_HLO_A_DIM);
  int64_t b = cx_hlo_op_int(op, CX_HLO_A_BATCH_DIMS);
  if (dim < 0) dim += rank;
  if (b < 0) b += (int64_t)index->type.rank;
  if (b < 0 || b > (int64_t)index->type.rank || dim < b || dim >= rank ||
      out->type.rank + 1 + (size_t)b != x->type.rank + index->type.rank) {
    return cpu_ref_bad(op, CALX_INVALID_ARGUMENT, "%s at %s is not %s",
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
    memcpy((char *)out->data + o * bytes, at_of(x, from), bytes);
    cpu_ref_next(out->type.rank, out->type.dims, at);
  }
  return NULL;
}

// ---- scatter ----

// One element of the results is combined with one of the updates.
typedef struct meeting {
  cpu_ref_body body;
  const cx_hlo_op *op;
  size_t n;  // inputs
  const cpu_ref_tensor *updates, *out;
  const void **args;      // 2n: results' elements, updates'
  void **results;         // n
  unsigned char *memory;  // of them, 16 bytes an element
} meeting;

static calx_status *meet(meeting *w, int64_t to, size_t from)
{
  const size_t bytes = cx_hlo_elem_bytes(w->out[0].type.elem);
  const size_t update_bytes = cx_hlo_elem_bytes(w->updates[0].type.elem);
  if (w->body.single == CX_HLO_OP_RETURN && bytes == update_bytes) {
    memcpy(at_of(&w->out[0], to), (char *)w->updates[0].data + from * bytes,
           bytes);
    return NULL;
  }
  for (size_t i = 0; i < w->n; i++) {
    const cx_hlo_elem e = w->updates[i].type.elem;
    w->args[i] = at_of(&w->out[i], to);
    w->args[w->n + i] = w->memory + 16 * (w->n + i);
    w->results[i] = w->memory + 16 * i;
    cpu_ref_convert(e, at_of(&w->updates[i], (int64_t)from),
                    cpu_ref_body_elem(&w->body, w->n + i),
                    w->memory + 16 * (w->n + i), 1);
  }
  CALX_TRY(cpu_ref_body_run(&w->body, w->args, w->results, 1));
  for (size_t i = 0; i < w->n; i++) {
    memcpy(at_of(&w->out[i], to), w->results[i],
           cx_hlo_elem_bytes(w->out[i].type.elem));
  }
  return NULL;
}

static calx_status *scatter_all(meeting *w, const addressing *a,
                                const cx_hlo_scatter_numbers *s)
{
  const cx_hlo_type *x = &w->out[0].type;
  const cx_hlo_type *update = &w->updates[0].type;
  int64_t step[CPU_REF_RANK];
  int64_t at[CPU_REF_RANK] = { 0 };
  int64_t batch[CPU_REF_RANK] = { 0 };
  int64_t in_window[CPU_REF_RANK];
  int64_t start[CPU_REF_RANK];
  int64_t along[CPU_REF_RANK];
  const size_t n_along =
      window_dims(x->rank, s->inserted, s->operand_batch, along);
  cpu_ref_strides(x, step);
  const size_t n = cpu_ref_count(&w->updates[0]);
  for (size_t u = 0; u < n; u++) {
    if (u % 4096 == 4095) CALX_TRY(cpu_ref_interrupted(w->body.machine));
    split(at, update->rank, s->window, batch, in_window);
    start_of(a, batch, x->rank, start);
    int64_t to = 0;
    bool inside = true;
    for (size_t i = 0; i < n_along; i++) {
      int64_t *v = &start[along[i]];
      inside = inside && !__builtin_add_overflow(*v, in_window[i], v);
    }
    for (size_t i = 0; i < x->rank && inside; i++) {
      inside = start[i] >= 0 && start[i] < x->dims[i];
      if (inside) to += start[i] * step[i];
    }
    if (inside) CALX_TRY(meet(w, to, u));
    cpu_ref_next(update->rank, update->dims, at);
  }
  return NULL;
}

static calx_status *scatter_with(meeting *w, const cpu_ref_tensor *in)
{
  const cx_hlo_op *op = w->op;
  const size_t n = w->n;
  const cx_hlo_scatter_numbers *s =
      cx_hlo_op_struct(op, CX_HLO_A_SCATTER_DIMENSION_NUMBERS);
  for (size_t i = 0; i < n; i++) {
    if (in[i].data == w->out[i].data) continue;
    cpu_ref_convert(in[i].type.elem, in[i].data, w->out[i].type.elem,
                    w->out[i].data, cpu_ref_count(&in[i]));
  }
  addressing a;
  addressing_open(&a, &in[n], s->operand_batch, s->indices_batch, s->index_map,
                  s->index_vector_dim);
  return scatter_all(w, &a, s);
}

calx_status *cpu_ref_scatter(cpu_ref_machine *m, const cx_hlo_op *op,
                             const cpu_ref_tensor *in,
                             const cpu_ref_tensor *out)
{
  const size_t n = op->n_results;
  meeting w = { .op = op, .n = n, .updates = in + n + 1, .out = out };
  cpu_ref_buffer *memory = NULL;
  const size_t pointers = 3 * n * sizeof(void *);
  CALX_TRY(cpu_ref_scratch(m, op, 32 * n + pointers, 1, &memory));
  w.memory = memory->data;
  w.args = (const void **)(void *)(memory->data + 32 * n);
  w.results = (void **)(void *)(memory->data + 32 * n) + 2 * n;
  calx_status *status = cpu_ref_body_open(m, op, &op->regions[0], 1, &w.body);
  if (status == NULL) status = scatter_with(&w, in);
  cpu_ref_body_close(&w.body);
  cpu_ref_buffer_release(m, memory);
  return status;
}
