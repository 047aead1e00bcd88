/**
 * calx/optimizers.h: the optimisers beside those of optim.h. Names, defaults
 * and rules are those of torch.optim; LAMB, LARS and Lion, which it lacks, have
 * those of their papers.
 *
 * @threads thread-compatible
 */
#ifndef CALX_OPTIMIZERS_H
#define CALX_OPTIMIZERS_H

#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero means default. */
typedef struct CALX_OPTIONS calx_adadelta_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED double rho;          /* 0 = 0.9, CALX_ZERO = 0 */
  CALX_NAMED double eps;          /* 0 = 1e-6, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_adadelta_options;
/** State: "square_avg", "acc_delta".
 *  @errors as calx_sgd; rho outside [0, 1]
 *  @source torch.optim.Adadelta; M. Zeiler (2012) */
CALX_API calx_optimizer *calx_adadelta_with(
    calx_module *model, const calx_adadelta_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_rmsprop_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1e-2, CALX_ZERO = 0 */
  CALX_NAMED double alpha;        /* 0 = 0.99, CALX_ZERO = 0 */
  CALX_NAMED double eps;          /* 0 = 1e-8, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED double momentum;
  CALX_NAMED bool centered; /* divides by the estimated standard deviation */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_rmsprop_options;
/** State: "square_avg", "momentum_buffer", "grad_avg".
 *  @errors as calx_sgd
 *  @source torch.optim.RMSprop; T. Tieleman and G. Hinton (2012) */
CALX_API calx_optimizer *calx_rmsprop_with(calx_module *model,
                                           const calx_rmsprop_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_adamax_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 2e-3, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas);      /* 0 = 0.9 and 0.999, CALX_ZERO = 0 */
  CALX_NAMED double eps;          /* 0 = 1e-8, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_adamax_options;
/** State: "exp_avg", "exp_inf".
 *  @errors as calx_adam
 *  @source torch.optim.Adamax; D. Kingma and J. Ba (2014) */
CALX_API calx_optimizer *calx_adamax_with(calx_module *model,
                                          const calx_adamax_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_nadam_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;                   /* 0 = 2e-3, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas);              /* 0 = 0.9 and 0.999, CALX_ZERO = 0 */
  CALX_NAMED double eps;                  /* 0 = 1e-8, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay;         /* L2, unless it is decoupled */
  CALX_NAMED double momentum_decay;       /* 0 = 4e-3, CALX_ZERO = 0 */
  CALX_NAMED bool decoupled_weight_decay; /* as NAdamW */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_nadam_options;
/** State: "exp_avg", "exp_avg_sq"; the number mu_product is in the state dict.
 *  @errors as calx_adam; momentum_decay negative
 *  @source torch.optim.NAdam; T. Dozat (2016) */
CALX_API calx_optimizer *calx_nadam_with(calx_module *model,
                                         const calx_nadam_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_radam_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;                   /* 0 = 1e-3, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas);              /* 0 = 0.9 and 0.999, CALX_ZERO = 0 */
  CALX_NAMED double eps;                  /* 0 = 1e-8, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay;         /* L2, unless it is decoupled */
  CALX_NAMED bool decoupled_weight_decay; /* as RAdamW */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_radam_options;
/** State: "exp_avg", "exp_avg_sq".
 *  @errors as calx_adam
 *  @source torch.optim.RAdam; L. Liu et al. (2019) */
CALX_API calx_optimizer *calx_radam_with(calx_module *model,
                                         const calx_radam_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_rprop_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* the first step sizes; 0 = 1e-2 */
  CALX_PAIR_(double, etas);       /* factors of step sizes; 0 = 0.5, 1.2 */
  CALX_PAIR_(double, step_sizes); /* least, most; 0 = 1e-6 and 50 */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_rprop_options;
/** Resilient backpropagation. State: "prev", "step_size".
 *  @errors lr negative; etas other than 0 < etas[0] < 1 < etas[1]
 *  @source torch.optim.Rprop; M. Riedmiller and H. Braun (1993) */
CALX_API calx_optimizer *calx_rprop_with(calx_module *model,
                                         const calx_rprop_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_asgd_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1e-2, CALX_ZERO = 0 */
  CALX_NAMED double lambd;        /* decay; 0 = 1e-4, CALX_ZERO = 0 */
  CALX_NAMED double alpha;        /* power of lr's decay; 0 = 0.75 */
  CALX_NAMED double t0;           /* where averaging starts; 0 = 1e6 */
  CALX_NAMED double weight_decay; /* L2: added to the gradient */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_asgd_options;
/** Averaged stochastic gradient descent. State: "ax", the average; the numbers
 *  eta and mu are in the state dict.
 *  @errors as calx_sgd
 *  @source torch.optim.ASGD; B. Polyak and A. Juditsky (1992) */
CALX_API calx_optimizer *calx_asgd_with(calx_module *model,
                                        const calx_asgd_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_lamb_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1e-3, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas);      /* 0 = 0.9 and 0.999, CALX_ZERO = 0 */
  CALX_NAMED double eps;          /* 0 = 1e-6, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay; /* decoupled, inside of the trust ratio */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_lamb_options;
/** Adam's update, scaled for each parameter to the norm of its value. State:
 *  "exp_avg", "exp_avg_sq".
 *  @errors as calx_adam
 *  @source Y. You et al., Large batch optimization for deep learning (2019),
 *          algorithm 2, with bias correction and phi(x) = x */
CALX_API calx_optimizer *calx_lamb_with(calx_module *model,
                                        const calx_lamb_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_lars_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;                /* 0 = 1e-3, CALX_ZERO = 0 */
  CALX_NAMED double momentum;          /* 0 = 0.9, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay;      /* added to the gradient */
  CALX_NAMED double trust_coefficient; /* 0 = 1e-3 */
  CALX_NAMED double eps;               /* 0 = 1e-8, CALX_ZERO = 0 */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_lars_options;
/** SGD with momentum and a rate for each parameter: lr trust_coefficient |p| /
 *  (|g| + weight_decay |p| + eps), or lr where |p| or |g| is 0. The rate is in
 *  the momentum, as in the paper. State: "momentum_buffer".
 *  @errors as calx_sgd
 *  @source Y. You, I. Gitman and B. Ginsburg, Large batch training of
 *          convolutional networks (2017), algorithm 1 */
CALX_API calx_optimizer *calx_lars_with(calx_module *model,
                                        const calx_lars_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_lion_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1e-4, CALX_ZERO = 0 */
  CALX_PAIR_(double, betas);      /* 0 = 0.9 and 0.99, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay; /* decoupled */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_lion_options;
/** The sign of an average of the gradient. State: "exp_avg".
 *  @errors as calx_adam
 *  @source X. Chen et al., Symbolic discovery of optimization algorithms
 * (2023), algorithm 2 */
CALX_API calx_optimizer *calx_lion_with(calx_module *model,
                                        const calx_lion_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_lbfgs_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;                  /* 0 = 1, CALX_ZERO = 0 */
  CALX_NAMED int64_t max_iter;           /* of a step; 0 = 20 */
  CALX_NAMED int64_t max_eval;           /* of a step; 0 = max_iter * 5 / 4 */
  CALX_NAMED double tolerance_grad;      /* 0 = 1e-7, CALX_ZERO = 0 */
  CALX_NAMED double tolerance_change;    /* 0 = 1e-9, CALX_ZERO = 0 */
  CALX_NAMED int64_t history_size;       /* 0 = 100 */
  CALX_NAMED const char *line_search_fn; /* NULL: none; "strong_wolfe" */
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
} calx_lbfgs_options;
/**
 * Steps by an estimate of the inverse Hessian from the last changes of the
 * gradient. Its steps take a closure: calx_optimizer_step_closure(). How often
 * that is called depends on its values, so each evaluation syncs and is read.
 * The vectors are on the host, as doubles: 2 history_size + 8 of the model's
 * size. Gradients are kept. One parameter group; no shards; a step whose
 * closure fails leaves the parameters of the last iteration that ended.
 * @errors as calx_sgd; another line_search_fn; a count below 0
 * @source torch.optim.LBFGS; J. Nocedal (1980)
 */
CALX_API calx_optimizer *calx_lbfgs_with(calx_module *model,
                                         const calx_lbfgs_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_muon_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;           /* 0 = 1e-3, CALX_ZERO = 0 */
  CALX_NAMED double weight_decay; /* decoupled; 0 = 0.1, CALX_ZERO = 0 */
  CALX_NAMED double momentum;     /* 0 = 0.95, CALX_ZERO = 0 */
  CALX_NAMED bool no_nesterov;
  /* of the polynomial; 0 = 3.4445, -4.775 and 2.0315, CALX_ZERO = 0 */
  CALX_ARRAY_(double, ns_coefficients, 3);
  CALX_NAMED double eps;       /* 0 = 1e-7, CALX_ZERO = 0 */
  CALX_NAMED int64_t ns_steps; /* 1 to 99; 0 = 5 */
  /* what lr is multiplied by for a parameter (m, n): NULL, "original":
   * sqrt(max(1, m / n)); "match_rms_adamw": 0.2 sqrt(max(m, n)) */
  CALX_NAMED const char *adjust_lr_fn;
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_muon_options;
/**
 * Momentum whose matrix is made nearly orthogonal by a Newton-Schulz iteration,
 * which computes in bf16, as PyTorch's does. Of matrices alone: other
 * parameters, embeddings and the last layer have another optimiser. State:
 * "momentum_buffer". calx_zero_redundancy_optimizer() refuses it: shards have
 * no rows.
 * @errors as calx_sgd; a parameter that is no matrix; another adjust_lr_fn
 * @source torch.optim.Muon; K. Jordan et al. (2024); J. Liu et al., Muon is
 *         scalable for LLM training (2025)
 */
CALX_API calx_optimizer *calx_muon_with(calx_module *model,
                                        const calx_muon_options *options);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_adafactor_options {
  CALX_NAMED size_t size;
  CALX_NAMED double lr;          /* 0 = 1e-2, CALX_ZERO = 0 */
  CALX_NAMED double beta2_decay; /* 0 = -0.8, CALX_ZERO = 0 */
  /* [0]: 0 = the type's epsilon; [1]: 0 = 1e-3; CALX_ZERO = 0 */
  CALX_PAIR_(double, eps);
  CALX_NAMED double d;            /* clips the update; 0 = 1 */
  CALX_NAMED double weight_decay; /* decoupled */
  CALX_NAMED bool maximize;
  CALX_NAMED bool keep_gradients;
  CALX_NAMED calx_tensor *const *params; /* NULL = all of the model's */
  CALX_NAMED size_t n_params;
  CALX_NAMED bool master_weights;
} calx_adafactor_options;
/**
 * State: of a matrix (…, m, n) "row_var" (…, m, 1) and "col_var" (…, 1, n); of
 * a vector "variance". calx_zero_redundancy_optimizer() refuses it: shards have
 * no rows.
 * @errors as calx_sgd; beta2_decay above 0; eps negative; d below 1
 * @source torch.optim.Adafactor; N. Shazeer and M. Stern (2018)
 */
CALX_API calx_optimizer *calx_adafactor_with(
    calx_module *model, const calx_adafactor_options *options);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_adadelta_options_ \
  .lr = CALX_UNWRITTEN_, .rho = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_adadelta_options, calx_written_(&o->lr);
              calx_written_(&o->rho); calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_rmsprop_options_ \
  .lr = CALX_UNWRITTEN_, .alpha = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_rmsprop_options, calx_written_(&o->lr);
              calx_written_(&o->alpha); calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_adamax_options_                             \
  .lr = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ }, \
  .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_adamax_options, calx_written_(&o->lr);
              calx_written_pair_(o->betas); calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_nadam_options_                              \
  .lr = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ }, \
  .eps = CALX_UNWRITTEN_, .momentum_decay = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_nadam_options, calx_written_(&o->lr);
              calx_written_pair_(o->betas); calx_written_(&o->eps);
              calx_written_(&o->momentum_decay);)
#define CALX_UNWRITTEN_calx_radam_options_                              \
  .lr = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ }, \
  .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_radam_options, calx_written_(&o->lr);
              calx_written_pair_(o->betas); calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_asgd_options_ \
  .lr = CALX_UNWRITTEN_, .lambd = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_asgd_options, calx_written_(&o->lr);
              calx_written_(&o->lambd);)
#define CALX_UNWRITTEN_calx_lamb_options_                               \
  .lr = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ }, \
  .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_lamb_options, calx_written_(&o->lr);
              calx_written_pair_(o->betas); calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_lars_options_ \
  .lr = CALX_UNWRITTEN_, .momentum = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_lars_options, calx_written_(&o->lr);
              calx_written_(&o->momentum); calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_lion_options_ \
  .lr = CALX_UNWRITTEN_, .betas = { CALX_UNWRITTEN_, CALX_UNWRITTEN_ },
CALX_WRITTEN_(calx_lion_options, calx_written_(&o->lr);
              calx_written_pair_(o->betas);)
#define CALX_UNWRITTEN_calx_lbfgs_options_                  \
  .lr = CALX_UNWRITTEN_, .tolerance_grad = CALX_UNWRITTEN_, \
  .tolerance_change = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_lbfgs_options, calx_written_(&o->lr);
              calx_written_(&o->tolerance_grad);
              calx_written_(&o->tolerance_change);)
#define CALX_UNWRITTEN_calx_muon_options_                 \
  .lr = CALX_UNWRITTEN_, .weight_decay = CALX_UNWRITTEN_, \
  .momentum = CALX_UNWRITTEN_, .eps = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_muon_options, calx_written_(&o->lr);
              calx_written_(&o->weight_decay); calx_written_(&o->momentum);
              calx_written_(&o->eps);)
