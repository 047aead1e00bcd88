// ref/contract: dot products of every form.
//
// Both operands are laid out as numbers, [batch][free][contracted], so that
// every element of the result is one sum along two rows: in double, in 64 bits
// that wrap, or in double parts; rounded once.
#include <string.h>

#include "ref/contract.h"

// ---- sums of products ----

// Four sums side by side do not wait for one another.
static double dot_reals(const double *a, const double *b, size_t n)
{
  double s[4] = { 0 };
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t k = 0; k < 4; k++) s[k] += a[i + k] * b[i + k];
  }
  for (; i < n; i++) s[0] += a[i] * b[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

static int64_t dot_ints(const int64_t *a, const int64_t *b, size_t n)
{
  uint64_t s = 0;
  for (size_t i = 0; i < n; i++) s += (uint64_t)a[i] * (uint64_t)b[i];
  return (int64_t)s;
}

// i1: a product is `and`, a sum `or`.
static int64_t dot_bools(const int64_t *a, const int64_t *b, size_t n)
{
  int64_t s = 0;
  for (size_t i = 0; i < n; i++) s |= a[i] & b[i];
  return s;
}

static double complex dot_complex(const double complex *a,
                                  const double complex *b, size_t n)
{
  double re = 0;
  double im = 0;
  for (size_t i = 0; i < n; i++) {
    re += creal(a[i]) * creal(b[i]) - cimag(a[i]) * cimag(b[i]);
    im += creal(a[i]) * cimag(b[i]) + cimag(a[i]) * creal(b[i]);
  }
  return cpu_ref_pair(re, im);
}

void cpu_ref_add_dot(cx_hlo_elem e, const void *a, const void *b, size_t n,
                     cpu_ref_number *acc)
{
  switch (cpu_ref_class_of(e)) {
    case CPU_REF_REAL: acc->r += dot_reals(a, b, n); break;
    case CPU_REF_COMPLEX: acc->c += dot_complex(a, b, n); break;
    case CPU_REF_INT:
      if (e == CX_HLO_I1) {
        acc->i |= dot_bools(a, b, n);
      } else {
        acc->i = (int64_t)((uint64_t)acc->i + (uint64_t)dot_ints(a, b, n));
      }
      break;
  }
}

void cpu_ref_store_number_at(cx_hlo_elem e, void *data, size_t i,
                             const cpu_ref_number *v)
{
  void *p = (char *)data + i * cx_hlo_elem_bytes(e);
  cpu_ref_store_numbers(cpu_ref_class_of(e), e, p, 1, v);
}

// ---- layout ----

cx_hlo_elem cpu_ref_number_elem(cx_hlo_elem e)
{
  static const cx_hlo_elem elems[] = { [CPU_REF_INT] = CX_HLO_I64,
                                       [CPU_REF_REAL] = CX_HLO_F64,
                                       [CPU_REF_COMPLEX] = CX_HLO_C128 };
  return elems[cpu_ref_class_of(e)];
}

calx_status *cpu_ref_pack(const cpu_ref_call *c, const cpu_ref_tensor *x,
                          const int64_t *order, cx_hlo_elem to,
                          cpu_ref_buffer **out)
{
  const size_t rank = x->type.rank;
  const size_t n = cpu_ref_count(x);
  const size_t bytes = cx_hlo_elem_bytes(x->type.elem);
  int64_t own[CPU_REF_RANK];
  int64_t dims[CPU_REF_RANK];
  int64_t from[CPU_REF_RANK];
  int64_t step[CPU_REF_RANK];
  cpu_ref_strides(&x->type, own);
  for (size_t i = 0; i < rank; i++) {
    dims[i] = x->type.dims[order[i]];
    from[i] = own[order[i]];
  }
  const cx_hlo_type ordered = { x->type.elem, rank, dims };
  cpu_ref_strides(&ordered, step);
  cpu_ref_buffer *raw = NULL;
  CALX_TRY(cpu_ref_scratch(c, n, bytes, &raw));
  cpu_ref_copy(bytes, rank, dims, raw->data, step, x->data, from);
  *out = raw;
  if (to == x->type.elem) return NULL;
  calx_status *status = cpu_ref_scratch(c, n, cx_hlo_elem_bytes(to), out);
  if (status == NULL) {
    cpu_ref_convert(x->type.elem, raw->data, to, (*out)->data, n);
  }
  cpu_ref_buffer_release(c->machine, raw);
  return status;
}

// The order of an operand's dimensions: batch dimensions, free ones, contracted
// ones; and the products of the sizes of each.
typedef struct arrangement {
  int64_t order[CPU_REF_RANK];
  size_t batch, free, contract;
} arrangement;

static void arrange(const cx_hlo_type *t, cx_hlo_ints batch,
                    cx_hlo_ints contract, arrangement *out)
{
  size_t k = 0;
  *out = (arrangement){ .batch = 1, .free = 1, .contract = 1 };
  for (size_t i = 0; i < batch.n; i++) {
    out->order[k++] = batch.v[i];
    out->batch *= (size_t)t->dims[batch.v[i]];
  }
  for (size_t i = 0; i < t->rank; i++) {
    if (cpu_ref_has(batch, (int64_t)i) || cpu_ref_has(contract, (int64_t)i)) {
      continue;
    }
    out->order[k++] = (int64_t)i;
    out->free *= (size_t)t->dims[i];
  }
  for (size_t i = 0; i < contract.n; i++) {
    out->order[k++] = contract.v[i];
    out->contract *= (size_t)t->dims[contract.v[i]];
  }
}

static calx_status *multiply(cpu_ref_machine *m, const arrangement *l,
                             const arrangement *r, const char *a, const char *b,
                             const cpu_ref_tensor *out)
{
  const cx_hlo_elem e = out->type.elem;
  const size_t K = l->contract;
  const size_t row = K * cpu_ref_number_bytes(cpu_ref_class_of(e));
  size_t o = 0;
  for (size_t i = 0; i < l->batch * l->free; i++) {
    const size_t batch = i / l->free;
    if (i % 64 == 63) CALX_TRY(cpu_ref_interrupted(m));
    for (size_t j = 0; j < r->free; j++) {
      cpu_ref_number sum = { 0 };
      cpu_ref_add_dot(e, a + i * row, b + (batch * r->free + j) * row, K, &sum);
      cpu_ref_store_number_at(e, out->data, o++, &sum);
    }
  }
  return NULL;
}

calx_status *cpu_ref_do_dot(const cpu_ref_call *c, const cx_hlo_dot_numbers *d)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_elem number = cpu_ref_number_elem(out->type.elem);
  arrangement l, r;
  cpu_ref_buffer *a = NULL;
  cpu_ref_buffer *b = NULL;
  // Without a result, sizes beside an empty dimension mean nothing.
  if (cpu_ref_count(out) == 0) return NULL;
  if (cpu_ref_count(&in[0]) == 0 || cpu_ref_count(&in[1]) == 0) {
    return cpu_ref_zero(out);
  }
  arrange(&in[0].type, d->lhs_batch, d->lhs_contract, &l);
  arrange(&in[1].type, d->rhs_batch, d->rhs_contract, &r);
  calx_status *status = cpu_ref_pack(c, &in[0], l.order, number, &a);
  if (status == NULL) {
    status = cpu_ref_pack(c, &in[1], r.order, number, &b);
  }
  if (status == NULL) {
    status =
        multiply(c->machine, &l, &r, (char *)a->data, (char *)b->data, out);
  }
  cpu_ref_buffer_release(c->machine, a);
  cpu_ref_buffer_release(c->machine, b);
  return status;
}

calx_status *cpu_ref_dot_general(const cpu_ref_call *c)
{
  return cpu_ref_do_dot(
      c, cx_hlo_op_struct(c->op, CX_HLO_A_DOT_DIMENSION_NUMBERS));
}

// The last dimension of lhs with the first of rhs.
calx_status *cpu_ref_dot(const cpu_ref_call *c)
{
  const int64_t last = (int64_t)c->in[0].type.rank - 1;
  const int64_t first = 0;
  const cx_hlo_dot_numbers d = { .lhs_contract = { &last, 1 },
                                 .rhs_contract = { &first, 1 } };
  return cpu_ref_do_dot(c, &d);
}
