// ref/window: reduce_window and select_and_scatter.
#include <string.h>

#include "ref/contract.h"

typedef struct windows {
  size_t rank;
  int64_t size[CPU_REF_RANK], stride[CPU_REF_RANK], base[CPU_REF_RANK],
      dilation[CPU_REF_RANK], low[CPU_REF_RANK];
  int64_t step[CPU_REF_RANK];  // of the operand
  const int64_t *dims;         // its sizes
} windows;

static void windows_of(const cx_hlo_op *op, const cx_hlo_type *x, windows *out)
{
  const bool dilated = op->kind == CX_HLO_OP_REDUCE_WINDOW;
  out->rank = x->rank;
  out->dims = x->dims;
  cpu_ref_strides(x, out->step);
  for (size_t i = 0; i < x->rank; i++) {
    out->size[i] = cpu_ref_list_at(op, CX_HLO_A_WINDOW_DIMENSIONS, i);
    out->stride[i] = cpu_ref_list_at(op, CX_HLO_A_WINDOW_STRIDES, i);
    out->base[i] =
        dilated ? cpu_ref_list_at(op, CX_HLO_A_BASE_DILATIONS, i) : 1;
    out->dilation[i] =
        dilated ? cpu_ref_list_at(op, CX_HLO_A_WINDOW_DILATIONS, i) : 1;
    out->low[i] = cpu_ref_padding_at(op, i, 0);
  }
}

// The operand's element at position w of window o; -1: padding or a hole.
static int64_t element_of(const windows *g, const int64_t *o, const int64_t *w)
{
  int64_t x = 0;
  for (size_t i = 0; i < g->rank; i++) {
    const int64_t at = o[i] * g->stride[i] + w[i] * g->dilation[i] - g->low[i];
    if (at < 0 || at % g->base[i] != 0 || at / g->base[i] >= g->dims[i]) {
      return -1;
    }
    x += at / g->base[i] * g->step[i];
  }
  return x;
}

// Goes to the next position of a window. A window may be larger than any
// memory, where all but its middle is padding, so the walk can be interrupted.
static calx_status *next_position(const cpu_ref_machine *m, const windows *g,
                                  int64_t *w, size_t *walked, bool *more)
{
  *more = cpu_ref_next(g->rank, g->size, w);
  return ++*walked % 65536 == 0 ? cpu_ref_interrupted(m) : NULL;
}

// ---- reduce_window with a body of one operation ----

static void combine_one(cx_hlo_op_kind kind, cx_hlo_elem e, cpu_ref_number *acc,
                        const cpu_ref_number *v)
{
  switch (cpu_ref_class_of(e)) {
    case CPU_REF_INT: cpu_ref_ints(kind, e, &acc->i, &v->i, &acc->i, 1); break;
    case CPU_REF_REAL: cpu_ref_reals(kind, &acc->r, &v->r, &acc->r, 1); break;
    case CPU_REF_COMPLEX:
      cpu_ref_complexes(kind, &acc->c, &v->c, &acc->c, 1);
      break;
  }
}

static calx_status *reduce_single(cpu_ref_machine *m, cx_hlo_op_kind kind,
                                  const windows *g, const cpu_ref_tensor *in,
                                  const cpu_ref_tensor *first,
                                  const cpu_ref_tensor *out)
{
  const cx_hlo_elem e = out->type.elem;
  const cpu_ref_class class = cpu_ref_class_of(e);
  const cx_hlo_elem from = in->type.elem;
  const int64_t bytes = (int64_t)cx_hlo_elem_bytes(from);
  int64_t o[CPU_REF_RANK] = { 0 };
  int64_t w[CPU_REF_RANK] = { 0 };
  cpu_ref_number init = { 0 };
  cpu_ref_load_numbers(class, from, first->data, 1, &init);
  const size_t n = cpu_ref_count(out);
  size_t walked = 0;
  for (size_t at = 0; at < n; at++) {
    cpu_ref_number acc = init;
    bool more = true;
    while (more) {
      const int64_t x = element_of(g, o, w);
      cpu_ref_number v = init;
      if (x >= 0) {
        cpu_ref_load_numbers(class, from, (char *)in->data + x * bytes, 1, &v);
      }
      combine_one(kind, e, &acc, &v);
      CALX_TRY(next_position(m, g, w, &walked, &more));
    }
    cpu_ref_store_number_at(e, out->data, at, &acc);
    cpu_ref_next(g->rank, out->type.dims, o);
  }
  return NULL;
}

// ---- with any body, on many windows at once ----

