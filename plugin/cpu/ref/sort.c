// ref/sort: merge sort along one dimension.
//
// Always stable. The comparator is asked (b, a) where only that order can move
// an element, so that a comparator that is no order still ends.
#include <string.h>

#include "ref/inner.h"

typedef struct sort_state {
  cpu_ref_body body;
  const cpu_ref_tensor *in;
  size_t n;           // inputs
  const void **args;  // 2n
  int64_t base;       // the line's first element
  int64_t step;       // between its elements
} sort_state;

// Whether element b goes before element a of the line.
static calx_status *before(sort_state *s, int64_t b, int64_t a, bool *out)
{
  unsigned char answer = 0;
  void *to = &answer;
  for (size_t i = 0; i < s->n; i++) {
    const cpu_ref_tensor *t = &s->in[i];
    s->args[2 * i] = cpu_ref_at(t, (size_t)(s->base + b * s->step));
    s->args[2 * i + 1] = cpu_ref_at(t, (size_t)(s->base + a * s->step));
  }
  CALX_TRY(cpu_ref_body_run(&s->body, s->args, &to, 1));
  *out = answer != 0;
  return NULL;
}

// from[low, middle) and from[middle, high), both sorted, into `to`.
static calx_status *merge(sort_state *s, const int64_t *from, int64_t *to,
                          size_t low, size_t middle, size_t high)
{
  size_t a = low;
  size_t b = middle;
  for (size_t i = low; i < high; i++) {
    bool second = a == middle;
    if (!second && b < high) CALX_TRY(before(s, from[b], from[a], &second));
    to[i] = second ? from[b++] : from[a++];
  }
  return NULL;
}

// The order of one line of n elements, in order[0..n).
static calx_status *sort_line(sort_state *s, int64_t *order, int64_t *other,
                              size_t n)
{
  int64_t *from = order;
  int64_t *to = other;
  for (size_t i = 0; i < n; i++) from[i] = (int64_t)i;
  for (size_t width = 1; width < n; width *= 2) {
    CALX_TRY(cpu_ref_interrupted(s->body.machine));
    for (size_t low = 0; low < n; low += 2 * width) {
      const size_t middle = n - low < width ? n : low + width;
      const size_t high = n - middle < width ? n : middle + width;
      CALX_TRY(merge(s, from, to, low, middle, high));
    }
    int64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != order) memcpy(order, from, n * sizeof *order);
  return NULL;
}

static calx_status *sort_lines(sort_state *s, const cpu_ref_tensor *out,
                               size_t d, int64_t *order, int64_t *other)
{
  const cx_hlo_type *x = &s->in[0].type;
  int64_t step[CPU_REF_RANK];
  int64_t dims[CPU_REF_RANK];
  int64_t at[CPU_REF_RANK] = { 0 };
  cpu_ref_strides(x, step);
  for (size_t i = 0; i < x->rank; i++) dims[i] = i == d ? 1 : x->dims[i];
  const size_t n = (size_t)x->dims[d];
  s->step = step[d];
  do {
    s->base = 0;
    for (size_t i = 0; i < x->rank; i++) s->base += at[i] * step[i];
    CALX_TRY(sort_line(s, order, other, n));
    for (size_t k = 0; k < s->n; k++) {
      const size_t bytes = cx_hlo_elem_bytes(out[k].type.elem);
      for (size_t i = 0; i < n; i++) {
        const int64_t to = s->base + (int64_t)i * s->step;
        const int64_t from = s->base + order[i] * s->step;
        memcpy(cpu_ref_at(&out[k], (size_t)to),
               cpu_ref_at(&s->in[k], (size_t)from), bytes);
      }
    }
  } while (cpu_ref_next(x->rank, dims, at));
  return NULL;
}

calx_status *cpu_ref_sort(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  sort_state s = { .in = in, .n = c->op->n_operands };
  const int64_t rank = (int64_t)in->type.rank;
  int64_t d = cx_hlo_op_int(c->op, CX_HLO_A_DIMENSION);
  if (d < 0) d += rank;
  if (cpu_ref_count(in) == 0) return NULL;
  if (rank == 0) {
    for (size_t i = 0; i < s.n; i++) {
      memcpy(out[i].data, in[i].data, cx_hlo_elem_bytes(in[i].type.elem));
    }
    return NULL;
  }
  const size_t n = (size_t)in->type.dims[d];
  cpu_ref_buffer *memory = NULL;
  CALX_TRY(cpu_ref_scratch(c, 2 * n + 2 * s.n, sizeof(int64_t), &memory));
  int64_t *order = (int64_t *)(void *)memory->data;
  s.args = (const void **)(void *)(order + 2 * n);
  calx_status *status = cpu_ref_body_open(c, &c->op->regions[0], 1, &s.body);
  if (status == NULL) status = sort_lines(&s, out, (size_t)d, order, order + n);
  cpu_ref_body_close(&s.body);
  cpu_ref_buffer_release(c->machine, memory);
  return status;
}
