// ref/reduce: reduce and map.
//
// A body of one operation (a sum, a maximum …) is done on numbers: in double,
// in 64 bits, in double parts, rounded to the result's type at the end. Any
// other body is run on the elements in the order of their indices, many results
// at once.
#include <string.h>

#include "ref/contract.h"

// ---- one operation ----

// acc[i] = acc[i] op v[i]
static void combine(cx_hlo_op_kind kind, cx_hlo_elem e, void *acc,
                    const void *v, size_t n)
{
  switch (cpu_ref_class_of(e)) {
    case CPU_REF_INT: cpu_ref_ints(kind, e, acc, v, acc, n); break;
    case CPU_REF_REAL: cpu_ref_reals(kind, acc, v, acc, n); break;
    case CPU_REF_COMPLEX: cpu_ref_complexes(kind, acc, v, acc, n); break;
  }
}

// All of v into one number: halves are laid on one another. The order is the
// implementation's choice, and pairs round less than a row.
static void collapse(cx_hlo_op_kind kind, cx_hlo_elem e, void *acc, void *v,
                     size_t n)
{
  const size_t bytes = cpu_ref_number_bytes(cpu_ref_class_of(e));
  while (n > 1) {
    const size_t half = n / 2;
    combine(kind, e, v, (char *)v + (n - half) * bytes, half);
    n -= half;
  }
  combine(kind, e, acc, v, 1);
}

typedef struct reduction {
  cx_hlo_op_kind kind;
  cx_hlo_elem from, to;
  const char *data;
  char *acc;
} reduction;

// n elements at `at`, all into acc[to] or each into its own.
static void add_row(const reduction *r, int64_t at, int64_t n, int64_t to,
                    bool all)
{
  union {
    int64_t i[CPU_REF_CHUNK];
    double r[CPU_REF_CHUNK];
    double complex c[CPU_REF_CHUNK];
  } v;
  const cpu_ref_class class = cpu_ref_class_of(r->to);
  const int64_t bytes = (int64_t)cpu_ref_number_bytes(class);
  const int64_t size = (int64_t)cx_hlo_elem_bytes(r->from);
  for (int64_t i = 0; i < n; i += CPU_REF_CHUNK) {
    const size_t k = (size_t)(n - i < CPU_REF_CHUNK ? n - i : CPU_REF_CHUNK);
    cpu_ref_load_numbers(class, r->from, r->data + (at + i) * size, k, &v);
    if (all) {
      collapse(r->kind, r->to, r->acc + to * bytes, &v, k);
    } else {
      combine(r->kind, r->to, r->acc + (to + i) * bytes, &v, k);
    }
  }
}

// Walks the operand row by row; `step` is how the result's index moves, 0
// along reduced dimensions.
static void reduce_rows(const reduction *r, const cx_hlo_type *x,
                        const int64_t *step)
{
  int64_t at[CPU_REF_RANK] = { 0 };
  const size_t outer = x->rank == 0 ? 0 : x->rank - 1;
  const int64_t n = x->rank == 0 ? 1 : x->dims[outer];
  const bool all = x->rank == 0 || step[outer] == 0;
  for (int64_t row = 0;; row++) {
    int64_t to = 0;
    for (size_t i = 0; i < outer; i++) to += at[i] * step[i];
    add_row(r, row * n, n, to, all);
    if (!cpu_ref_next(outer, x->dims, at)) return;
  }
}

static void result_steps(const cx_hlo_op *op, const cx_hlo_type *x,
                         const cx_hlo_type *out, int64_t *step)
{
  const cx_hlo_ints over = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  int64_t own[CPU_REF_RANK];
  size_t k = 0;
  cpu_ref_strides(out, own);
  for (size_t i = 0; i < x->rank; i++) {
    const bool reduced = cpu_ref_has(over, (int64_t)i);
    step[i] = reduced ? 0 : own[k];
    k += !reduced;
  }
}

