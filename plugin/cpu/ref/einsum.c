// ref/einsum: sums of products by Einstein's notation, "ij,jk->ik".
//
// The general sum over all letters that the result has not. "..." is not
// known. No shape rule has seen these operations, so everything is checked.
#include <string.h>

#include "ref/contract.h"

enum { LETTERS = 128 };

typedef struct notation {
  const char *part[3];  // the operands, the result
  size_t n[3];          // letters of each
  int64_t size[LETTERS];
  bool kept[LETTERS];  // stands in the result
} notation;

// "ab,bc->ac" or "ab->ba", without blanks. False: something else.
static bool read_notation(cx_hlo_str s, size_t operands, notation *out)
{
  size_t part = 0;
  *out = (notation){ .part = { s.s } };
  for (size_t i = 0; i < s.n; i++) {
    const char c = s.s[i];
    const bool arrow = c == '-' && i + 1 < s.n && s.s[i + 1] == '>';
    if (arrow || c == ',') {
      if (part + 1 > operands || arrow != (part + 1 == operands)) return false;
      if (arrow) i++;
      part++;
      out->part[part] = s.s + i + 1;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      out->n[part]++;
    } else {
      return false;
    }
  }
  return part == operands;
}

static bool take_sizes(notation *e, size_t part, const cx_hlo_type *t,
                       bool *known)
{
  if (e->n[part] != t->rank) return false;
  for (size_t i = 0; i < t->rank; i++) {
    const unsigned char c = (unsigned char)e->part[part][i];
    if (known[c] && e->size[c] != t->dims[i]) return false;
    e->size[c] = t->dims[i];
    known[c] = true;
  }
  return true;
}

// Letters in the order of the walk: the result's, then those summed over.
typedef struct walk {
  size_t n, n_kept;
  int64_t dims[CPU_REF_RANK];
  int64_t step[3][CPU_REF_RANK];  // of the operands and the result
} walk;

static void add_letter(walk *w, const notation *e, unsigned char c,
                       const cx_hlo_type *const *types)
{
  const size_t at = w->n++;
  w->dims[at] = e->size[c];
  for (size_t p = 0; p < 3; p++) {
    int64_t own[CPU_REF_RANK];
    w->step[p][at] = 0;
    if (types[p] == NULL) continue;
    cpu_ref_strides(types[p], own);
    // A letter that stands twice walks the diagonal.
    for (size_t i = 0; i < e->n[p]; i++) {
      if ((unsigned char)e->part[p][i] == c) w->step[p][at] += own[i];
    }
  }
}

static calx_status *sum_up(const cpu_ref_machine *m, const walk *w,
                           cx_hlo_elem e, const char *a, const char *b,
                           const cpu_ref_tensor *out)
{
  const int64_t bytes = (int64_t)cpu_ref_number_bytes(cpu_ref_class_of(e));
  int64_t at[CPU_REF_RANK] = { 0 };
  cpu_ref_number sum = { 0 };
  const cpu_ref_number one_int = { .i = 1 };
  const cpu_ref_number one_real = { .r = 1 };
  const cpu_ref_number one_complex = { .c = 1 };
  const cpu_ref_class class = cpu_ref_class_of(e);
  const cpu_ref_number *one = class == CPU_REF_INT    ? &one_int
                              : class == CPU_REF_REAL ? &one_real
                                                      : &one_complex;
  const size_t n_sum = w->n - w->n_kept;
  size_t walked = 0;
  do {
    int64_t i[3] = { 0 };
    for (size_t p = 0; p < 3; p++) {
      for (size_t k = 0; k < w->n; k++) i[p] += at[k] * w->step[p][k];
    }
    const void *y = b == NULL ? (const void *)one : b + i[1] * bytes;
    cpu_ref_add_dot(e, a + i[0] * bytes, y, 1, &sum);
    bool last = true;
    for (size_t k = w->n_kept; k < w->n; k++) {
      last = last && at[k] + 1 == w->dims[k];
    }
    if (n_sum == 0 || last) {
      cpu_ref_store_number_at(e, out->data, (size_t)i[2], &sum);
      memset(&sum, 0, sizeof sum);
    }
    if (++walked % 65536 == 0) CALX_TRY(cpu_ref_interrupted(m));
  } while (cpu_ref_next(w->n, w->dims, at));
  return NULL;
}

