// hlo/infer: batch normalisation, random numbers, Fourier transforms and linear
// algebra.
#include "hlo/infer.h"

#include <string.h>

// ---- batch normalisation ----

// Operands 1 to `last` have one element for each feature of x. Writes their
// type.
static calx_status *check_features(const cx_hlo_infer *in, size_t last,
                                   cx_hlo_type *out)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const int64_t d = cx_hlo_op_int(in->op, CX_HLO_A_FEATURE_INDEX);
  CALX_TRY(cx_hlo_need_dim(in, "feature_index", d, x->rank));
  *out = (cx_hlo_type){ x->elem, 1, &x->dims[d] };
  for (size_t i = 1; i <= last; i++) {
    if (cx_hlo_type_equal(cx_hlo_operand(in, i), out)) continue;
    return cx_hlo_bad(in,
                      "operand %zu must be %s to fit dimension %lld of %s, "
                      "got %s",
                      i, CX_HLO_SHAPE(out), (long long)d, CX_HLO_SHAPE(x),
                      CX_HLO_SHAPE(cx_hlo_operand(in, i)));
  }
  return NULL;
}

static calx_status *three_results(cx_hlo_infer *in, const cx_hlo_type *features)
{
  in->results[0] = in->op->operands[0]->type;
  in->results[1] = (cx_hlo_any){ .tensor = *features };
  in->results[2] = in->results[1];
  return NULL;
}

calx_status *cx_hlo_infer_batch_norm_training(cx_hlo_infer *in)
{
  cx_hlo_type features;
  CALX_TRY(check_features(in, 2, &features));
  return three_results(in, &features);
}

calx_status *cx_hlo_infer_batch_norm_grad(cx_hlo_infer *in)
{
  cx_hlo_type features;
  CALX_TRY(check_features(in, 3, &features));
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_type *grad = cx_hlo_operand(in, 4);
  if (!cx_hlo_type_equal(x, grad)) {
    return cx_hlo_bad(in, "grad_output must be %s, got %s", CX_HLO_SHAPE(x),
                      CX_HLO_SHAPE(grad));
  }
  return three_results(in, &features);
}

calx_status *cx_hlo_infer_batch_norm_inference(cx_hlo_infer *in)
{
  cx_hlo_type features;
  CALX_TRY(check_features(in, 4, &features));
  in->results[0] = in->op->operands[0]->type;
  return NULL;
}

// ---- random numbers ----

calx_status *cx_hlo_infer_rng_bit_generator(cx_hlo_infer *in)
{
  const cx_hlo_type *state = cx_hlo_operand(in, 0);
  const cx_hlo_type *bits = &in->results[1].tensor;
  const int64_t how = cx_hlo_op_int(in->op, CX_HLO_A_RNG_ALGORITHM);
  // Words of the state, by algorithm. For DEFAULT the device decides.
  static const int64_t least[] = { 1, 2, 2 };
  static const int64_t most[] = { INT64_MAX, 2, 3 };
  if (state->rank != 1 || state->elem != CX_HLO_UI64 ||
      state->dims[0] < least[how] || state->dims[0] > most[how]) {
    return cx_hlo_bad(in, "%s has no state of type %s",
                      cx_hlo_choice_value(CX_HLO_RNG_ALGORITHM, how),
                      CX_HLO_SHAPE(state));
  }
  if (!cx_hlo_elem_is_int(bits->elem) && !cx_hlo_elem_is_float(bits->elem)) {
    return cx_hlo_bad(in, "makes integers or floats, not %s",
                      CX_HLO_SHAPE(bits));
  }
  in->results[0] = in->op->operands[0]->type;
  return NULL;
}

calx_status *cx_hlo_infer_rng(cx_hlo_infer *in)
{
  const cx_hlo_type *a = cx_hlo_operand(in, 0);
  const cx_hlo_type *b = cx_hlo_operand(in, 1);
  const cx_hlo_type *shape = cx_hlo_operand(in, 2);
  const cx_hlo_type to = in->results[0].tensor;
  const unsigned numbers = CX_HLO_CLASS_BOOL | CX_HLO_CLASS_SIGNED |
                           CX_HLO_CLASS_UNSIGNED | CX_HLO_CLASS_FLOAT;
  if (a->rank != 0 || !cx_hlo_type_equal(a, b) ||
      (cx_hlo_elem_class(a->elem) & numbers) == 0) {
    return cx_hlo_bad(in, "needs two scalars of one type, got %s and %s",
                      CX_HLO_SHAPE(a), CX_HLO_SHAPE(b));
  }
  const int64_t how = cx_hlo_op_int(in->op, CX_HLO_A_RNG_DISTRIBUTION);
  if (how == 0 || (how == 2 && !cx_hlo_elem_is_float(a->elem))) {
    return cx_hlo_bad(in, "rng_distribution %s does not make %s",
                      cx_hlo_choice_value(CX_HLO_RNG_DISTRIBUTION, how),
                      cx_hlo_elem_name(a->elem));
  }
  if (shape->rank != 1 || shape->dims[0] != (int64_t)to.rank ||
      (!cx_hlo_elem_is_int(shape->elem) && shape->elem != CX_HLO_INDEX)) {
    return cx_hlo_bad(in, "the shape of %s must be %zu integers, got %s",
                      CX_HLO_SHAPE(&to), to.rank, CX_HLO_SHAPE(shape));
  }
  return cx_hlo_result(in, 0, a->elem, to.rank, to.dims);
}

