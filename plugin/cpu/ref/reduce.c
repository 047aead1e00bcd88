// ref/reduce: reduce and map.
//
// A body of one operation (a sum, a maximum …) is done on numbers: in double,
// in 64 bits, in double parts, rounded to the result's type at the end. Any
// other body is run on the elements in the order of their indices, many results
// at once.
#include <string.h>

#include "ref/contract.h"

// ---- one operation ----

// All of v into one number: halves are laid on one another. The order is the
// implementation's choice, and pairs round less than a row.
static void collapse(cx_hlo_op_kind kind, cx_hlo_elem e, void *acc, void *v,
                     size_t n)
{
  const size_t bytes = cpu_ref_number_bytes(cpu_ref_class_of(e));
  while (n > 1) {
    const size_t half = n / 2;
    void *upper = (char *)v + (n - half) * bytes;
    cpu_ref_compute(kind, e, v, upper, v, half);
    n -= half;
  }
  cpu_ref_compute(kind, e, acc, v, acc, 1);
}

typedef struct fold_rows {
  cx_hlo_op_kind kind;
  cx_hlo_elem from, to;
  const char *data;
  char *acc;
} fold_rows;

// n elements at `at`, all into acc[to] or each into its own.
static void add_row(const fold_rows *r, int64_t at, int64_t n, int64_t to,
                    bool all)
{
  cpu_ref_chunk v;
  const cpu_ref_class class = cpu_ref_class_of(r->to);
  const int64_t bytes = (int64_t)cpu_ref_number_bytes(class);
  const int64_t size = (int64_t)cx_hlo_elem_bytes(r->from);
  for (int64_t i = 0; i < n; i += CPU_REF_CHUNK) {
    const size_t k = (size_t)(n - i < CPU_REF_CHUNK ? n - i : CPU_REF_CHUNK);
    cpu_ref_load_numbers(class, r->from, r->data + (at + i) * size, k, &v);
    if (all) {
      collapse(r->kind, r->to, r->acc + to * bytes, &v, k);
    } else {
      char *acc = r->acc + (to + i) * bytes;
      cpu_ref_compute(r->kind, r->to, acc, &v, acc, k);
    }
  }
}

// Walks the operand row by row; `step` is how the result's index moves, 0
// along reduced dimensions.
static void reduce_rows(const fold_rows *r, const cx_hlo_type *x,
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

static calx_status *reduce_single(const cpu_ref_call *c, uint32_t result)
{
  const cpu_ref_tensor *in = &c->in[result], *out = &c->out[result];
  const cpu_ref_tensor *init = &c->in[c->op->n_results + result];
  const cx_hlo_elem e = out->type.elem;
  const cpu_ref_class class = cpu_ref_class_of(e);
  const size_t n = cpu_ref_count(out);
  const size_t bytes = cpu_ref_number_bytes(class);
  int64_t step[CPU_REF_RANK];
  cpu_ref_buffer *acc = NULL;
  if (n == 0) return NULL;
  CALX_TRY(cpu_ref_scratch(c, n, bytes, &acc));
  cpu_ref_load_numbers(class, init->type.elem, init->data, 1, acc->data);
  cpu_ref_fill(bytes, acc->data + bytes, n - 1, acc->data);
  if (cpu_ref_count(in) != 0) {
    const fold_rows r = { cpu_ref_single(c->op->regions[0].first, result),
                          in->type.elem, e, in->data, (char *)acc->data };
    result_steps(c->op, &in->type, &out->type, step);
    reduce_rows(&r, &in->type, step);
  }
  cpu_ref_store_numbers(class, e, out->data, n, acc->data);
  cpu_ref_buffer_release(c->machine, acc);
  return NULL;
}

// ---- any body ----

calx_status *cpu_ref_fold_open(const cpu_ref_call *c, cpu_ref_fold *out)
{
  const size_t n = c->op->n_results;
  *out = (cpu_ref_fold){ .n = n, .out = c->out };
  CALX_TRY(cpu_ref_body_open(c, &c->op->regions[0], CPU_REF_CHUNK, &out->body));
  CALX_TRY(cpu_ref_scratch(
      c, n, 3 * CPU_REF_LANES_BYTES + 16 + 3 * sizeof(void *), &out->memory));
  out->acc[0] = out->memory->data;
  out->acc[1] = out->acc[0] + n * CPU_REF_LANES_BYTES;
  out->elements = out->acc[1] + n * CPU_REF_LANES_BYTES;
  out->inits = out->elements + n * CPU_REF_LANES_BYTES;
  out->args = (const void **)(void *)(out->inits + 16 * n);
  out->results = (void **)(void *)(out->inits + 16 * n) + 2 * n;
  for (size_t i = 0; i < n; i++) {
    const cpu_ref_tensor *init = &c->in[n + i];
    cpu_ref_convert(init->type.elem, init->data,
                    cpu_ref_body_elem(&out->body, i), out->inits + 16 * i, 1);
  }
  return NULL;
}

void cpu_ref_fold_close(cpu_ref_fold *f)
{
  cpu_ref_buffer_release(f->body.machine, f->memory);
  cpu_ref_body_close(&f->body);
}

// Results [at, at + k).
static calx_status *fold_chunk(cpu_ref_fold *f, cpu_ref_fold_load *load,
                               void *user, size_t at, size_t k)
{
  size_t now = 0;
  for (size_t i = 0; i < f->n; i++) {
    const size_t bytes = cx_hlo_elem_bytes(cpu_ref_body_elem(&f->body, i));
    cpu_ref_fill(bytes, f->acc[0] + i * CPU_REF_LANES_BYTES, k,
                 f->inits + 16 * i);
  }
  for (size_t j = 0; load(f, user, at, k, j); j++) {
    if (j % 64 == 63) CALX_TRY(cpu_ref_interrupted(f->body.machine));
    for (size_t i = 0; i < f->n; i++) {
      f->args[i] = f->acc[now] + i * CPU_REF_LANES_BYTES;
      f->results[i] = f->acc[1 - now] + i * CPU_REF_LANES_BYTES;
    }
    CALX_TRY(cpu_ref_body_run(&f->body, f->args, f->results, k));
    now = 1 - now;
  }
  for (size_t i = 0; i < f->n; i++) {
    memcpy(cpu_ref_at(&f->out[i], at), f->acc[now] + i * CPU_REF_LANES_BYTES,
           k * cx_hlo_elem_bytes(f->out[i].type.elem));
  }
  return NULL;
}

calx_status *cpu_ref_fold_run(cpu_ref_fold *f, cpu_ref_fold_load *load,
                              void *user)
{
  const size_t n = cpu_ref_count(f->out);
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    CALX_TRY(fold_chunk(f, load, user, at, k));
  }
  return NULL;
}

