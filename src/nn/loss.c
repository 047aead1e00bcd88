// nn/loss: the losses of torch.nn: layers of functions of two to four tensors,
// with the functions' options.
#include "nn/layer.h"
#include "ops/ops.h"

// A loss that is called with one tensor.
static calx_tensor *wants_more(void *self, calx_tensor *x)
{
  (void)x;
  calx_module *m = *(calx_module **)self;
  return cx_lazy_tensor_poison(cx_invalid(
      "forward: layer '%s' (%s) takes %zu tensors: call calx_forward_n",
      cx_nn_module_path(m), m->kind, m->n_in));
}

// A weight of the options becomes a buffer, as in PyTorch; the option is what
// the buffer is at each call.
static void keep(calx_module *m, const char *name, calx_tensor **option)
{
  if (*option != NULL) calx_module_buffer(m, name, *option);
  *option = NULL;
}

// keeps: takes the tensors out of the options s->o; sets: puts them into o.
#define LOSS(name, Kind, function, options_type, count, arguments, keeps,      \
             sets)                                                             \
  typedef struct name##_state {                                                \
    calx_module *m;                                                            \
    options_type o;                                                            \
  } name##_state;                                                              \
  static calx_tensor *name##_forward(void *self, calx_tensor *const *in)       \
  {                                                                            \
    const name##_state *s = self;                                              \
    options_type o = s->o;                                                     \
    sets;                                                                      \
    return calx_##function##_with arguments;                                   \
  }                                                                            \
  calx_module *calx_nn_##name##_with(calx_module *parent, const char *child,   \
                                     const options_type *options)              \
  {                                                                            \
    static const cx_nn_layer layer = { Kind, #name, wants_more, NULL, NULL };  \
    void *state;                                                               \
    calx_module *m =                                                           \
        cx_nn_make(&layer, parent, child, sizeof(name##_state), &state);       \
    name##_state *s = state;                                                   \
    if (s == NULL) return m;                                                   \
    calx_module_set_forward_n(m, count, name##_forward);                       \
    cx_nn_module_fail(m, cx_options_take(#name, options, &s->o, sizeof s->o)); \
    s->o.size = sizeof s->o;                                                   \
    keeps;                                                                     \
    return m;                                                                  \
  }
#define TWO (in[0], in[1], &o)
#define THREE (in[0], in[1], in[2], &o)
#define FOUR (in[0], in[1], in[2], in[3], &o)
#define PLAIN(name, Kind, function, options_type, count, arguments) \
  LOSS(name, Kind, function, options_type, count, arguments, (void)0, (void)0)
#define WEIGHTED(name, Kind, function, options_type) \
  LOSS(name, Kind, function, options_type, 2, TWO,   \
       keep(m, "weight", &s->o.weight),              \
       o.weight = cx_nn_tensor(s->m, "weight"))

PLAIN(l1_loss, "L1Loss", l1_loss, calx_loss_options, 2, TWO)
PLAIN(mse_loss, "MSELoss", mse_loss, calx_loss_options, 2, TWO)
PLAIN(smooth_l1_loss, "SmoothL1Loss", smooth_l1_loss,
      calx_smooth_l1_loss_options, 2, TWO)
PLAIN(huber_loss, "HuberLoss", huber_loss, calx_huber_loss_options, 2, TWO)
PLAIN(kl_div_loss, "KLDivLoss", kl_div, calx_kl_div_options, 2, TWO)
PLAIN(poisson_nll_loss, "PoissonNLLLoss", poisson_nll_loss,
      calx_poisson_nll_loss_options, 2, TWO)
PLAIN(soft_margin_loss, "SoftMarginLoss", soft_margin_loss, calx_loss_options,
      2, TWO)
PLAIN(hinge_embedding_loss, "HingeEmbeddingLoss", hinge_embedding_loss,
      calx_hinge_embedding_loss_options, 2, TWO)
PLAIN(multi_label_margin_loss, "MultiLabelMarginLoss", multilabel_margin_loss,
      calx_loss_options, 2, TWO)
PLAIN(margin_ranking_loss, "MarginRankingLoss", margin_ranking_loss,
      calx_margin_loss_options, 3, THREE)
PLAIN(cosine_embedding_loss, "CosineEmbeddingLoss", cosine_embedding_loss,
      calx_margin_loss_options, 3, THREE)
PLAIN(triplet_margin_loss, "TripletMarginLoss", triplet_margin_loss,
      calx_triplet_margin_loss_options, 3, THREE)
PLAIN(triplet_margin_with_distance_loss, "TripletMarginWithDistanceLoss",
      triplet_margin_with_distance_loss,
      calx_triplet_margin_with_distance_loss_options, 3, THREE)
PLAIN(gaussian_nll_loss, "GaussianNLLLoss", gaussian_nll_loss,
      calx_gaussian_nll_loss_options, 3, THREE)
PLAIN(ctc_loss, "CTCLoss", ctc_loss, calx_ctc_loss_options, 4, FOUR)
WEIGHTED(nll_loss, "NLLLoss", nll_loss, calx_nll_loss_options)
WEIGHTED(cross_entropy_loss, "CrossEntropyLoss", cross_entropy,
         calx_nll_loss_options)
WEIGHTED(bce_loss, "BCELoss", binary_cross_entropy,
         calx_binary_cross_entropy_options)
WEIGHTED(multi_margin_loss, "MultiMarginLoss", multi_margin_loss,
         calx_multi_margin_loss_options)
WEIGHTED(multi_label_soft_margin_loss, "MultiLabelSoftMarginLoss",
         multilabel_soft_margin_loss, calx_multilabel_soft_margin_loss_options)
LOSS(bce_with_logits_loss, "BCEWithLogitsLoss",
     binary_cross_entropy_with_logits,
     calx_binary_cross_entropy_with_logits_options, 2, TWO,
     (keep(m, "weight", &s->o.weight), keep(m, "pos_weight", &s->o.pos_weight)),
     (o.weight = cx_nn_tensor(s->m, "weight"),
      o.pos_weight = cx_nn_tensor(s->m, "pos_weight")))