// ---- transforms ----

calx_status *cx_hlo_infer_fft(cx_hlo_infer *in)
{
  const cx_hlo_type *x = cx_hlo_operand(in, 0);
  const cx_hlo_ints length = cx_hlo_op_ints(in->op, CX_HLO_A_FFT_LENGTH);
  const int64_t how = cx_hlo_op_int(in->op, CX_HLO_A_FFT_TYPE);
  const bool to_complex = how == 2;  // RFFT
  const bool to_real = how == 3;     // IRFFT
  if (length.n < 1 || length.n > 3 || length.n > x->rank) {
    return cx_hlo_bad(in,
                      "fft_length has %zu values, it needs 1 to 3, and no "
                      "more than the rank of %s",
                      length.n, CX_HLO_SHAPE(x));
  }
  const cx_hlo_elem e = x->elem;
  const bool real = e == CX_HLO_F32 || e == CX_HLO_F64;
  if (to_complex ? !real : !cx_hlo_elem_is_complex(e)) {
    return cx_hlo_bad(in, "%s does not take %s",
                      cx_hlo_choice_value(CX_HLO_FFT_TYPE, how),
                      CX_HLO_SHAPE(x));
  }
  int64_t *dims = cx_hlo_dims_copy(in, x);
  if (dims == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < length.n; i++) {
    const bool last = i + 1 == length.n;
    const size_t d = x->rank - length.n + i;
    const int64_t half = length.v[i] == 0 ? 0 : length.v[i] / 2 + 1;
    if (length.v[i] < 0 ||
        x->dims[d] != (to_real && last ? half : length.v[i])) {
      return cx_hlo_bad(in, "length %lld does not fit dimension %zu of %s",
                        (long long)length.v[i], d, CX_HLO_SHAPE(x));
    }
    if (last) dims[d] = to_complex ? half : length.v[i];
  }
  cx_hlo_elem to = e;
  if (to_complex) CALX_TRY(cx_hlo_complex_elem(in, &to));
  if (to_real) to = cx_hlo_elem_part(e);
  return cx_hlo_result(in, 0, to, x->rank, dims);
}

// ---- linear algebra ----

static calx_status *check_square(const cx_hlo_infer *in, const cx_hlo_type *a)
{
  if (a->rank >= 2 && a->dims[a->rank - 1] == a->dims[a->rank - 2]) {
    return NULL;
  }
  return cx_hlo_bad(in, "needs square matrices, got %s", CX_HLO_SHAPE(a));
}

calx_status *cx_hlo_infer_cholesky(cx_hlo_infer *in)
{
  CALX_TRY(check_square(in, cx_hlo_operand(in, 0)));
  in->results[0] = in->op->operands[0]->type;
  return NULL;
}

calx_status *cx_hlo_infer_triangular_solve(cx_hlo_infer *in)
{
  const cx_hlo_type *a = cx_hlo_operand(in, 0);
  const cx_hlo_type *b = cx_hlo_operand(in, 1);
  CALX_TRY(check_square(in, a));
  if (cx_hlo_op_int(in->op, CX_HLO_A_TRANSPOSE_A) == 0) {
    return cx_hlo_bad(in, "transpose_a must not be TRANSPOSE_INVALID");
  }
  bool ok = a->elem == b->elem && a->rank == b->rank;
  if (ok) {
    const bool left = cx_hlo_op_flag(in->op, CX_HLO_A_LEFT_SIDE);
    const cx_hlo_type x = { a->elem, a->rank - 2, a->dims };
    const cx_hlo_type y = { a->elem, a->rank - 2, b->dims };
    ok = cx_hlo_type_equal(&x, &y) &&
         b->dims[b->rank - (left ? 2 : 1)] == a->dims[a->rank - 1];
  }
  if (!ok) {
    return cx_hlo_bad(in, "%s does not fit the matrices %s", CX_HLO_SHAPE(b),
                      CX_HLO_SHAPE(a));
  }
  in->results[0] = in->op->operands[1]->type;
  return NULL;
}
