/**
 * calx/transformer.h: attention with several heads, and transformers.
 *
 * Masks are PyTorch's: of bools, true says that a query does not see a key
 * (calx_scaled_dot_product_attention has it the other way); of floating type,
 * the mask is added to the scores. Where .is_causal is set and there is no
 * mask, a query sees keys up to its own place; PyTorch wants the mask beside
 * that hint, and here it decides too. A query that sees no key gives 0,
 * and NaN where attention weights are asked for.
 *
 * Letters: N batch, L length of the queries (of tgt), S length of the keys (of
 * src), E embed_dim or d_model, h num_heads.
 *
 * @threads thread-compatible
 */
#ifndef CALX_TRANSFORMER_H
#define CALX_TRANSFORMER_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- attention --------------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_multihead_attention_options {
  CALX_NAMED size_t size;
  CALX_NAMED double dropout; /* of the weights, in training */
  CALX_NAMED bool no_bias;
  CALX_NAMED bool add_bias_kv;   /* one more key and value, which are learned */
  CALX_NAMED bool add_zero_attn; /* one more key and value of zeros */
  CALX_NAMED int64_t kdim;       /* size of the keys; 0 = E */
  CALX_NAMED int64_t vdim;       /* size of the values; 0 = E */
  CALX_NAMED bool batch_first;   /* (N, L, E) and (N, S, E) */
  CALX_NAMED calx_dtype dtype;   /* default f32 */
} calx_nn_multihead_attention_options;
/**
 * Attention with parameters in_proj_weight (3 E, E), or q_proj_weight,
 * k_proj_weight and v_proj_weight where kdim or vdim is not E, in_proj_bias,
 * bias_k, bias_v, and the layer out_proj. calx_forward() is self-attention
 * without a mask.
 * @shape x (L, N, E) or (L, E)  @source torch.nn.MultiheadAttention
 */
CALX_API calx_module *calx_nn_multihead_attention_with(
    calx_module *parent, const char *name, int64_t embed_dim, int64_t num_heads,
    const calx_nn_multihead_attention_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_multihead_attention_forward_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *key_padding_mask; /* (N, S) or (S) */
  CALX_NAMED calx_tensor *attn_mask;        /* (L, S) or (N h, L, S) */
  CALX_NAMED bool is_causal;
  CALX_NAMED bool no_average_attn_weights; /* weights of each head */
  /* the weights (N, L, S), or (N, h, L, S); NULL: not wanted */
  CALX_NAMED calx_tensor **out_attn_weights;
} calx_multihead_attention_forward_options;
/**
 * Attention of other keys and values, with masks.
 * @shape query (L, N, E), key (S, N, kdim), value (S, N, vdim) or without N
 *        -> as query
 * @errors INVALID_ARGUMENT another kind of module; shapes or types that do not
 *         agree
 * @source torch.nn.MultiheadAttention.forward
 */
CALX_API calx_tensor *calx_multihead_attention_forward_with(
    calx_module *m, calx_tensor *query, calx_tensor *key, calx_tensor *value,
    const calx_multihead_attention_forward_options *options);

// ---- transformers -----------------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nn_transformer_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t dim_feedforward; /* 0 = 2048 */
  CALX_NAMED double dropout;          /* 0 = 0.1, CALX_ZERO = 0 */
  CALX_NAMED const char *activation;  /* "relu" (the default) or "gelu" */
  CALX_NAMED double layer_norm_eps;   /* 0 = 1e-5 */
  CALX_NAMED bool batch_first;
  CALX_NAMED bool norm_first; /* norms before attention and products */
  CALX_NAMED bool no_bias;
  /* of the encoder and decoder: a norm of the result */
  CALX_NAMED bool final_norm;
  CALX_NAMED int64_t num_encoder_layers; /* of Transformer only; 0 = 6 */
  CALX_NAMED int64_t num_decoder_layers; /* of Transformer only; 0 = 6 */
  CALX_NAMED calx_dtype dtype;           /* default f32 */
} calx_nn_transformer_options;
/** self_attn, linear1, linear2, norm1, norm2. calx_forward() is without masks;
 *  see calx_transformer_encoder_forward.
 *  @shape x (S, N, E) or (S, E)  @source torch.nn.TransformerEncoderLayer */
CALX_API calx_module *calx_nn_transformer_encoder_layer_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *options);
/** self_attn, multihead_attn, linear1, linear2, norm1 to norm3.
 *  calx_forward2(m, tgt, memory) is without masks; see
 *  calx_transformer_decoder_forward.
 *  @shape tgt (L, N, E) or (L, E)  @source torch.nn.TransformerDecoderLayer */
CALX_API calx_module *calx_nn_transformer_decoder_layer_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *options);
/** A stack of encoder layers, layers.0 and on, and norm. PyTorch copies one
 *  layer; here each is made, with initial values of its own.
 *  @shape x (S, N, E) or (S, E)  @source torch.nn.TransformerEncoder */
CALX_API calx_module *calx_nn_transformer_encoder_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    int64_t num_layers, const calx_nn_transformer_options *options);
/** The same of decoder layers. @shape tgt (L, N, E) or (L, E)
 *  @source torch.nn.TransformerDecoder */
CALX_API calx_module *calx_nn_transformer_decoder_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    int64_t num_layers, const calx_nn_transformer_options *options);

/** An encoder of src and a decoder of tgt, each with a norm of its result; all
 *  matrices are Xavier's uniform. calx_forward2(m, src, tgt) is without masks;
 *  see calx_transformer_forward.
 *  @shape src (S, N, E) and tgt (L, N, E), or without N
 *  @source torch.nn.Transformer */
CALX_API calx_module *calx_nn_transformer_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *options);