enum { SLOT = 16 * CPU_REF_CHUNK };  // bytes of one value in all lanes

typedef struct general {
  cpu_ref_body body;
  const windows *g;
  size_t n;  // inputs
  const cpu_ref_tensor *in, *out;
  unsigned char *acc[2], *elements, *inits;  // n x SLOT; inits: n x 16
  const void **args;                         // 2n
  void **results;                            // n
} general;

// The elements at position w of k windows from `at` on.
static void load_position(const general *r, size_t at, size_t k,
                          const int64_t *w)
{
  int64_t o[CPU_REF_RANK];
  size_t rest = at;
  for (size_t i = r->g->rank; i-- > 0;) {
    const size_t size = (size_t)r->out->type.dims[i];
    o[i] = (int64_t)(rest % size);
    rest /= size;
  }
  for (size_t lane = 0; lane < k; lane++) {
    const int64_t x = element_of(r->g, o, w);
    for (size_t i = 0; i < r->n; i++) {
      const cx_hlo_elem from = r->in[i].type.elem;
      const cx_hlo_elem to = cpu_ref_body_elem(&r->body, i);
      const size_t bytes = cx_hlo_elem_bytes(to);
      unsigned char *p = r->elements + i * SLOT + lane * bytes;
      if (x < 0) {
        memcpy(p, r->inits + 16 * i, bytes);
      } else {
        const int64_t size = (int64_t)cx_hlo_elem_bytes(from);
        cpu_ref_convert(from, (char *)r->in[i].data + x * size, to, p, 1);
      }
    }
    cpu_ref_next(r->g->rank, r->out->type.dims, o);
  }
}

static calx_status *reduce_chunk(general *r, size_t at, size_t k)
{
  int64_t w[CPU_REF_RANK] = { 0 };
  size_t now = 0;
  for (size_t i = 0; i < r->n; i++) {
    const size_t bytes = cx_hlo_elem_bytes(cpu_ref_body_elem(&r->body, i));
    cpu_ref_fill(bytes, r->acc[0] + i * SLOT, k, r->inits + 16 * i);
  }
  do {
    CALX_TRY(cpu_ref_interrupted(r->body.machine));
    load_position(r, at, k, w);
    for (size_t i = 0; i < r->n; i++) {
      r->args[i] = r->acc[now] + i * SLOT;
      r->args[r->n + i] = r->elements + i * SLOT;
      r->results[i] = r->acc[1 - now] + i * SLOT;
    }
    CALX_TRY(cpu_ref_body_run(&r->body, r->args, r->results, k));
    now = 1 - now;
  } while (cpu_ref_next(r->g->rank, r->g->size, w));
  for (size_t i = 0; i < r->n; i++) {
    const size_t bytes = cx_hlo_elem_bytes(r->out[i].type.elem);
    memcpy((char *)r->out[i].data + at * bytes, r->acc[now] + i * SLOT,
           k * bytes);
  }
  return NULL;
}

static calx_status *reduce_general(general *r)
{
  const size_t n = cpu_ref_count(r->out);
  for (size_t i = 0; i < r->n; i++) {
    cpu_ref_convert(r->in[r->n + i].type.elem, r->in[r->n + i].data,
                    cpu_ref_body_elem(&r->body, i), r->inits + 16 * i, 1);
  }
  for (size_t at = 0; at < n; at += CPU_REF_CHUNK) {
    const size_t k = n - at < CPU_REF_CHUNK ? n - at : CPU_REF_CHUNK;
    CALX_TRY(reduce_chunk(r, at, k));
  }
  return NULL;
}

static calx_status *with_memory(cpu_ref_machine *m, const cx_hlo_op *op,
                                general *r)
{
  cpu_ref_buffer *memory = NULL;
  const size_t n = r->n;
  CALX_TRY(
      cpu_ref_scratch(m, op, n, 3 * SLOT + 16 + 3 * sizeof(void *), &memory));
  unsigned char *p = memory->data;
  r->acc[0] = p;
  r->acc[1] = p + n * SLOT;
  r->elements = p + 2 * n * SLOT;
  r->inits = p + 3 * n * SLOT;
  r->args = (const void **)(void *)(r->inits + 16 * n);
  r->results = (void **)(void *)(r->inits + 16 * n) + 2 * n;
  calx_status *status =
      cpu_ref_body_open(m, op, &op->regions[0], CPU_REF_CHUNK, &r->body);
  if (status == NULL) status = reduce_general(r);
  cpu_ref_body_close(&r->body);
  cpu_ref_buffer_release(m, memory);
  return status;
}

