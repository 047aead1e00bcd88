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
typedef struct letter_walk {
  size_t n, n_kept;
  int64_t dims[CPU_REF_RANK];
  int64_t step[3][CPU_REF_RANK];  // of the operands and the result
} letter_walk;

static void add_letter(letter_walk *w, const notation *e, unsigned char c,
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

static calx_status *sum_up(const cpu_ref_machine *m, const letter_walk *w,
                           cx_hlo_elem e, const char *a, const char *b,
                           const cpu_ref_tensor *out)
{
  const int64_t bytes = (int64_t)cpu_ref_number_bytes(cpu_ref_class_of(e));
  int64_t at[CPU_REF_RANK] = { 0 };
  cpu_ref_number sum = { 0 };
  const int64_t i_one = 1;
  cpu_ref_number one;
  cpu_ref_load_numbers(cpu_ref_class_of(e), CX_HLO_I64, &i_one, 1, &one);
  const size_t n_sum = w->n - w->n_kept;
  size_t walked = 0;
  do {
    int64_t i[3] = { 0 };
    for (size_t p = 0; p < 3; p++) {
      for (size_t k = 0; k < w->n; k++) i[p] += at[k] * w->step[p][k];
    }
    const void *y = b == NULL ? (const void *)&one : b + i[1] * bytes;
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

static calx_status *run(const cpu_ref_call *c, const notation *e,
                        size_t operands)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_elem number = cpu_ref_number_elem(out->type.elem);
  int64_t order[CPU_REF_RANK];
  const cx_hlo_type *types[3] = { &in[0].type, NULL, &out->type };
  notation shifted = *e;
  if (operands == 2) {
    types[1] = &in[1].type;
  } else {  // the result stands third
    shifted.part[2] = e->part[1];
    shifted.n[2] = e->n[1];
    shifted.n[1] = 0;
  }
  letter_walk w = { 0 };
  for (unsigned char l = 0; l < LETTERS; l++) {
    if (e->kept[l]) add_letter(&w, &shifted, l, types);
  }
  w.n_kept = w.n;
  for (unsigned char l = 0; l < LETTERS; l++) {
    if (!e->kept[l] && e->size[l] >= 0) add_letter(&w, &shifted, l, types);
  }
  cpu_ref_buffer *packed[2] = { 0 };
  calx_status *status = NULL;
  for (size_t i = 0; i < CPU_REF_RANK; i++) order[i] = (int64_t)i;
  for (size_t i = 0; i < operands && status == NULL; i++) {
    status = cpu_ref_pack(c, &in[i], order, number, &packed[i]);
  }
  if (status == NULL) {
    status = sum_up(c->machine, &w, out->type.elem, (char *)packed[0]->data,
                    packed[1] == NULL ? NULL : (char *)packed[1]->data, out);
  }
  cpu_ref_buffer_release(c->machine, packed[0]);
  cpu_ref_buffer_release(c->machine, packed[1]);
  return status;
}

static calx_status *einsum(const cpu_ref_call *call, size_t operands)
{
  const cpu_ref_tensor *in = call->in, *out = call->out;
  const cx_hlo_attr *attr = cx_hlo_op_attr(call->op, CX_HLO_A_EINSUM_CONFIG);
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
    return cpu_ref_bad(call->op, CALX_INVALID_ARGUMENT,
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
  return n == 0 ? cpu_ref_zero(out) : run(call, &e, operands);
}

calx_status *cpu_ref_einsum(const cpu_ref_call *c)
{
  return einsum(c, 2);
}

calx_status *cpu_ref_unary_einsum(const cpu_ref_call *c)
{
  return einsum(c, 1);
}
