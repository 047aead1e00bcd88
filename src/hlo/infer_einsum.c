// hlo/infer: einsum, and index selection as in PyTorch.
#include "hlo/infer.h"

// The dimensions that the letters of a config name.
typedef struct letters {
  int64_t sizes[128];
  bool known[128];
  cx_hlo_str left;  // the part of the config that is not read yet
} letters;

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static calx_status *bad_config(const cx_hlo_infer *in)
{
  const cx_hlo_str s = cx_hlo_op_attr(in->op, CX_HLO_A_EINSUM_CONFIG)->as.text;
  return cx_hlo_bad(in, "einsum_config '%.*s' does not fit its operands",
                    (int)s.n, s.s);
}

static bool accept(letters *l, char c)
{
  if (l->left.n == 0 || *l->left.s != c) return false;
  l->left.s++;
  l->left.n--;
  return true;
}

// Reads one letter for each dimension of operand i.
static calx_status *read_operand(const cx_hlo_infer *in, letters *l, size_t i)
{
  const cx_hlo_type *x = cx_hlo_operand(in, i);
  for (size_t d = 0; d < x->rank; d++) {
    if (l->left.n == 0 || !is_letter(*l->left.s)) return bad_config(in);
    const size_t c = (size_t)*l->left.s;
    accept(l, *l->left.s);
    if (l->known[c] && l->sizes[c] != x->dims[d]) return bad_config(in);
    l->known[c] = true;
    l->sizes[c] = x->dims[d];
  }
  return NULL;
}

// config ::= letters (',' letters)? '->' letters
calx_status *cx_hlo_infer_einsum(cx_hlo_infer *in)
{
  letters l = { .left =
                    cx_hlo_op_attr(in->op, CX_HLO_A_EINSUM_CONFIG)->as.text };
  for (size_t i = 0; i < in->op->n_operands; i++) {
    if (i != 0 && !accept(&l, ',')) return bad_config(in);
    CALX_TRY(read_operand(in, &l, i));
    CALX_TRY(cx_hlo_need_same_elem(in, 0, i));
  }
  if (!accept(&l, '-') || !accept(&l, '>')) return bad_config(in);
  const size_t rank = l.left.n;
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < rank; i++) {
    const char c = l.left.s[i];
    // A letter may occur once in the result.
    if (!is_letter(c) || !l.known[(size_t)c]) return bad_config(in);
    l.known[(size_t)c] = false;
    dims[i] = l.sizes[(size_t)c];
  }
  return cx_hlo_result(in, 0, cx_hlo_operand(in, 0)->elem, rank, dims);
}

// The result has the dimensions of x before `dim`, the dimensions of the
// indices that are no batch dimensions, and the dimensions of x behind `dim`.
calx_status *cx_hlo_infer_torch_index_select(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *at = cx_hlo_operand(in, 1);
  const int64_t dim = cx_hlo_op_int(in->op, CX_HLO_A_DIM);
  const int64_t batch = cx_hlo_op_int(in->op, CX_HLO_A_BATCH_DIMS);
  CALX_TRY(cx_hlo_need_dim(in, "dim", dim, x->rank));
  if (!cx_hlo_elem_is_int(at->elem)) {
    return cx_hlo_bad(in, "indices must be integers, got %s", CX_HLO_SHAPE(at));
  }
  bool ok = batch >= 0 && batch <= dim && batch <= (int64_t)at->rank;
  for (int64_t i = 0; ok && i < batch; i++) ok = x->dims[i] == at->dims[i];
  if (!ok) {
    return cx_hlo_bad(in,
                      "%lld batch dimensions do not fit %s, %s and dim "
                      "%lld",
                      (long long)batch, CX_HLO_SHAPE(x), CX_HLO_SHAPE(at),
                      (long long)dim);
  }
  int64_t *dims = CX_ARENA_ARRAY(in->arena, int64_t, x->rank + at->rank + 1);
  if (dims == NULL) return cx_out_of_memory();
  size_t n = 0;
  for (int64_t i = 0; i < dim; i++) dims[n++] = x->dims[i];
  for (size_t i = (size_t)batch; i < at->rank; i++) dims[n++] = at->dims[i];
  for (size_t i = (size_t)dim + 1; i < x->rank; i++) dims[n++] = x->dims[i];
  return cx_hlo_result(in, 0, x->elem, n, dims);
}