calx_status *cpu_ref_reduce_window(cpu_ref_machine *m, const cx_hlo_op *op,
                                   const cpu_ref_tensor *in,
                                   const cpu_ref_tensor *out)
{
  windows g;
  windows_of(op, &in[0].type, &g);
  if (cpu_ref_all_single(op)) {
    const cx_hlo_block *block = op->regions[0].first;
    for (uint32_t i = 0; i < op->n_results; i++) {
      CALX_TRY(reduce_single(m, cpu_ref_single(block, i), &g, &in[i],
                             &in[op->n_results + i], &out[i]));
    }
    return NULL;
  }
  general r = { .g = &g, .n = op->n_results, .in = in, .out = out };
  return with_memory(m, op, &r);
}

// ---- select_and_scatter ----

// The element of window o that `select` chooses: the current one stays while
// select(current, next) holds. -1: the window is all padding.
static calx_status *select_one(cpu_ref_body *select, const windows *g,
                               const cpu_ref_tensor *x, const int64_t *o,
                               int64_t *out)
{
  const int64_t bytes = (int64_t)cx_hlo_elem_bytes(x->type.elem);
  int64_t w[CPU_REF_RANK] = { 0 };
  size_t walked = 0;
  bool more = true;
  *out = -1;
  while (more) {
    const int64_t next = element_of(g, o, w);
    unsigned char stays = next < 0;
    if (next >= 0 && *out >= 0) {
      const void *args[2] = { (char *)x->data + *out * bytes,
                              (char *)x->data + next * bytes };
      void *to = &stays;
      CALX_TRY(cpu_ref_body_run(select, args, &to, 1));
    }
    if (!stays) *out = next;
    CALX_TRY(next_position(select->machine, g, w, &walked, &more));
  }
  return NULL;
}

static calx_status *scatter_one(cpu_ref_body *scatter,
                                const cpu_ref_tensor *out, int64_t to,
                                const cpu_ref_tensor *source, size_t from)
{
  unsigned char value[16];
  unsigned char sum[16];
  const cx_hlo_elem e = out->type.elem;
  const size_t bytes = cx_hlo_elem_bytes(e);
  char *p = (char *)out->data + (size_t)to * bytes;
  const size_t size = cx_hlo_elem_bytes(source->type.elem);
  cpu_ref_convert(source->type.elem, (char *)source->data + from * size, e,
                  value, 1);
  const void *args[2] = { p, value };
  void *result = sum;
  CALX_TRY(cpu_ref_body_run(scatter, args, &result, 1));
  memcpy(p, sum, bytes);
  return NULL;
}

static calx_status *scatter_windows(cpu_ref_body *select, cpu_ref_body *scatter,
                                    const windows *g, const cpu_ref_tensor *in,
                                    const cpu_ref_tensor *out)
{
  int64_t o[CPU_REF_RANK] = { 0 };
  const size_t n = cpu_ref_count(&in[1]);
  for (size_t i = 0; i < n; i++) {
    int64_t to = -1;
    if (i % 256 == 255) CALX_TRY(cpu_ref_interrupted(select->machine));
    CALX_TRY(select_one(select, g, &in[0], o, &to));
    if (to >= 0) CALX_TRY(scatter_one(scatter, out, to, &in[1], i));
    cpu_ref_next(g->rank, in[1].type.dims, o);
  }
  return NULL;
}

calx_status *cpu_ref_select_and_scatter(cpu_ref_machine *m, const cx_hlo_op *op,
                                        const cpu_ref_tensor *in,
                                        const cpu_ref_tensor *out)
{
  windows g;
  windows_of(op, &in[0].type, &g);
  const size_t n = cpu_ref_count(out);
  const size_t bytes = cx_hlo_elem_bytes(out->type.elem);
  if (n == 0) return NULL;
  cpu_ref_convert(in[2].type.elem, in[2].data, out->type.elem, out->data, 1);
  cpu_ref_fill(bytes, (char *)out->data + bytes, n - 1, out->data);
  cpu_ref_body select = { .machine = m };
  cpu_ref_body scatter = { .machine = m };
  calx_status *status = cpu_ref_body_open(m, op, &op->regions[0], 1, &select);
  if (status == NULL) {
    status = cpu_ref_body_open(m, op, &op->regions[1], 1, &scatter);
  }
  if (status == NULL) {
    status = scatter_windows(&select, &scatter, &g, in, out);
  }
  cpu_ref_body_close(&select);
  cpu_ref_body_close(&scatter);
  return status;
}