static calx_status *reduce_single(cpu_ref_machine *m, const cx_hlo_op *op,
                                  cx_hlo_op_kind kind, const cpu_ref_tensor *in,
                                  const cpu_ref_tensor *init,
                                  const cpu_ref_tensor *out)
{
  const cx_hlo_elem e = out->type.elem;
  const cpu_ref_class class = cpu_ref_class_of(e);
  const size_t n = cpu_ref_count(out);
  const size_t bytes = cpu_ref_number_bytes(class);
  int64_t step[CPU_REF_RANK];
  cpu_ref_buffer *acc = NULL;
  if (n == 0) return NULL;
  CALX_TRY(cpu_ref_scratch(m, op, n, bytes, &acc));
  cpu_ref_load_numbers(class, init->type.elem, init->data, 1, acc->data);
  cpu_ref_fill(bytes, acc->data + bytes, n - 1, acc->data);
  if (cpu_ref_count(&in[0]) != 0) {
    const reduction r = { kind, in[0].type.elem, e, in[0].data,
                          (char *)acc->data };
    result_steps(op, &in[0].type, &out->type, step);
    reduce_rows(&r, &in[0].type, step);
  }
  cpu_ref_store_numbers(class, e, out->data, n, acc->data);
  cpu_ref_buffer_release(m, acc);
  return NULL;
}

// ---- any body ----

// The inputs in the order [reduced][kept], in the body's types, and pairs of
// accumulators: a body may return its arguments crosswise.
typedef struct general {
  cpu_ref_body body;
  size_t n;                 // inputs
  size_t kept, over;        // results, and elements that go into each
  cpu_ref_buffer **sorted;  // n
  unsigned char *acc[2];    // n x CPU_REF_CHUNK x 16 bytes
  const void **args;        // 2n
  void **results;           // n
} general;

static calx_status *sort_input(cpu_ref_machine *m, const cx_hlo_op *op,
                               const cpu_ref_tensor *x, cx_hlo_elem to,
                               cpu_ref_buffer **out)
{
  const cx_hlo_ints over = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const size_t rank = x->type.rank;
  const size_t n = cpu_ref_count(x);
  int64_t own[CPU_REF_RANK];
  int64_t dims[CPU_REF_RANK];
  int64_t from[CPU_REF_RANK];
  int64_t step[CPU_REF_RANK];
  size_t k = 0;
  cpu_ref_strides(&x->type, own);
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < rank; i++) {
      if (cpu_ref_has(over, (int64_t)i) != (pass == 0)) continue;
      dims[k] = x->type.dims[i];
      from[k++] = own[i];
    }
  }
  const cx_hlo_type ordered = { x->type.elem, rank, dims };
  cpu_ref_strides(&ordered, step);
  cpu_ref_buffer *raw = NULL;
  CALX_TRY(cpu_ref_scratch(m, op, n, cx_hlo_elem_bytes(x->type.elem), &raw));
  cpu_ref_copy(cx_hlo_elem_bytes(x->type.elem), rank, dims, raw->data, step,
               x->data, from);
  *out = raw;
  if (to == x->type.elem) return NULL;
  calx_status *status = cpu_ref_scratch(m, op, n, cx_hlo_elem_bytes(to), out);
  if (status == NULL) {
    cpu_ref_convert(x->type.elem, raw->data, to, (*out)->data, n);
  }
  cpu_ref_buffer_release(m, raw);
  return status;
}

static void start_chunk(general *g, const cpu_ref_tensor *inits, size_t k)
{
  for (size_t i = 0; i < g->n; i++) {
    const cx_hlo_elem e = cpu_ref_body_elem(&g->body, i);
    unsigned char *acc = g->acc[0] + i * 16 * CPU_REF_CHUNK;
    cpu_ref_convert(inits[i].type.elem, inits[i].data, e, acc, 1);
    const size_t bytes = cx_hlo_elem_bytes(e);
    cpu_ref_fill(bytes, acc + bytes, k - 1, acc);
  }
}

// Results [at, at + k).
static calx_status *reduce_chunk(general *g, const cpu_ref_tensor *inits,
                                 const cpu_ref_tensor *out, size_t at, size_t k)
{
  start_chunk(g, inits, k);
  size_t now = 0;
  for (size_t j = 0; j < g->over; j++) {
    if (j % 4096 == 4095) CALX_TRY(cpu_ref_interrupted(g->body.machine));
    for (size_t i = 0; i < g->n; i++) {
      const size_t bytes = cx_hlo_elem_bytes(cpu_ref_body_elem(&g->body, i));
      g->args[i] = g->acc[now] + i * 16 * CPU_REF_CHUNK;
      g->args[g->n + i] = g->sorted[i]->data + (j * g->kept + at) * bytes;
      g->results[i] = g->acc[1 - now] + i * 16 * CPU_REF_CHUNK;
    }
    CALX_TRY(cpu_ref_body_run(&g->body, g->args, g->results, k));
    now = 1 - now;
  }
  for (size_t i = 0; i < g->n; i++) {
    const size_t bytes = cx_hlo_elem_bytes(out[i].type.elem);
    memcpy((char *)out[i].data + at * bytes,
           g->acc[now] + i * 16 * CPU_REF_CHUNK, k * bytes);
  }
  return NULL;
}

