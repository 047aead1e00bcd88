/**
 * calx/calx.hpp: calx/calx.h with C++17's means; nothing to link beside it.
 *
 * Call sites, numbers as operands and options by name, as the macros give them
 * in C; operators; scopes, modules and optimisers that end by themselves. What
 * is not here is called as in C, with the calx_tensor * of tensor::get(), and
 * calx::here() before it, so that its errors name this line.
 *
 *   calx::scope step;
 *   calx::tensor y = 2 * x + 1;
 *   y = calx::sum(y, [](auto &o) { o.dims = CALX_DIMS(1); });
 *   calx::check(step.end());
 *
 * Exceptions are optional: without them there is no calx::check().
 */
#ifndef CALX_CALX_HPP
#define CALX_CALX_HPP

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#ifdef __cpp_exceptions
#include <stdexcept>
#endif

#include "calx/calx.h"

namespace calx {

// ---- places -----------------------------------------------------------------

/** Where a call is made: as a default argument, the place of the caller. */
class place {
 public:
  place(const char *file = __builtin_FILE(),
        const char *func = __builtin_FUNCTION(), int line = __builtin_LINE())
      : site_{ file, func, line }
  {
  }
  /** The next operations of this thread are told with this place. */
  void set() const
  {
    calx_at_(&site_);
  }

 private:
  calx_site site_;
};

/** The C functions that come next are told with this line. */
inline void here(const place &line = place())
{
  line.set();
}

// ---- failures ---------------------------------------------------------------

/** Owns a status; false: success. */
class [[nodiscard]] status {
 public:
  status(calx_status *s = nullptr) : s_(s) {}
  explicit operator bool() const
  {
    return s_ != nullptr;
  }
  calx_code code() const
  {
    return calx_status_code(s_.get());
  }
  const char *message() const
  {
    return calx_status_message(s_.get());
  }
  /** For CALX_TRY, or to return from a callback. */
  calx_status *release()
  {
    return s_.release();
  }

 private:
  struct freed {
    void operator()(calx_status *s) const
    {
      calx_status_free(s);
    }
  };
  std::unique_ptr<calx_status, freed> s_;
};

#ifdef __cpp_exceptions
/** What check() throws. */
class error : public std::runtime_error {
 public:
  explicit error(const status &s)
      : std::runtime_error(s.message()), code_(s.code())
  {
  }
  calx_code code() const
  {
    return code_;
  }

 private:
  calx_code code_;
};

/** Throws a failure. */
inline void check(status s)
{
  if (s) throw error(s);
}
#endif

/** A scope of temporaries. One that is left without end(), by an exception or a
 *  return, ends too, and writes its failure to standard error. */
class scope {
 public:
  explicit scope(const place &here = place())
  {
    here.set();
    s_ = calx_scope_begin();
  }
  scope(const scope &) = delete;
  scope &operator=(const scope &) = delete;
  ~scope()
  {
    calx_status *s = end().release();
    calx_status_print(stderr, s);
    calx_status_free(s);
  }
  /** Ends it; the first failure. */
  status end()
  {
    calx_scope *s = std::exchange(s_, nullptr);
    return s != nullptr ? calx_scope_end(s) : nullptr;
  }

 private:
  calx_scope *s_;
};

// ---- options ----------------------------------------------------------------

/**
 * The options O of a function. Made from a function that sets them by name, or
 * a variable whose fields are set: a value alone is none.
 */
template <class O>
struct options : O {
  options() : O()
  {
    this->size = sizeof(O);
  }
  template <class Set, class = std::enable_if_t<std::is_invocable_v<Set, O &>>>
  options(Set &&set) : options()
  {
    set(static_cast<O &>(*this));
  }
};

// ---- tensors ----------------------------------------------------------------

/** A tensor, which its scope owns. @shape any */
class tensor {
 public:
  tensor(calx_tensor *t = nullptr) : t_(t) {}
  /** For the C functions. It is no conversion, since x + 1 would be a pointer.
   */
  calx_tensor *get() const
  {
    return t_;
  }

