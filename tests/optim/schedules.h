// schedules: those that are compared with PyTorch: how Python and how C make
// each, of an SGD with momentum `opt`, and how many steps it takes.
#ifndef CX_TESTS_OPTIM_SCHEDULES_H
#define CX_TESTS_OPTIM_SCHEDULES_H

#include <math.h>

#include "calx/lr_scheduler.h"
#include "support/support.h"

static inline double schedules_factor(void *user, size_t group, int64_t epoch)
{
  (void)user;
  return pow(group == 0 ? 0.95 : 0.9, (double)(epoch % 7));
}

#define SEQUENTIAL_                                                            \
  calx_sequential_lr(                                                          \
      opt,                                                                     \
      (calx_lr_scheduler *[]){                                                 \
          calx_linear_lr(opt, .start_factor = 0.1, .total_iters = 20),         \
          calx_cosine_annealing_lr(opt, 100), calx_exponential_lr(opt, 0.9) }, \
      3, CALX_DIMS(20, 150))
#define SEQUENTIAL_2_                                                         \
  calx_sequential_lr(                                                         \
      opt,                                                                    \
      (calx_lr_scheduler *[]){                                                \
          calx_constant_lr(opt, .factor = 0.5, .total_iters = 4),             \
          calx_multi_step_lr(opt, CALX_DIMS(0, 10)),                          \
          calx_cosine_annealing_warm_restarts(opt, 7),                        \
          calx_polynomial_lr(opt, .total_iters = 30), calx_step_lr(opt, 5) }, \
      5, CALX_DIMS(10, 40, 90, 140))
#define CHAINED_                                                  \
  calx_chained_scheduler(                                         \
      (calx_lr_scheduler *[]){                                    \
          calx_constant_lr(opt, .factor = 0.1, .total_iters = 2), \
          calx_exponential_lr(opt, 0.99) },                       \
      2)

// clang-format off
// The first rows are the oracle's (oracle/train.json), in its order.
#define SCHEDULES(X) \
  X(10, "StepLR(opt, 3, gamma=0.5)", calx_step_lr(opt, 3, .gamma = 0.5)) \
  X(8, "MultiStepLR(opt, [2, 5, 5])", calx_multi_step_lr(opt, CALX_DIMS(2, 5, 5))) \
  X(6, "ExponentialLR(opt, 0.9)", calx_exponential_lr(opt, 0.9)) \
  X(12, "CosineAnnealingLR(opt, 5, eta_min=0.01)", calx_cosine_annealing_lr(opt, 5, .eta_min = 0.01)) \
  X(12, "CosineAnnealingWarmRestarts(opt, 3, T_mult=2)", calx_cosine_annealing_warm_restarts(opt, 3, .t_mult = 2)) \
  X(7, "LinearLR(opt, start_factor=0.25, total_iters=4)", calx_linear_lr(opt, .start_factor = 0.25, .total_iters = 4)) \
  X(6, "ConstantLR(opt, factor=0.5, total_iters=3)", calx_constant_lr(opt, .factor = 0.5, .total_iters = 3)) \
  X(8, "PolynomialLR(opt, total_iters=5, power=2)", calx_polynomial_lr(opt, .total_iters = 5, .power = 2)) \
  X(10, "OneCycleLR(opt, 0.5, total_steps=10)", calx_one_cycle_lr(opt, 0.5, 10)) \
  X(10, "OneCycleLR(opt, 0.5, total_steps=10, anneal_strategy='linear', three_phase=True)", calx_one_cycle_lr(opt, 0.5, 10, .anneal_strategy = CALX_ANNEAL_LINEAR, .three_phase = true)) \
  X(10, "CyclicLR(opt, 0.01, 0.1, step_size_up=3)", calx_cyclic_lr(opt, 0.01, 0.1, .step_size_up = 3)) \
  X(200, "LambdaLR(opt, [lambda e: 0.95 ** (e % 7), lambda e: 0.9 ** (e % 7)])", calx_lambda_lr(opt, schedules_factor, NULL)) \
  X(200, "MultiplicativeLR(opt, [lambda e: 0.95 ** (e % 7), lambda e: 0.9 ** (e % 7)])", calx_multiplicative_lr(opt, schedules_factor, NULL)) \
  X(200, "StepLR(opt, 30)", calx_step_lr(opt, 30)) \
  X(200, "MultiStepLR(opt, [0, 7, 50, 120], gamma=0.3)", calx_multi_step_lr(opt, CALX_DIMS(120, 50, 7, 0), .gamma = 0.3)) \
  X(200, "ConstantLR(opt)", calx_constant_lr(opt)) \
  X(200, "ConstantLR(opt, factor=0.25, total_iters=150)", calx_constant_lr(opt, .factor = 0.25, .total_iters = 150)) \
  X(200, "LinearLR(opt)", calx_linear_lr(opt)) \
  X(200, "LinearLR(opt, start_factor=0.9, end_factor=0.1, total_iters=120)", calx_linear_lr(opt, .start_factor = 0.9, .end_factor = 0.1, .total_iters = 120)) \
  X(200, "LinearLR(opt, start_factor=0.9, end_factor=0, total_iters=120)", calx_linear_lr(opt, .start_factor = 0.9, .end_factor = CALX_ZERO, .total_iters = 120)) \
  X(200, "ExponentialLR(opt, 0.99)", calx_exponential_lr(opt, 0.99)) \
  X(200, "PolynomialLR(opt)", calx_polynomial_lr(opt)) \
  X(200, "PolynomialLR(opt, total_iters=150, power=0.5)", calx_polynomial_lr(opt, .total_iters = 150, .power = 0.5)) \
  X(200, "CosineAnnealingLR(opt, 40)", calx_cosine_annealing_lr(opt, 40)) \
  X(200, "CosineAnnealingWarmRestarts(opt, 30)", calx_cosine_annealing_warm_restarts(opt, 30)) \
  X(200, "CosineAnnealingWarmRestarts(opt, 10, T_mult=3, eta_min=0.001)", calx_cosine_annealing_warm_restarts(opt, 10, .t_mult = 3, .eta_min = 0.001)) \
  X(200, "CyclicLR(opt, 0.01, 0.2, step_size_up=20, step_size_down=30, mode='triangular2')", calx_cyclic_lr(opt, 0.01, 0.2, .step_size_up = 20, .step_size_down = 30, .mode = CALX_CYCLIC_TRIANGULAR2)) \
  X(200, "CyclicLR(opt, 0.01, 0.2, step_size_up=25, mode='exp_range', gamma=0.99, base_momentum=0.5, max_momentum=0.6)", calx_cyclic_lr(opt, 0.01, 0.2, .step_size_up = 25, .mode = CALX_CYCLIC_EXP_RANGE, .gamma = 0.99, .base_momentum = 0.5, .max_momentum = 0.6)) \
  X(200, "CyclicLR(opt, 0.01, 0.2, cycle_momentum=False)", calx_cyclic_lr(opt, 0.01, 0.2, .no_cycle_momentum = true)) \
  X(200, "OneCycleLR(opt, 1.5, total_steps=250, pct_start=0.2, div_factor=10, final_div_factor=100)", calx_one_cycle_lr(opt, 1.5, 250, .pct_start = 0.2, .div_factor = 10, .final_div_factor = 100)) \
  X(200, "OneCycleLR(opt, 1.5, total_steps=200, three_phase=True, base_momentum=0.1, max_momentum=0.3)", calx_one_cycle_lr(opt, 1.5, 200, .three_phase = true, .base_momentum = 0.1, .max_momentum = 0.3)) \
  X(200, "SequentialLR(opt, [LinearLR(opt, start_factor=0.1, total_iters=20), CosineAnnealingLR(opt, 100), ExponentialLR(opt, 0.9)], [20, 150])", SEQUENTIAL_) \
  X(200, "SequentialLR(opt, [ConstantLR(opt, factor=0.5, total_iters=4), MultiStepLR(opt, [0, 10]), CosineAnnealingWarmRestarts(opt, 7), PolynomialLR(opt, total_iters=30), StepLR(opt, 5)], [10, 40, 90, 140])", SEQUENTIAL_2_) \
  X(200, "ChainedScheduler([ConstantLR(opt, factor=0.1, total_iters=2), ExponentialLR(opt, 0.99)])", CHAINED_) \
  X(200, "SWALR(opt, 0.05)", calx_swa_lr(opt, 0.05)) \
  X(200, "SWALR(opt, 0.05, anneal_epochs=120, anneal_strategy='linear')", calx_swa_lr(opt, 0.05, .anneal_epochs = 120, .anneal_strategy = CALX_ANNEAL_LINEAR)) \
  X(200, "SWALR(opt, 0.05, anneal_epochs=0)", calx_swa_lr(opt, 0.05, .anneal_epochs = CALX_ZERO_INT))