/** Zero means default. A mask that the module has no use for is an error. */
typedef struct CALX_OPTIONS calx_transformer_forward_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_tensor *src_mask;                /* (S, S) or (N h, S, S) */
  CALX_NAMED calx_tensor *src_key_padding_mask;    /* (N, S) or (S) */
  CALX_NAMED bool src_is_causal;                   /* of the encoder */
  CALX_NAMED calx_tensor *tgt_mask;                /* (L, L) or (N h, L, L) */
  CALX_NAMED calx_tensor *tgt_key_padding_mask;    /* (N, L) or (L) */
  CALX_NAMED bool tgt_is_causal;                   /* of the decoder */
  CALX_NAMED calx_tensor *memory_mask;             /* (L, S) or (N h, L, S) */
  CALX_NAMED calx_tensor *memory_key_padding_mask; /* (N, S) or (S) */
  CALX_NAMED bool memory_is_causal;
} calx_transformer_forward_options;
/** calx_forward() of an encoder or encoder layer with masks: those of src.
 *  @shape src (S, N, E) or (S, E) -> the same
 *  @errors as calx_multihead_attention_forward
 *  @source torch.nn.TransformerEncoder.forward */
CALX_API calx_tensor *calx_transformer_encoder_forward_with(
    calx_module *m, calx_tensor *src,
    const calx_transformer_forward_options *options);
/** calx_forward2() of a decoder or decoder layer with masks: those of tgt and
 *  memory. @shape tgt (L, N, E), memory (S, N, E), or without N -> as tgt
 *  @errors as calx_multihead_attention_forward
 *  @source torch.nn.TransformerDecoder.forward */
CALX_API calx_tensor *calx_transformer_decoder_forward_with(
    calx_module *m, calx_tensor *tgt, calx_tensor *memory,
    const calx_transformer_forward_options *options);
/** calx_forward2() of a Transformer with masks. @shape src (S, N, E), tgt (L,
 * N, E), or without N -> as tgt @errors as calx_multihead_attention_forward
 *  @source torch.nn.Transformer.forward */
CALX_API calx_tensor *calx_transformer_forward_with(
    calx_module *m, calx_tensor *src, calx_tensor *tgt,
    const calx_transformer_forward_options *options);

/** The mask (size, size) that is -inf above the diagonal, else 0. @shape none
 *  @errors as calx_zeros
 *  @source torch.nn.Transformer.generate_square_subsequent_mask */
CALX_API calx_tensor *calx_generate_square_subsequent_mask_with(
    int64_t size, const calx_create_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_nn_transformer_options_ .dropout = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nn_transformer_options, calx_written_(&o->dropout);)
#endif
#ifdef __cplusplus
}
#else
// clang-format off
#define CALX_TRANSFORMER_1_(fn, O, m, x, ...) (CALX_SITE_ fn(m, CALX_SITE_T_(x), CALX_SITE_O_((&(O){ __VA_ARGS__ }))))
#define CALX_TRANSFORMER_2_(fn, O, m, x, y, ...) (CALX_SITE_ fn(m, CALX_SITE_T_(x), CALX_SITE_T_(y), CALX_SITE_O_((&(O){ __VA_ARGS__ }))))
#define CALX_ATTENTION_3_(m, q, k, v, ...) (CALX_SITE_ calx_multihead_attention_forward_with(m, CALX_SITE_T_(q), CALX_SITE_T_(k), CALX_SITE_T_(v), CALX_SITE_O_((&(calx_multihead_attention_forward_options){ __VA_ARGS__ }))))
#define calx_nn_multihead_attention(...) CALX_CALL_4_(calx_nn_multihead_attention_with, calx_nn_multihead_attention_options, __VA_ARGS__)
#define calx_nn_transformer_encoder_layer(...) CALX_CALL_4_W_(calx_nn_transformer_encoder_layer_with, calx_nn_transformer_options, __VA_ARGS__)
#define calx_nn_transformer_decoder_layer(...) CALX_CALL_4_W_(calx_nn_transformer_decoder_layer_with, calx_nn_transformer_options, __VA_ARGS__)
#define calx_nn_transformer_encoder(...) CALX_CALL_5_W_(calx_nn_transformer_encoder_with, calx_nn_transformer_options, __VA_ARGS__)
#define calx_nn_transformer_decoder(...) CALX_CALL_5_W_(calx_nn_transformer_decoder_with, calx_nn_transformer_options, __VA_ARGS__)
#define calx_nn_transformer(...) CALX_CALL_4_W_(calx_nn_transformer_with, calx_nn_transformer_options, __VA_ARGS__)
#define calx_transformer_forward(m, x, ...) CALX_TRANSFORMER_2_(calx_transformer_forward_with, calx_transformer_forward_options, m, x, __VA_ARGS__, .size = sizeof(calx_transformer_forward_options))
#define calx_multihead_attention_forward(m, q, k, ...) CALX_ATTENTION_3_(m, q, k, __VA_ARGS__, .size = sizeof(calx_multihead_attention_forward_options))
#define calx_transformer_encoder_forward(m, ...) CALX_TRANSFORMER_1_(calx_transformer_encoder_forward_with, calx_transformer_forward_options, m, __VA_ARGS__, .size = sizeof(calx_transformer_forward_options))
#define calx_transformer_decoder_forward(m, x, ...) CALX_TRANSFORMER_2_(calx_transformer_decoder_forward_with, calx_transformer_forward_options, m, x, __VA_ARGS__, .size = sizeof(calx_transformer_forward_options))
#define calx_generate_square_subsequent_mask(...) CALX_CALL_1_(calx_generate_square_subsequent_mask_with, calx_create_options, __VA_ARGS__)
// clang-format on
#endif
#endif
