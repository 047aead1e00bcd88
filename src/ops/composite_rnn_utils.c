// ops/composite_rnn_utils: sequences of several lengths, padded to the longest
// (torch.nn.utils.rnn). A packed sequence here is the padded tensor and the
// lengths: PyTorch's joins the rows' steps, whose number depends on data.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/rnn_utils.h"
#include "ops/composite.h"
#include "ops/recurrent.h"

calx_tensor *cx_ops_before_lengths(calx_tensor *lengths, int64_t steps)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = cx_ops_index_dtype(steps),
                            .device = calx_tensor_device(lengths) };
  calx_tensor *at = calx_arange_with(0, (double)steps, 1, &o);
  at = calx_reshape(at, CALX_SHAPE(steps, 1, 1));
  int64_t n = calx_tensor_numel(lengths);
  calx_tensor *ends = calx_to_dtype(lengths, o.dtype);
  return calx_lt(at, calx_reshape(ends, CALX_SHAPE(1, n, 1)));
}

// ---- lengths ----------------------------------------------------------------

// The lengths as numbers of the host: the caller frees them. NULL: *out_bad.
static int64_t *read_lengths(const char *op, calx_tensor *lengths,
                             calx_tensor **out_bad)
{
  calx_dtype type = calx_tensor_dtype(lengths);
  size_t n = (size_t)calx_tensor_numel(lengths), one = calx_dtype_size(type);
  if (calx_tensor_rank(lengths) != 1 || !cx_dtype_is_int(type)) {
    *out_bad = cx_ops_invalid(
        "%s: lengths is %s of rank %zu, whole numbers (N) are wanted", op,
        calx_dtype_name(type), calx_tensor_rank(lengths));
    return NULL;
  }
  int64_t *out = cx_calloc(n + 1, sizeof *out);
  unsigned char *raw = cx_calloc(n + 1, one);
  calx_status *status = NULL;
  if (out == NULL || raw == NULL) {
    status = cx_out_of_memory();
  } else if (calx_tensor_is_host(lengths)) {
    memcpy(raw, calx_host_data(lengths), n * one);
  } else {
    status = calx_tensor_read(lengths, raw, n * one);
  }
  for (size_t i = 0; status == NULL && i < n; i++) {
    out[i] = cx_load_int(type, raw + i * one);
  }
  cx_free(raw);
  if (status == NULL) return out;
  cx_free(out);
  *out_bad = cx_lazy_tensor_poison(status);
  return NULL;
}

// PyTorch's messages. NULL: all are possible.
static calx_tensor *check_lengths(const char *op, const int64_t *lengths,
                                  int64_t n, int64_t steps, bool sorted)
{
  for (int64_t i = 0; i < n; i++) {
    if (lengths[i] <= 0 || lengths[i] > steps) {
      return cx_ops_invalid(
          "%s: Length of all samples has to be greater than 0, but found an "
          "element in 'lengths' that is <= 0 or above the %lld steps: %lld of "
          "row %lld",
          op, (long long)steps, (long long)lengths[i], (long long)i);
    }
    if (sorted && i != 0 && lengths[i] > lengths[i - 1]) {
      return cx_ops_invalid(
          "%s: `lengths` array must be sorted in decreasing order when "
          "`enforce_sorted` is True: row %lld has %lld steps after one of "
          "%lld; set .no_enforce_sorted",
          op, (long long)i, (long long)lengths[i], (long long)lengths[i - 1]);
    }
  }
  return NULL;
}

static calx_packed_sequence failed(calx_tensor *bad)
{
  return (calx_packed_sequence){ .data = bad, .lengths = bad };
}

// ---- packing ----------------------------------------------------------------

static bool swaps(const calx_tensor *x, bool batch_first)
{
  return batch_first && calx_tensor_rank(x) >= 2;
}

calx_packed_sequence calx_pack_padded_sequence_with(
    calx_tensor *input, calx_tensor *lengths,
    const calx_pack_padded_sequence_options *o)
{
  static const char op[] = "pack_padded_sequence";
  CX_OPS_COMPOSITE(op);
  calx_tensor *bad = NULL;
  calx_pack_padded_sequence_options own;
  calx_status *status = cx_options_take(op, o, &own, sizeof own);
  if (status != NULL) return failed(cx_lazy_tensor_poison(status));
  if (cx_ops_unfit(op, &input, 1, &bad)) return failed(bad);
  if (lengths == NULL) {
    return failed(cx_ops_invalid("%s: the lengths are NULL", op));
  }
  if (calx_tensor_rank(input) < 2) {
    return failed(
        cx_ops_invalid("%s: the input is %s, (steps, batch, …) is "
                       "wanted",
                       op, cx_graph_shape_str(cx_lazy_tensor_shape(input))));
  }
  calx_tensor *x = input;
  if (swaps(x, own.batch_first)) x = calx_transpose(x, 0, 1);
  int64_t steps = calx_tensor_dim(x, 0), n = calx_tensor_dim(x, 1);
  if (calx_tensor_rank(lengths) != 1 || calx_tensor_numel(lengths) != n) {
    return failed(cx_ops_invalid(
        "%s: Expected `len(lengths)` to be equal to batch_size, but got %lld "
        "(batch_size=%lld)",
        op, (long long)calx_tensor_numel(lengths), (long long)n));
  }
  if (calx_tensor_is_host(lengths)) {
    int64_t *numbers = read_lengths(op, lengths, &bad);
    if (numbers == NULL) return failed(bad);
    bad = check_lengths(op, numbers, n, steps, !own.no_enforce_sorted);
    cx_free(numbers);
    if (bad != NULL) return failed(bad);
    lengths = calx_to(lengths, calx_tensor_device(x));
  }
  return (calx_packed_sequence){ .data = x, .lengths = lengths };
}