static calx_status *reduce_general(cpu_ref_machine *m, const cx_hlo_op *op,
                                   general *g, const cpu_ref_tensor *in,
                                   const cpu_ref_tensor *out)
{
  for (size_t i = 0; i < g->n; i++) {
    CALX_TRY(sort_input(m, op, &in[i], cpu_ref_body_elem(&g->body, i),
                        &g->sorted[i]));
  }
  g->kept = cpu_ref_count(out);
  g->over = g->kept == 0 ? 0 : cpu_ref_count(in) / g->kept;
  for (size_t at = 0; at < g->kept; at += CPU_REF_CHUNK) {
    const size_t k =
        g->kept - at < CPU_REF_CHUNK ? g->kept - at : CPU_REF_CHUNK;
    CALX_TRY(reduce_chunk(g, in + g->n, out, at, k));
  }
  return NULL;
}

static calx_status *with_memory(cpu_ref_machine *m, const cx_hlo_op *op,
                                general *g, const cpu_ref_tensor *in,
                                const cpu_ref_tensor *out)
{
  cpu_ref_buffer *memory = NULL;
  cpu_ref_buffer *lists = NULL;
  const size_t acc = g->n * 16 * CPU_REF_CHUNK;
  CALX_TRY(cpu_ref_scratch(m, op, 2, acc, &memory));
  calx_status *status =
      cpu_ref_scratch(m, op, 4 * g->n, sizeof(void *), &lists);
  if (status == NULL) {
    memset(lists->data, 0, 4 * g->n * sizeof(void *));
    void **at = (void **)(void *)lists->data;
    g->sorted = (cpu_ref_buffer **)at;
    g->args = (const void **)(at + g->n);
    g->results = at + 3 * g->n;
    g->acc[0] = memory->data;
    g->acc[1] = memory->data + acc;
    status = reduce_general(m, op, g, in, out);
    for (size_t i = 0; i < g->n; i++) cpu_ref_buffer_release(m, g->sorted[i]);
  }
  cpu_ref_buffer_release(m, lists);
  cpu_ref_buffer_release(m, memory);
  return status;
}

calx_status *cpu_ref_reduce(cpu_ref_machine *m, const cx_hlo_op *op,
                            const cpu_ref_tensor *in, const cpu_ref_tensor *out)
{
  if (cpu_ref_all_single(op)) {
    const cx_hlo_block *block = op->regions[0].first;
    for (uint32_t i = 0; i < op->n_results; i++) {
      CALX_TRY(reduce_single(m, op, cpu_ref_single(block, i), &in[i],
                             &in[op->n_results + i], &out[i]));
    }
    return NULL;
  }
  general g = { .n = op->n_results };
  calx_status *status =
      cpu_ref_body_open(m, op, &op->regions[0], CPU_REF_CHUNK, &g.body);
  if (status == NULL) status = with_memory(m, op, &g, in, out);
  cpu_ref_body_close(&g.body);
  return status;
}

// ---- map ----

static calx_status *map_all(cpu_ref_body *body, const cpu_ref_tensor *in,
                            const cpu_ref_tensor *out, const void **args)
{
  const size_t n = cpu_ref_count(out);
  const size_t bytes = cx_hlo_elem_bytes(out->type.elem);
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    CALX_TRY(cpu_ref_interrupted(body->machine));
    for (size_t i = 0; i < body->block->n_args; i++) {
      args[i] =
          (const char *)in[i].data + at * cx_hlo_elem_bytes(in[i].type.elem);
    }
    void *to = (char *)out->data + at * bytes;
    CALX_TRY(cpu_ref_body_run(body, args, &to, k));
  }
  return NULL;
}

calx_status *cpu_ref_map(cpu_ref_machine *m, const cx_hlo_op *op,
                         const cpu_ref_tensor *in, const cpu_ref_tensor *out)
{
  cpu_ref_body body;
  const void **args = cx_calloc((size_t)op->n_operands + 1, sizeof *args);
  if (args == NULL) return cx_out_of_memory();
  calx_status *status =
      cpu_ref_body_open(m, op, &op->regions[0], CPU_REF_CHUNK, &body);
  if (status == NULL) status = map_all(&body, in, out, args);
  cpu_ref_body_close(&body);
  cx_free(args);
  return status;
}