// The inputs in the order [reduced][kept], in the body's types.
typedef struct sorted_inputs {
  size_t reduced, kept;  // elements
  cpu_ref_buffer **of;
} sorted_inputs;

static calx_status *sort_inputs(const cpu_ref_call *c, const cpu_ref_fold *f,
                                sorted_inputs *out)
{
  const cx_hlo_ints over = cx_hlo_op_ints(c->op, CX_HLO_A_DIMENSIONS);
  int64_t order[CPU_REF_RANK];
  size_t k = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < c->in->type.rank; i++) {
      if (cpu_ref_has(over, (int64_t)i) == (pass == 0)) order[k++] = (int64_t)i;
    }
  }
  for (size_t i = 0; i < f->n; i++) {
    CALX_TRY(cpu_ref_pack(c, &c->in[i], order, cpu_ref_body_elem(&f->body, i),
                          &out->of[i]));
  }
  out->kept = cpu_ref_count(c->out);
  out->reduced = out->kept == 0 ? 0 : cpu_ref_count(c->in) / out->kept;
  return NULL;
}

static bool load_sorted(const cpu_ref_fold *f, void *user, size_t at, size_t k,
                        size_t j)
{
  const sorted_inputs *s = user;
  (void)k;
  for (size_t i = 0; i < f->n && j < s->reduced; i++) {
    const size_t bytes = cx_hlo_elem_bytes(cpu_ref_body_elem(&f->body, i));
    f->args[f->n + i] = s->of[i]->data + (j * s->kept + at) * bytes;
  }
  return j < s->reduced;
}

calx_status *cpu_ref_reduce(const cpu_ref_call *c)
{
  const uint32_t n = c->op->n_results;
  if (cpu_ref_all_single(c->op)) {
    for (uint32_t i = 0; i < n; i++) CALX_TRY(reduce_single(c, i));
    return NULL;
  }
  sorted_inputs s = { .of = cx_calloc((size_t)n + 1, sizeof *s.of) };
  if (s.of == NULL) return cx_out_of_memory();
  cpu_ref_fold f;
  calx_status *status = cpu_ref_fold_open(c, &f);
  if (status == NULL) status = sort_inputs(c, &f, &s);
  if (status == NULL) status = cpu_ref_fold_run(&f, load_sorted, &s);
  for (uint32_t i = 0; i < n; i++) cpu_ref_buffer_release(c->machine, s.of[i]);
  cpu_ref_fold_close(&f);
  cx_free(s.of);
  return status;
}

// ---- map ----

static calx_status *map_all(const cpu_ref_call *c, cpu_ref_body *body,
                            const void **args)
{
  const size_t n = cpu_ref_count(c->out);
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    CALX_TRY(cpu_ref_interrupted(c->machine));
    for (size_t i = 0; i < body->block->n_args; i++) {
      args[i] = cpu_ref_at(&c->in[i], at);
    }
    void *to = cpu_ref_at(c->out, at);
    CALX_TRY(cpu_ref_body_run(body, args, &to, k));
  }
  return NULL;
}

calx_status *cpu_ref_map(const cpu_ref_call *c)
{
  cpu_ref_body body;
  const void **args = cx_calloc((size_t)c->op->n_operands + 1, sizeof *args);
  if (args == NULL) return cx_out_of_memory();
  calx_status *status =
      cpu_ref_body_open(c, &c->op->regions[0], CPU_REF_CHUNK, &body);
  if (status == NULL) status = map_all(c, &body, args);
  cpu_ref_body_close(&body);
  cx_free(args);
  return status;
}