// clang-format on

enum { SCHEDULES_MOST_STEPS = 200, SCHEDULES_ORACLE = 11 };

// Schedule i of the list.
static inline calx_lr_scheduler *schedules_make(size_t i, calx_optimizer *opt)
{
  size_t k = 0;
#define SCHEDULES_MAKE_(steps, python, expression) \
  if (k++ == i) return expression;
  SCHEDULES(SCHEDULES_MAKE_)
  return NULL;
}

typedef struct schedule {
  int steps;  // rates that are compared, the first one among them
  const char *python;
} schedule;

#define SCHEDULES_ROW_(steps, python, expression) { steps, python },
static const schedule schedules[] = { SCHEDULES(SCHEDULES_ROW_) };
enum { SCHEDULES_COUNT = sizeof schedules / sizeof *schedules };

// One more step: the schedule follows the optimiser.
static inline void schedules_step(calx_optimizer *opt, calx_lr_scheduler *s)
{
  calx_optimizer_step(opt);
  calx_lr_scheduler_step(s);
}

// A model of two scalars.
static inline calx_module *schedules_model(void)
{
  calx_module *m = calx_module_new("Two", NULL, NULL);
  calx_module_param(m, "a", calx_zeros(CALX_SCALAR));
  calx_module_param(m, "b", calx_zeros(CALX_SCALAR));
  CHECK_STATUS_OK(calx_module_error(m));
  return m;
}

// SGD with the parameters in two groups, of rates 0.1 and 0.05.
static inline calx_optimizer *schedules_optimizer(calx_module *m)
{
  calx_tensor *a = calx_module_find(m, "a"), *b = calx_module_find(m, "b");
  calx_optimizer *opt =
      calx_sgd(NULL, .lr = 0.1, .momentum = 0.9, .params = &a, .n_params = 1);
  calx_optimizer_add_param_group(opt, NULL, .params = &b, .n_params = 1,
                                 .lr = 0.05);
  CHECK_STATUS_OK(calx_optimizer_error(opt));
  return opt;
}

#endif
