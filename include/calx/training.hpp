/**
 * calx/training.hpp: regions as objects, losses, schedules and the scaling of
 * losses for C++. Part of calx/calx.hpp, whose conventions hold here.
 *
 *   {
 *     calx::autocast region(CALX_BF16);
 *     loss = calx::mse_loss(calx::forward(m, x), y);
 *   }
 */
#ifndef CALX_TRAINING_HPP
#define CALX_TRAINING_HPP

#include "calx/calx.hpp"

namespace calx {

// ---- regions ----------------------------------------------------------------

/** A region of calx_no_grad_begin() that ends with the object. */
class [[nodiscard]] no_grad {
 public:
  no_grad()
  {
    calx_no_grad_begin();
  }
  ~no_grad()
  {
    calx_no_grad_end();
  }
  no_grad(const no_grad &) = delete;
  no_grad &operator=(const no_grad &) = delete;
};
/** The same of calx_enable_grad_begin(). */
class [[nodiscard]] enable_grad {
 public:
  enable_grad()
  {
    calx_enable_grad_begin();
  }
  ~enable_grad()
  {
    calx_enable_grad_end();
  }
  enable_grad(const enable_grad &) = delete;
  enable_grad &operator=(const enable_grad &) = delete;
};
/** The same of calx_inference_mode_begin(). */
class [[nodiscard]] inference_mode {
 public:
  inference_mode()
  {
    calx_inference_mode_begin();
  }
  ~inference_mode()
  {
    calx_inference_mode_end();
  }
  inference_mode(const inference_mode &) = delete;
  inference_mode &operator=(const inference_mode &) = delete;
};
/** The same of calx_autocast_begin(). */
class [[nodiscard]] autocast {
 public:
  explicit autocast(calx_dtype dtype)
  {
    calx_autocast_begin(dtype);
  }
  ~autocast()
  {
    calx_autocast_end();
  }
  autocast(const autocast &) = delete;
  autocast &operator=(const autocast &) = delete;
};

// ---- modules of several tensors ---------------------------------------------

/** @shape as the module says */
inline tensor forward(calx_module *m, const operand &x, const operand &y)
{
  return calx_forward2(m, x.get(), y.get());
}
/** @shape as the module says */
inline tensor forward(calx_module *m, const operand &x, const operand &y,
                      const operand &z)
{
  return calx_forward3(m, x.get(), y.get(), z.get());
}

// ---- losses -----------------------------------------------------------------

#define CALX_HPP_LOSS_2_(name, O)                             \
  inline tensor name(const operand &x, const operand &target, \
                     const options<O> &o = {})                \
  {                                                           \
    return calx_##name##_with(x.get(), target.get(), &o);     \
  }
#define CALX_HPP_LOSS_3_(name, O)                                          \
  inline tensor name(const operand &x, const operand &y, const operand &z, \
                     const options<O> &o = {})                             \
  {                                                                        \
    return calx_##name##_with(x.get(), y.get(), z.get(), &o);              \
  }
// clang-format off
CALX_HPP_LOSS_2_(mse_loss, calx_loss_options)
CALX_HPP_LOSS_2_(l1_loss, calx_loss_options)
CALX_HPP_LOSS_2_(smooth_l1_loss, calx_smooth_l1_loss_options)
CALX_HPP_LOSS_2_(huber_loss, calx_huber_loss_options)
CALX_HPP_LOSS_2_(binary_cross_entropy, calx_binary_cross_entropy_options)
CALX_HPP_LOSS_2_(binary_cross_entropy_with_logits, calx_binary_cross_entropy_with_logits_options)
CALX_HPP_LOSS_2_(kl_div, calx_kl_div_options)
CALX_HPP_LOSS_2_(poisson_nll_loss, calx_poisson_nll_loss_options)
CALX_HPP_LOSS_2_(soft_margin_loss, calx_loss_options)
CALX_HPP_LOSS_2_(hinge_embedding_loss, calx_hinge_embedding_loss_options)
CALX_HPP_LOSS_2_(multi_margin_loss, calx_multi_margin_loss_options)
CALX_HPP_LOSS_2_(multilabel_margin_loss, calx_loss_options)
CALX_HPP_LOSS_2_(multilabel_soft_margin_loss, calx_multilabel_soft_margin_loss_options)
CALX_HPP_LOSS_3_(margin_ranking_loss, calx_margin_loss_options)
CALX_HPP_LOSS_3_(cosine_embedding_loss, calx_margin_loss_options)
CALX_HPP_LOSS_3_(triplet_margin_loss, calx_triplet_margin_loss_options)
CALX_HPP_LOSS_3_(triplet_margin_with_distance_loss, calx_triplet_margin_with_distance_loss_options)
CALX_HPP_LOSS_3_(gaussian_nll_loss, calx_gaussian_nll_loss_options)
// clang-format on
#undef CALX_HPP_LOSS_2_
#undef CALX_HPP_LOSS_3_

// ---- schedules --------------------------------------------------------------

/** A schedule, freed with it; its optimiser must outlive it. */
using lr_scheduler_ptr =
    std::unique_ptr<calx_lr_scheduler,
                    freed_by_<calx_lr_scheduler, calx_lr_scheduler_free>>;

#define CALX_HPP_ARGUMENTS_(...) __VA_ARGS__
#define CALX_HPP_SCHEDULE_(name, parameters, arguments)                   \
  inline lr_scheduler_ptr name(                                           \
      const optimizer_ptr &opt CALX_HPP_ARGUMENTS_ parameters,            \
      const options<calx_##name##_options> &o = {},                       \
      const place &here = place())                                        \
  {                                                                       \
    here.set();                                                           \
    return lr_scheduler_ptr(                                              \
        calx_##name##_with(opt.get() CALX_HPP_ARGUMENTS_ arguments, &o)); \
  }
// clang-format off
CALX_HPP_SCHEDULE_(step_lr, (, int64_t step_size), (, step_size))
CALX_HPP_SCHEDULE_(multi_step_lr, (, calx_dims milestones), (, milestones))
CALX_HPP_SCHEDULE_(constant_lr, (), ())
CALX_HPP_SCHEDULE_(linear_lr, (), ())
CALX_HPP_SCHEDULE_(polynomial_lr, (), ())
CALX_HPP_SCHEDULE_(cosine_annealing_lr, (, int64_t t_max), (, t_max))
CALX_HPP_SCHEDULE_(cosine_annealing_warm_restarts, (, int64_t t_0), (, t_0))
CALX_HPP_SCHEDULE_(one_cycle_lr, (, double max_lr, int64_t total_steps), (, max_lr, total_steps))
CALX_HPP_SCHEDULE_(swa_lr, (, double swa_lr_), (, swa_lr_))
CALX_HPP_SCHEDULE_(reduce_lr_on_plateau, (), ())
CALX_HPP_SCHEDULE_(cyclic_lr, (, double base_lr, double max_lr), (, base_lr, max_lr))
// clang-format on
#undef CALX_HPP_SCHEDULE_
#undef CALX_HPP_ARGUMENTS_

// ---- scaling of losses ------------------------------------------------------

/** A scaler, freed with it. */
using grad_scaler_ptr =
    std::unique_ptr<calx_grad_scaler,
                    freed_by_<calx_grad_scaler, calx_grad_scaler_free>>;

inline grad_scaler_ptr grad_scaler(
    const options<calx_grad_scaler_options> &o = {})
{
  return grad_scaler_ptr(calx_grad_scaler_new_with(&o));
}
/** @shape any */
inline tensor scale(const grad_scaler_ptr &scaler, const operand &outputs)
{
  return calx_grad_scaler_scale(scaler.get(), outputs.get());
}
inline void step(const grad_scaler_ptr &scaler, const optimizer_ptr &opt,
                 const place &here = place())
{
  here.set();
  calx_grad_scaler_step(scaler.get(), opt.get());
}
inline void update(const grad_scaler_ptr &scaler, const place &here = place())
{
  here.set();
  calx_grad_scaler_update(scaler.get());
}

}  // namespace calx

#endif