// x (L, …) with `value` after its steps, or before them, (steps, …).
static calx_tensor *padded_to(calx_tensor *x, int64_t steps, double value,
                              bool left)
{
  calx_dims shape = calx_tensor_shape(x);
  int64_t dims[CALX_MAX_RANK];
  memcpy(dims, shape.values, shape.count * sizeof dims[0]);
  dims[0] = steps - shape.values[0];
  if (dims[0] == 0) return x;
  calx_create_options o = { .size = sizeof o,
                            .dtype = calx_tensor_dtype(x),
                            .device = calx_tensor_device(x) };
  calx_tensor *rest =
      calx_full_with(calx_dims_of(dims, shape.count), value, &o);
  calx_tensor *both[2] = { left ? rest : x, left ? x : rest };
  return calx_cat(both, 2, 0);
}

static calx_tensor *check_sequences(const char *op,
                                    calx_tensor *const *sequences, size_t n)
{
  calx_tensor *bad;
  if (sequences == NULL || n == 0) {
    return cx_ops_invalid("%s: received an empty list of sequences", op);
  }
  if (cx_ops_unfit(op, sequences, (uint32_t)n, &bad)) return bad;
  const cx_graph_shape *first = cx_lazy_tensor_shape(sequences[0]);
  for (size_t i = 0; i < n; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(sequences[i]);
    bool same = s->rank == first->rank && s->rank > 0 &&
                s->dtype == first->dtype &&
                memcmp(s->dims + 1, first->dims + 1,
                       (s->rank - 1) * sizeof s->dims[0]) == 0;
    if (same) continue;
    return cx_ops_invalid(
        "%s: sequence %zu is %s and the first %s; they may "
        "differ in the first dimension",
        op, i, cx_graph_shape_str(s), cx_graph_shape_str(first));
  }
  return NULL;
}

static int64_t longest(calx_tensor *const *sequences, size_t n)
{
  int64_t most = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t steps = calx_tensor_dim(sequences[i], 0);
    if (steps > most) most = steps;
  }
  return most;
}