static calx_status *pack_plain(cpu_ref_machine *m, const cx_hlo_op *op,
                               const cpu_ref_tensor *x, cpu_ref_class class,
                               cpu_ref_buffer **out)
{
  int64_t order[CPU_REF_RANK];
  for (size_t i = 0; i < x->type.rank; i++) order[i] = (int64_t)i;
  return cpu_ref_pack(m, op, x, order, class, out);
}

static calx_status *run(cpu_ref_machine *m, const cx_hlo_op *op,
                        const notation *e, const cpu_ref_tensor *in,
                        const cpu_ref_tensor *out, size_t operands)
{
  const cpu_ref_class class = cpu_ref_class_of(out->type.elem);
  const cx_hlo_type *types[3] = { &in[0].type, NULL, &out->type };
  notation shifted = *e;
  if (operands == 2) {
    types[1] = &in[1].type;
  } else {  // the result stands third
    shifted.part[2] = e->part[1];
    shifted.n[2] = e->n[1];
    shifted.n[1] = 0;
  }
  walk w = { 0 };
  for (int c = 0; c < LETTERS; c++) {
    if (e->kept[c]) add_letter(&w, &shifted, (unsigned char)c, types);
  }
  w.n_kept = w.n;
  for (int c = 0; c < LETTERS; c++) {
    if (!e->kept[c] && e->size[c] >= 0) {
      add_letter(&w, &shifted, (unsigned char)c, types);
    }
  }
  cpu_ref_buffer *packed[2] = { 0 };
  calx_status *status = pack_plain(m, op, &in[0], class, &packed[0]);
  if (status == NULL && operands == 2) {
    status = pack_plain(m, op, &in[1], class, &packed[1]);
  }
  if (status == NULL) {
    status = sum_up(m, &w, out->type.elem, (char *)packed[0]->data,
                    packed[1] == NULL ? NULL : (char *)packed[1]->data, out);
  }
  cpu_ref_buffer_release(m, packed[0]);
  cpu_ref_buffer_release(m, packed[1]);
  return status;
}

static calx_status *einsum(cpu_ref_machine *m, const cx_hlo_op *op,
                           const cpu_ref_tensor *in, const cpu_ref_tensor *out,
                           size_t operands)
{
  const cx_hlo_attr *attr = cx_hlo_op_attr(op, CX_HLO_A_EINSUM_CONFIG);
  notation e;
  bool known[LETTERS] = { false };
  bool ok = attr != NULL && read_notation(attr->as.text, operands, &e);
  for (size_t p = 0; p < operands && ok; p++) {
    ok = take_sizes(&e, p, &in[p].type, known);
  }
  for (size_t i = 0; ok && i < e.n[operands]; i++) {
    const unsigned char c = (unsigned char)e.part[operands][i];
    ok = known[c] && !e.kept[c];
    e.kept[c] = true;
  }
  ok = ok && take_sizes(&e, operands, &out->type, known);
  if (!ok) {
    return cpu_ref_bad(op, CALX_INVALID_ARGUMENT,
                       "'%.*s' does not make %s of %s",
                       attr == NULL ? 0 : (int)attr->as.text.n,
                       attr == NULL ? "" : attr->as.text.s, CPU_REF_SHAPE(out),
                       CPU_REF_SHAPE(in));
  }
  size_t n = 1;
  for (int c = 0; c < LETTERS; c++) {
    if (!known[c]) e.size[c] = -1;
    if (known[c]) n *= (size_t)(e.size[c] != 0);
  }
  if (n == 0) {
    const size_t bytes = cx_hlo_elem_bytes(out->type.elem);
    memset(out->data, 0, cpu_ref_count(out) * bytes);
    return NULL;
  }
  return run(m, op, &e, in, out, operands);
}

calx_status *cpu_ref_einsum(cpu_ref_machine *m, const cx_hlo_op *op,
                            const cpu_ref_tensor *in, const cpu_ref_tensor *out)
{
  return einsum(m, op, in, out, 2);
}

calx_status *cpu_ref_unary_einsum(cpu_ref_machine *m, const cx_hlo_op *op,
                                  const cpu_ref_tensor *in,
                                  const cpu_ref_tensor *out)
{
  return einsum(m, op, in, out, 1);
}