#define CALX_UNWRITTEN_calx_adafactor_options_ \
  .lr = CALX_UNWRITTEN_, .beta2_decay = CALX_UNWRITTEN_,
CALX_WRITTEN_(calx_adafactor_options, calx_written_(&o->lr);
              calx_written_(&o->beta2_decay);)
#define CALX_UNWRITTEN_calx_rprop_options_
CALX_WRITTEN_(calx_rprop_options, )
#endif
#ifdef __cplusplus
}
#else
#define CALX_OPTIMIZER_(name, model, ...) \
  (CALX_OPTIM_SITE_ calx_##name##_with(   \
      model, CALX_WRITE_(calx_##name##_options, __VA_ARGS__)))
#define calx_adadelta(...) \
  CALX_OPTIMIZER_(adadelta, __VA_ARGS__, .size = sizeof(calx_adadelta_options))
#define calx_rmsprop(...) \
  CALX_OPTIMIZER_(rmsprop, __VA_ARGS__, .size = sizeof(calx_rmsprop_options))
#define calx_adamax(...) \
  CALX_OPTIMIZER_(adamax, __VA_ARGS__, .size = sizeof(calx_adamax_options))
#define calx_nadam(...) \
  CALX_OPTIMIZER_(nadam, __VA_ARGS__, .size = sizeof(calx_nadam_options))
#define calx_radam(...) \
  CALX_OPTIMIZER_(radam, __VA_ARGS__, .size = sizeof(calx_radam_options))
#define calx_rprop(...) \
  CALX_OPTIMIZER_(rprop, __VA_ARGS__, .size = sizeof(calx_rprop_options))
#define calx_asgd(...) \
  CALX_OPTIMIZER_(asgd, __VA_ARGS__, .size = sizeof(calx_asgd_options))
#define calx_lamb(...) \
  CALX_OPTIMIZER_(lamb, __VA_ARGS__, .size = sizeof(calx_lamb_options))
#define calx_lars(...) \
  CALX_OPTIMIZER_(lars, __VA_ARGS__, .size = sizeof(calx_lars_options))
#define calx_lion(...) \
  CALX_OPTIMIZER_(lion, __VA_ARGS__, .size = sizeof(calx_lion_options))
#define calx_lbfgs(...) \
  CALX_OPTIMIZER_(lbfgs, __VA_ARGS__, .size = sizeof(calx_lbfgs_options))
#define calx_muon(...) \
  CALX_OPTIMIZER_(muon, __VA_ARGS__, .size = sizeof(calx_muon_options))
#define calx_adafactor(...)               \
  CALX_OPTIMIZER_(adafactor, __VA_ARGS__, \
                  .size = sizeof(calx_adafactor_options))
#endif
#endif