static calx_tensor *stack_padded(calx_tensor *const *sequences, size_t n,
                                 int dim, double value, bool left)
{
  calx_tensor **rows = cx_calloc(n, sizeof(calx_tensor *));
  if (rows == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  int64_t steps = longest(sequences, n);
  for (size_t i = 0; i < n; i++) {
    rows[i] = padded_to(sequences[i], steps, value, left);
  }
  calx_tensor *y = calx_stack(rows, n, dim);
  cx_free(rows);
  return y;
}

calx_tensor *calx_pad_sequence_with(calx_tensor *const *sequences, size_t count,
                                    const calx_pad_sequence_options *o)
{
  CX_OPS_COMPOSITE("pad_sequence");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(pad_sequence, o, bad);
  bad = check_sequences("pad_sequence", sequences, count);
  if (bad != NULL) return bad;
  const char *side = o->padding_side != NULL ? o->padding_side : "right";
  bool left = strcmp(side, "left") == 0;
  if (!left && strcmp(side, "right") != 0) {
    return cx_ops_invalid(
        "pad_sequence: padding_side '%s', 'left' or 'right' "
        "is wanted",
        side);
  }
  return stack_padded(sequences, count, o->batch_first ? 0 : 1,
                      o->padding_value, left);
}

calx_packed_sequence calx_pack_sequence_with(
    calx_tensor *const *sequences, size_t count,
    const calx_pack_sequence_options *o)
{
  static const char op[] = "pack_sequence";
  CX_OPS_COMPOSITE(op);
  calx_pack_sequence_options own;
  calx_status *status = cx_options_take(op, o, &own, sizeof own);
  if (status != NULL) return failed(cx_lazy_tensor_poison(status));
  calx_tensor *bad = check_sequences(op, sequences, count);
  if (bad != NULL) return failed(bad);
  int64_t *numbers = cx_calloc(count, sizeof *numbers), n = (int64_t)count;
  if (numbers == NULL) {
    return failed(cx_lazy_tensor_poison(cx_out_of_memory()));
  }
  for (size_t i = 0; i < count; i++) {
    numbers[i] = calx_tensor_dim(sequences[i], 0);
  }
  bad = check_lengths(op, numbers, n, longest(sequences, count),
                      !own.no_enforce_sorted);
  calx_tensor *lengths = bad;
  if (bad == NULL) {
    lengths = calx_host_tensor(numbers, CALX_I64, calx_dims_of(&n, 1));
    lengths = calx_to(lengths, calx_tensor_device(sequences[0]));
  }
  cx_free(numbers);
  if (bad != NULL) return failed(bad);
  calx_tensor *x = stack_padded(sequences, count, 1, 0, false);
  return (calx_packed_sequence){ .data = x, .lengths = lengths };
}

// ---- unpacking --------------------------------------------------------------

calx_tensor *calx_pad_packed_sequence_with(
    calx_packed_sequence sequence, const calx_pad_packed_sequence_options *o)
{
  static const char op[] = "pad_packed_sequence";
  CX_OPS_COMPOSITE(op);
  calx_tensor *bad, *x = sequence.data;
  CX_OPS_TAKE_OPTIONS(pad_packed_sequence, o, bad);
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  if (cx_ops_unfit(op, &sequence.lengths, 1, &bad)) return bad;
  int64_t steps = calx_tensor_dim(x, 0);
  if (o->total_length < 0 ||
      (o->total_length != 0 && o->total_length < steps)) {
    return cx_ops_invalid(
        "%s: Expected total_length to be at least the length of the longest "
        "sequence in input, but got total_length=%lld and max sequence length "
        "being %lld",
        op, (long long)o->total_length, (long long)steps);
  }
  calx_create_options c = { .size = sizeof c,
                            .dtype = calx_tensor_dtype(x),
                            .device = calx_tensor_device(x) };
  calx_tensor *mask = cx_ops_before_lengths(sequence.lengths, steps);
  int64_t dims[CALX_MAX_RANK];
  size_t rank = calx_tensor_rank(x);
  for (int i = 0; i < (int)rank; i++) {
    dims[i] = i < 2 ? calx_tensor_dim(x, i) : 1;
  }
  mask = calx_reshape(mask, calx_dims_of(dims, rank));
  calx_tensor *value = calx_full_with(CALX_SCALAR, o->padding_value, &c);
  x = calx_where(mask, x, value);
  if (o->total_length != 0) {
    x = padded_to(x, o->total_length, o->padding_value, false);
  }
  return o->batch_first ? calx_transpose(x, 0, 1) : x;
}

// NULL: the rows can be sliced; *out_numbers are their lengths.
static calx_tensor *check_rows(const char *op, calx_tensor **x,
                               calx_tensor *lengths, size_t count,
                               bool batch_first, int64_t **out_numbers)
{
  calx_tensor *bad;
  *out_numbers = NULL;
  if (cx_ops_unfit(op, x, 1, &bad)) return bad;
  if (lengths == NULL || calx_tensor_rank(*x) < 2) {
    return cx_ops_invalid("%s: %s, (steps, batch, …) and lengths are wanted",
                          op, cx_graph_shape_str(cx_lazy_tensor_shape(*x)));
  }
  if (batch_first) *x = calx_transpose(*x, 0, 1);
  int64_t n = calx_tensor_dim(*x, 1);
  if (calx_tensor_numel(lengths) != n || (int64_t)count != n) {
    return cx_ops_invalid("%s: %lld lengths and %zu results of %lld rows", op,
                          (long long)calx_tensor_numel(lengths), count,
                          (long long)n);
  }
  *out_numbers = read_lengths(op, lengths, &bad);
  if (*out_numbers == NULL) return bad;
  return check_lengths(op, *out_numbers, n, calx_tensor_dim(*x, 0), false);
}

static void unpad(const char *op, calx_tensor *x, calx_tensor *lengths,
                  bool batch_first, calx_tensor **out, size_t count)
{
  int64_t *numbers;
  calx_tensor *bad = check_rows(op, &x, lengths, count, batch_first, &numbers);
  for (size_t i = 0; i < count; i++) {
    int64_t at = (int64_t)i;
    if (bad != NULL) {
      out[i] = bad;
      continue;
    }
    calx_tensor *row = calx_squeeze(calx_slice(x, 1, at, at + 1, 1), 1);
    out[i] = calx_slice(row, 0, 0, numbers[i], 1);
  }
  cx_free(numbers);
}

void calx_unpad_sequence_with(calx_tensor *padded, calx_tensor *lengths,
                              calx_tensor **out_rows, size_t count,
                              const calx_unpad_sequence_options *o)
{
  CX_OPS_COMPOSITE("unpad_sequence");
  calx_unpad_sequence_options own;
  calx_status *status = cx_options_take("unpad_sequence", o, &own, sizeof own);
  if (status != NULL) {
    calx_tensor *bad = cx_lazy_tensor_poison(status);
    for (size_t i = 0; i < count; i++) out_rows[i] = bad;
    return;
  }
  unpad("unpad_sequence", padded, lengths, own.batch_first, out_rows, count);
}

void calx_unpack_sequence(calx_packed_sequence sequence, calx_tensor **out_rows,
                          size_t count)
{
  CX_OPS_COMPOSITE("unpack_sequence");
  unpad("unpack_sequence", sequence.data, sequence.lengths, false, out_rows,
        count);
}