 private:
  calx_tensor *t_;
};

/** A tensor or a number, and the place where it is an operand. */
class operand {
 public:
  operand(const tensor &t, const place &here = place())
      : t_(t.get()), here_(here)
  {
  }
  operand(calx_tensor *t, const place &here = place()) : t_(t), here_(here) {}
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  operand(N number, const place &here = place()) : t_(nullptr), here_(here)
  {
    here_.set();
    if constexpr (std::is_floating_point_v<N>) {
      t_ = calx_scalar(static_cast<double>(number));
    } else if constexpr (std::is_unsigned_v<N>) {
      // what int64_t does not hold is told as the float that it is
      const uint64_t wide = number;
      t_ = wide > static_cast<uint64_t>(INT64_MAX)
               ? calx_scalar(static_cast<double>(number))
               : calx_scalar_int(static_cast<int64_t>(number));
    } else {
      t_ = calx_scalar_int(static_cast<int64_t>(number));
    }
  }
  /** The tensor for a call of the C functions, which comes next. */
  calx_tensor *get() const
  {
    here_.set();
    return t_;
  }

 private:
  calx_tensor *t_;
  place here_;
};

#define CALX_HPP_1_(name)              \
  inline tensor name(const operand &x) \
  {                                    \
    return calx_##name(x.get());       \
  }
CALX_EACH_UNARY_(CALX_HPP_1_)
CALX_HPP_1_(detach)
CALX_HPP_1_(max)
CALX_HPP_1_(min)
CALX_HPP_1_(t)
#undef CALX_HPP_1_

#define CALX_HPP_2_(name)                                \
  inline tensor name(const operand &x, const operand &y) \
  {                                                      \
    return calx_##name(x.get(), y.get());                \
  }
CALX_EACH_BINARY_(CALX_HPP_2_)
CALX_HPP_2_(matmul)
CALX_HPP_2_(mm)
#undef CALX_HPP_2_

#define CALX_HPP_1_WITH_(name, O)                                \
  inline tensor name(const operand &x, const options<O> &o = {}) \
  {                                                              \
    return calx_##name##_with(x.get(), &o);                      \
  }
CALX_HPP_1_WITH_(sum, calx_reduce_options)
CALX_HPP_1_WITH_(mean, calx_reduce_options)
CALX_HPP_1_WITH_(amax, calx_reduce_options)
CALX_HPP_1_WITH_(amin, calx_reduce_options)
CALX_HPP_1_WITH_(argmax, calx_reduce_options)
CALX_HPP_1_WITH_(argmin, calx_reduce_options)
CALX_HPP_1_WITH_(flatten, calx_flatten_options)
CALX_HPP_1_WITH_(batch_norm, calx_batch_norm_options)
#undef CALX_HPP_1_WITH_

#define CALX_HPP_2_WITH_(name, O)                        \
  inline tensor name(const operand &x, const operand &y, \
                     const options<O> &o = {})           \
  {                                                      \
    return calx_##name##_with(x.get(), y.get(), &o);     \
  }
CALX_HPP_2_WITH_(add, calx_add_options)
CALX_HPP_2_WITH_(sub, calx_add_options)
CALX_HPP_2_WITH_(div, calx_div_options)
CALX_HPP_2_WITH_(conv2d, calx_conv2d_options)
CALX_HPP_2_WITH_(nll_loss, calx_nll_loss_options)
CALX_HPP_2_WITH_(cross_entropy, calx_nll_loss_options)
#undef CALX_HPP_2_WITH_

#define CALX_HPP_MADE_(name)                                     \
  inline tensor name(const calx_dims &shape,                     \
                     const options<calx_create_options> &o = {}, \
                     const place &here = place())                \
  {                                                              \
    here.set();                                                  \
    return calx_##name##_with(shape, &o);                        \
  }
CALX_HPP_MADE_(zeros)
CALX_HPP_MADE_(ones)
CALX_HPP_MADE_(rand)
CALX_HPP_MADE_(randn)
#undef CALX_HPP_MADE_

/** @shape shape */
inline tensor full(const calx_dims &shape, double value,
                   const options<calx_create_options> &o = {},
                   const place &here = place())
{
  here.set();
  return calx_full_with(shape, value, &o);
}
/** @shape as calx_arange */
inline tensor arange(double start, double end, double step = 1,
                     const options<calx_create_options> &o = {},
                     const place &here = place())
{
  here.set();
  return calx_arange_with(start, end, step, &o);
}
/** From 0, in steps of 1. @shape as calx_arange */
inline tensor arange(double end, const options<calx_create_options> &o = {},
                     const place &here = place())
{
  return arange(0, end, 1, o, here);
}
/** @shape as calx_max_pool2d */
inline tensor max_pool2d(const operand &x, int64_t kernel_size,
                         const options<calx_max_pool2d_options> &o = {})
{
  return calx_max_pool2d_with(x.get(), kernel_size, &o);
}
/** @shape shape */
inline tensor reshape(const operand &x, const calx_dims &shape)
{
  return calx_reshape(x.get(), shape);
}
/** @shape any */
inline tensor log_softmax(const operand &x, int dim)
{
  return calx_log_softmax(x.get(), dim);
}
/** @shape any */
inline tensor softmax(const operand &x, int dim)
{
  return calx_softmax(x.get(), dim);
}
/** @shape as x */
inline tensor to_dtype(const operand &x, calx_dtype dtype)
{
  return calx_to_dtype(x.get(), dtype);
}
/** @shape x rank >= 2 */
inline tensor transpose(const operand &x, int dim0, int dim1)
{
  return calx_transpose(x.get(), dim0, dim1);
}
/** @shape any */
inline tensor permute(const operand &x, const calx_dims &dims)
{
  return calx_permute(x.get(), dims);
}
/** @shape as calx_expand */
inline tensor expand(const operand &x, const calx_dims &shape)
{
  return calx_expand(x.get(), shape);
}
/** @shape any */
inline tensor squeeze(const operand &x, int dim)
{
  return calx_squeeze(x.get(), dim);
}
/** @shape any */
inline tensor unsqueeze(const operand &x, int dim)
{
  return calx_unsqueeze(x.get(), dim);
}
/** @shape x rank >= 1 */
inline tensor slice(const operand &x, int dim, int64_t start, int64_t end,
                    int64_t step = 1)
{
  return calx_slice(x.get(), dim, start, end, step);
}
/** @shape x rank >= 1 */
inline tensor select(const operand &x, int dim, int64_t index)
{
  return calx_select(x.get(), dim, index);
}

#define CALX_HPP_LIST_(name)                                      \
  inline tensor name(std::initializer_list<tensor> list, int dim, \
                     const place &line = place())                 \
  {                                                               \
    std::vector<calx_tensor *> tensors;                           \
    for (const tensor &t : list) tensors.push_back(t.get());      \
    line.set();                                                   \
    return calx_##name(tensors.data(), tensors.size(), dim);      \
  }
CALX_HPP_LIST_(cat)
CALX_HPP_LIST_(stack)
#undef CALX_HPP_LIST_

/** @shape as calx_where */
inline tensor where(const operand &c, const operand &x, const operand &y)
{
  return calx_where(c.get(), x.get(), y.get());
}

/** @shape as calx_add */
inline tensor operator+(const operand &x, const operand &y)
{
  return add(x, y);
}
/** @shape as calx_sub */
inline tensor operator-(const operand &x, const operand &y)
{
  return sub(x, y);
}
/** @shape as calx_mul */
inline tensor operator*(const operand &x, const operand &y)
{
  return mul(x, y);
}
/** @shape as calx_div */
inline tensor operator/(const operand &x, const operand &y)
{
  return div(x, y);
}
/** @shape as calx_neg */
inline tensor operator-(const operand &x)
{
  return neg(x);
}

// ---- the host and the devices -----------------------------------------------

/** @shape shape */
inline tensor tensor_from(const void *data, calx_dtype dtype,
                          const calx_dims &shape, const place &line = place())
{
  line.set();
  return calx_tensor_from(data, dtype, shape);
}
/** @shape any */
inline void print(const operand &x)
{
  calx_print(x.get());
}
inline calx_device *device_current(const place &line = place())
{
  line.set();
  return calx_device_current();
}
inline status device_open(const char *name, calx_device **out_device,
                          const place &line = place())
{
  line.set();
  return calx_device_open(name, out_device);
}
inline status device_wait(calx_device *device, const place &line = place())
{
  line.set();
  return calx_device_wait(device);
}
inline status device_memory(calx_device *device, calx_memory_info *out_info,
                            const place &line = place())
{
  line.set();
  return calx_device_memory(device, out_info);
}

// ---- steps ------------------------------------------------------------------

/** @shape one element */
inline void backward(const operand &loss)
{
  calx_backward(loss.get());
}
/** @shape one element */
inline double item(const operand &t)
{
  return calx_item(t.get());
}
/** The step: what is durable and has changed, and these. @shape any */
inline void sync(std::initializer_list<tensor> named = {},
                 const place &here = place())
{
  std::vector<calx_tensor *> tensors;
  for (const tensor &t : named) tensors.push_back(t.get());
  here.set();
  calx_sync_n(tensors.data(), tensors.size());
}
/** @shape as the module says */
inline tensor forward(calx_module *m, const operand &x)
{
  return calx_forward(m, x.get());
}

// ---- what a program owns ----------------------------------------------------

template <class T, void (*Free)(T *)>
struct freed_by_ {
  void operator()(T *owned) const
  {
    Free(owned);
  }
};
/** A root module, freed with it. */
using module_ptr =
    std::unique_ptr<calx_module, freed_by_<calx_module, calx_module_free>>;
/** An optimiser, freed with it; its model must outlive it. */
using optimizer_ptr =
    std::unique_ptr<calx_optimizer,
                    freed_by_<calx_optimizer, calx_optimizer_free>>;

/** A layer; its parent frees it. */
inline calx_module *linear(calx_module *parent, const char *name, int64_t in,
                           int64_t out,
                           const options<calx_linear_options> &o = {},
                           const place &here = place())
{
  here.set();
  return calx_nn_linear_with(parent, name, in, out, &o);
}
/** A layer; its parent frees it. */
inline calx_module *conv2d_layer(calx_module *parent, const char *name,
                                 int64_t in, int64_t out, int64_t kernel_size,
                                 const options<calx_nn_conv2d_options> &o = {},
                                 const place &here = place())
{
  here.set();
  return calx_nn_conv2d_with(parent, name, in, out, kernel_size, &o);
}
#define CALX_HPP_OPTIMIZER_(name, O)                                      \
  inline optimizer_ptr name(calx_module *model, const options<O> &o = {}, \
                            const place &here = place())                  \
  {                                                                       \
    here.set();                                                           \
    return optimizer_ptr(calx_##name##_with(model, &o));                  \
  }
CALX_HPP_OPTIMIZER_(sgd, calx_sgd_options)
CALX_HPP_OPTIMIZER_(adam, calx_adam_options)
CALX_HPP_OPTIMIZER_(adamw, calx_adam_options)
CALX_HPP_OPTIMIZER_(adagrad, calx_adagrad_options)
CALX_HPP_OPTIMIZER_(adadelta, calx_adadelta_options)
CALX_HPP_OPTIMIZER_(rmsprop, calx_rmsprop_options)
CALX_HPP_OPTIMIZER_(adamax, calx_adamax_options)
CALX_HPP_OPTIMIZER_(nadam, calx_nadam_options)
CALX_HPP_OPTIMIZER_(radam, calx_radam_options)
CALX_HPP_OPTIMIZER_(rprop, calx_rprop_options)
CALX_HPP_OPTIMIZER_(asgd, calx_asgd_options)
CALX_HPP_OPTIMIZER_(lamb, calx_lamb_options)
CALX_HPP_OPTIMIZER_(lars, calx_lars_options)
CALX_HPP_OPTIMIZER_(lion, calx_lion_options)
CALX_HPP_OPTIMIZER_(adafactor, calx_adafactor_options)
CALX_HPP_OPTIMIZER_(muon, calx_muon_options)
CALX_HPP_OPTIMIZER_(lbfgs, calx_lbfgs_options)
#undef CALX_HPP_OPTIMIZER_

inline void step(const optimizer_ptr &opt, const place &here = place())
{
  here.set();
  calx_optimizer_step(opt.get());
}
inline void zero_grad(const optimizer_ptr &opt, const place &here = place())
{
  here.set();
  calx_optimizer_zero_grad(opt.get());
}
/** Another parameter group; its number. */
inline size_t add_param_group(const optimizer_ptr &opt, calx_module *module,
                              const options<calx_param_group_options> &o = {},
                              const place &here = place())
{
  here.set();
  return calx_optimizer_add_param_group_with(opt.get(), module, &o);
}
inline void clip_grad_value(const optimizer_ptr &opt, double clip_value,
                            const place &here = place())
{
  here.set();
  calx_clip_grad_value(opt.get(), clip_value);
}
/** @shape one element */
inline tensor get_total_norm(const optimizer_ptr &opt,
                             const options<calx_clip_grad_norm_options> &o = {},
                             const place &here = place())
{
  here.set();
  return calx_get_total_norm_with(opt.get(), &o);
}
/** @shape one element */
inline tensor clip_grad_norm(const optimizer_ptr &opt, double max_norm,
                             const options<calx_clip_grad_norm_options> &o = {},
                             const place &here = place())
{
  here.set();
  return calx_clip_grad_norm_with(opt.get(), max_norm, &o);
}
/** @shape loss one element */
inline tensor dist_step(const optimizer_ptr &opt, const operand &loss)
{
  return calx_dist_step(opt.get(), loss.get());
}

}  // namespace calx

#include "calx/layers.hpp"
#include "calx/training.hpp"

#endif
