/**
 * calx/rnn_utils.h: sequences of several lengths (torch.nn.utils.rnn).
 *
 *   calx_packed_sequence p =
 *       calx_pack_padded_sequence(x, lengths, .no_enforce_sorted = true);
 *   p = calx_rnn_forward_packed(lstm, p, .out_hn = &hn);
 *   calx_tensor *y = calx_pad_packed_sequence(p);
 *
 * Sizes are static in a program, so a packed sequence is padded still, and has
 * the lengths beside it: another list of lengths compiles nothing. Rows need no
 * order; the calls that check it do so because PyTorch's do.
 *
 * Letters as in calx/rnn.h.
 *
 * @threads thread-compatible
 */
#ifndef CALX_RNN_UTILS_H
#define CALX_RNN_UTILS_H

#include "calx/rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rows of several lengths. @source torch.nn.utils.rnn.PackedSequence */
typedef struct calx_packed_sequence {
  calx_tensor *data; /* (T, N, …); what is past a length is not looked at */
  calx_tensor *lengths; /* (N), whole numbers, on the device of data */
} calx_packed_sequence;

/** Zero means default. */
typedef struct CALX_OPTIONS calx_pack_padded_sequence_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool batch_first;
  CALX_NAMED bool no_enforce_sorted; /* lengths may be in any order */
} calx_pack_padded_sequence_options;
/**
 * A padded tensor with its lengths.
 * @param lengths  (N); on the host (calx_host_tensor()) they are checked. Those
 *                 on a device are not read: see calx/rnn.h
 * @shape input (T, N, …), or (N, T, …) with .batch_first
 * @return both are poison on an error
 * @errors INVALID_ARGUMENT a length that is not 1 to T, not one for each row,
 *         or, unless .no_enforce_sorted, longer than that before it
 * @source torch.nn.utils.rnn.pack_padded_sequence
 */
CALX_API calx_packed_sequence calx_pack_padded_sequence_with(
    calx_tensor *input, calx_tensor *lengths,
    const calx_pack_padded_sequence_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_pad_packed_sequence_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool batch_first;
  CALX_NAMED double padding_value;
  CALX_NAMED int64_t total_length; /* at least T; 0 = T */
} calx_pad_packed_sequence_options;
/**
 * The padded tensor, with the padding value past each row's length. T is that
 * of the packed tensor, where PyTorch's is the greatest length: it may depend
 * on no value. The lengths are the struct's.
 * @shape (T, N, …), or (N, T, …) with .batch_first
 * @errors INVALID_ARGUMENT a total_length below T
 * @source torch.nn.utils.rnn.pad_packed_sequence
 */
CALX_API calx_tensor *calx_pad_packed_sequence_with(
    calx_packed_sequence sequence,
    const calx_pad_packed_sequence_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_pad_sequence_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool batch_first;
  CALX_NAMED double padding_value;
  CALX_NAMED const char *padding_side; /* "right" or "left"; NULL = "right" */
} calx_pad_sequence_options;
/**
 * Stacks sequences, each padded to the longest.
 * @shape (L_i, …) each -> (T, N, …), or (N, T, …) with .batch_first
 * @errors INVALID_ARGUMENT no sequences, or of different sizes but the first
 * @source torch.nn.utils.rnn.pad_sequence
 */
CALX_API calx_tensor *calx_pad_sequence_with(
    calx_tensor *const *sequences, size_t count,
    const calx_pad_sequence_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_pack_sequence_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool no_enforce_sorted;
} calx_pack_sequence_options;
/** calx_pad_sequence() with its lengths. @shape (L_i, …) each
 *  @errors as calx_pad_sequence and calx_pack_padded_sequence
 *  @source torch.nn.utils.rnn.pack_sequence */
CALX_API calx_packed_sequence
calx_pack_sequence_with(calx_tensor *const *sequences, size_t count,
                        const calx_pack_sequence_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_unpad_sequence_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool batch_first;
} calx_unpad_sequence_options;
/**
 * The rows of a padded tensor, each as long as it is. Lengths on a device are
 * read, so what they need runs; each list of lengths is another program.
 * @param out_rows  `count` tensors of the current scope; count is N
 * @shape padded (T, N, …) -> (L_i, …) each
 * @errors INVALID_ARGUMENT as calx_pack_padded_sequence; the rows are poison
 * @source torch.nn.utils.rnn.unpad_sequence
 */
CALX_API void calx_unpad_sequence_with(
    calx_tensor *padded, calx_tensor *lengths, calx_tensor **out_rows,
    size_t count, const calx_unpad_sequence_options *options);
/** The same of a packed sequence. @shape as calx_unpad_sequence
 *  @errors as calx_unpad_sequence
 *  @source torch.nn.utils.rnn.unpack_sequence */
CALX_API void calx_unpack_sequence(calx_packed_sequence sequence,
                                   calx_tensor **out_rows, size_t count);

/**
 * calx_rnn_forward() of a packed sequence; a layer with .batch_first takes it
 * too. .lengths are the sequence's.
 * @shape data (T, N, F) -> (T, N, D P)
 * @errors as calx_rnn_forward
 * @source torch.nn.LSTM.forward of a PackedSequence
 */
CALX_API calx_packed_sequence
calx_rnn_forward_packed_with(calx_module *m, calx_packed_sequence sequence,
                             const calx_rnn_forward_options *options);

#ifdef __cplusplus
}
#else
#define CALX_PACK_PADDED_SEQUENCE_(input, lengths, ...) \
  (CALX_SITE_ calx_pack_padded_sequence_with(           \
      CALX_SITE_T_(input), lengths,                     \
      &(calx_pack_padded_sequence_options){ __VA_ARGS__ }))
#define calx_pack_padded_sequence(input, ...) \
  CALX_PACK_PADDED_SEQUENCE_(                 \
      input, __VA_ARGS__, .size = sizeof(calx_pack_padded_sequence_options))
#define CALX_PAD_PACKED_SEQUENCE_(sequence, ...) \
  (CALX_SITE_ calx_pad_packed_sequence_with(     \
      sequence, &(calx_pad_packed_sequence_options){ __VA_ARGS__ }))
#define calx_pad_packed_sequence(...)    \
  CALX_PAD_PACKED_SEQUENCE_(__VA_ARGS__, \
                            .size = sizeof(calx_pad_packed_sequence_options))
#define CALX_PAD_SEQUENCE_(sequences, count, ...) \
  (CALX_SITE_ calx_pad_sequence_with(             \
      sequences, count, &(calx_pad_sequence_options){ __VA_ARGS__ }))
#define calx_pad_sequence(sequences, ...)    \
  CALX_PAD_SEQUENCE_(sequences, __VA_ARGS__, \
                     .size = sizeof(calx_pad_sequence_options))
#define CALX_PACK_SEQUENCE_(sequences, count, ...) \
  (CALX_SITE_ calx_pack_sequence_with(             \
      sequences, count, &(calx_pack_sequence_options){ __VA_ARGS__ }))
#define calx_pack_sequence(sequences, ...)    \
  CALX_PACK_SEQUENCE_(sequences, __VA_ARGS__, \
                      .size = sizeof(calx_pack_sequence_options))
#define CALX_UNPAD_SEQUENCE_(padded, lengths, out_rows, count, ...) \
  (CALX_SITE_ calx_unpad_sequence_with(                             \
      CALX_SITE_T_(padded), lengths, out_rows, count,               \
      &(calx_unpad_sequence_options){ __VA_ARGS__ }))
#define calx_unpad_sequence(padded, lengths, out_rows, ...)    \
  CALX_UNPAD_SEQUENCE_(padded, lengths, out_rows, __VA_ARGS__, \
                       .size = sizeof(calx_unpad_sequence_options))
#define CALX_RNN_FORWARD_PACKED_(m, sequence, ...) \
  (CALX_SITE_ calx_rnn_forward_packed_with(        \
      m, sequence, &(calx_rnn_forward_options){ __VA_ARGS__ }))
#define calx_rnn_forward_packed(m, ...)    \
  CALX_RNN_FORWARD_PACKED_(m, __VA_ARGS__, \
                           .size = sizeof(calx_rnn_forward_options))
#ifndef CALX_NO_SITES
#define calx_unpack_sequence(sequence, out_rows, count) \
  (calx_at_(CALX_HERE), calx_unpack_sequence(sequence, out_rows, count))
#endif
#endif
#endif
