/**
 * calx/nn.h: modules, with PyTorch's names and initial values.
 *
 * A module keeps an ordered list of parameters, buffers and children; names
 * joined by dots are PyTorch's state-dict names. A layer is made with its
 * parent and name: making is registering. Parents free children; the model's
 * own struct only borrows. Failures stick to the root: calx_module_error().
 * A layer without a parent (NULL) is a root of its own.
 *
 * @threads thread-compatible
 */
#ifndef CALX_NN_H
#define CALX_NN_H

#include "calx/autograd.h"
#include "calx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_module calx_module;

/** A module's function of one tensor. @shape as the module says */
typedef calx_tensor *calx_forward_fn(void *self, calx_tensor *x);
/** The same of several tensors. @shape as the module says */
typedef calx_tensor *calx_forward_n_fn(void *self, calx_tensor *const *inputs);

/**
 * A root module. Parameters of its layers are made on the current device.
 * @param kind     "MNIST"; copied
 * @param forward  may be NULL: then calx_forward() on it is an error
 * @return never NULL; see calx_module_error
 */
CALX_API calx_module *calx_module_new(const char *kind,
                                      calx_forward_fn *forward, void *self);
/** The same as a child of another module; NULL: a root, without a name.
 *  Modules are nested at most 64 deep. */
CALX_API calx_module *calx_module_child(calx_module *parent, const char *name,
                                        const char *kind,
                                        calx_forward_fn *forward, void *self);
/** Frees a root with all below it; NULL is accepted, a child is not freed. */
CALX_API void calx_module_free(calx_module *root);

/** Registers a parameter: a leaf that requires a gradient, taking init's value.
 *  @param name without a dot, not used before @shape as init
 *  @dtype floating or complex
 *  @return the parameter, owned by the module
 *  @errors to the root: a name that is used or has a dot
 */
CALX_API calx_tensor *calx_module_param(calx_module *m, const char *name,
                                        calx_tensor *init);
/** Registers a buffer: saved with the parameters, not trained. @shape as init
 *  @errors as calx_module_param
 */
CALX_API calx_tensor *calx_module_buffer(calx_module *m, const char *name,
                                         calx_tensor *init);

/** The first failure of this module's root; NULL: none. The caller frees it. */
CALX_API calx_status *calx_module_error(calx_module *m) CALX_MUST_USE;

/** Calls the module's function. @shape as the module says
 *  @errors FAILED_PRECONDITION a module without a function, a failed one */
CALX_API calx_tensor *calx_forward(calx_module *m, calx_tensor *x);
/** The same of a layer of two tensors: Bilinear; EmbeddingBag with offsets.
 *  @shape as the layer says
 *  @errors also INVALID_ARGUMENT a module that takes one */
CALX_API calx_tensor *calx_forward2(calx_module *m, calx_tensor *x,
                                    calx_tensor *y);
/** The same of three tensors: losses as calx_nn_triplet_margin_loss.
 *  @shape as the layer says @errors as calx_forward2 */
CALX_API calx_tensor *calx_forward3(calx_module *m, calx_tensor *x,
                                    calx_tensor *y, calx_tensor *z);
/** The same of 1 to 8 tensors. @shape as the module says
 *  @errors INVALID_ARGUMENT a module that takes another number, a NULL */
CALX_API calx_tensor *calx_forward_n(calx_module *m, calx_tensor *const *inputs,
                                     size_t count);
/** Makes a module take 2 to 8 tensors, by calx_forward2() and its like; fn is
 *  given the module's self. NULL for the module is accepted.
 *  @errors to the root: another number, no function */
CALX_API void calx_module_set_forward_n(calx_module *m, size_t count,
                                        calx_forward_n_fn *fn);

// ---- hooks ------------------------------------------------------------------

/** Before a forward; another tensor replaces x, the first input; NULL does not.
 *  @shape x as the module takes */
typedef calx_tensor *calx_forward_pre_hook_fn(void *user, calx_module *m,
                                              calx_tensor *x);
/** After a forward; another tensor replaces y, NULL does not.
 *  @shape y as the module gives */
typedef calx_tensor *calx_forward_hook_fn(void *user, calx_module *m,
                                          calx_tensor *x, calx_tensor *y);
/** When the gradient of the module's input is there; another one replaces it,
 *  NULL does not. @param grad_input NULL: the input requires no gradient
 *  @shape grad_input as x, grad_output as y */
typedef calx_tensor *calx_full_backward_hook_fn(void *user, calx_module *m,
                                                calx_tensor *grad_input,
                                                calx_tensor *grad_output);
/** Hooks run in the order of registration, in each calx_forward() of the
 *  module. They end with the module, or with calx_hook_remove(). free_user may
 *  be NULL; it must not call calx. The module must live until the backward.
 *  @errors INVALID_ARGUMENT a NULL
 *  @source torch.nn.Module.register_forward_pre_hook */
CALX_API calx_hook calx_module_register_forward_pre_hook(
    calx_module *m, calx_forward_pre_hook_fn *fn, void *user,
    calx_hook_free_fn *free_user);
/** The same after the forward.
 *  @source torch.nn.Module.register_forward_hook */
CALX_API calx_hook
calx_module_register_forward_hook(calx_module *m, calx_forward_hook_fn *fn,
                                  void *user, calx_hook_free_fn *free_user);
/** The same in the backward.
 *  @source torch.nn.Module.register_full_backward_hook */
CALX_API calx_hook calx_module_register_full_backward_hook(
    calx_module *m, calx_full_backward_hook_fn *fn, void *user,
    calx_hook_free_fn *free_user);

/** In a forward hook of the module: all inputs of the call, of which a forward-
 *  pre hook may replace any in the list. NULL, and 0: no such call is under
 * way. A backward hook has the first input's gradient only.
 *  @shape as the module takes @errors none */
CALX_API calx_tensor **calx_module_hook_inputs(const calx_module *m,
                                               size_t *out_count);

/** Sets training mode (true) or evaluation, for the module and all below.
 *  Modules begin in training. @source torch.nn.Module.train */
CALX_API void calx_module_train(calx_module *m, bool training);
CALX_API bool calx_module_is_training(const calx_module *m);
/** "MNIST" */
CALX_API const char *calx_module_kind(const calx_module *m);

/** What a module keeps. */
typedef enum calx_entry_kind { CALX_PARAMETER, CALX_BUFFER } calx_entry_kind;
/** Called for each tensor in state-dict order; path "conv1.weight". */
typedef void calx_visit_fn(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor);
/** Visits a module's parameters, then its buffers, each in the order of their
 *  making, then its children: the order of PyTorch's state_dict(). */
CALX_API void calx_module_visit(calx_module *m, calx_visit_fn *fn, void *user);
/** A parameter or buffer by its path; NULL: none. @shape any @errors none */
CALX_API calx_tensor *calx_module_find(calx_module *m, const char *path);
/** Number of elements of all parameters, each counted once. */
CALX_API int64_t calx_module_param_count(const calx_module *m);

// ---- parts of a model -------------------------------------------------------

/** How many modules are directly below. @threads thread-compatible */
CALX_API size_t calx_module_child_count(const calx_module *m);
/** Child i in the order of their making; NULL: there is none. */
CALX_API calx_module *calx_module_child_at(const calx_module *m, size_t i);
/** A module below by its path, "head.fc"; "" is m itself; NULL: none.
 *  @source torch.nn.Module.get_submodule, torch.nn.ModuleDict */
CALX_API calx_module *calx_module_get(calx_module *m, const char *path);
/** Called for a module; path "head.fc", "" for the first. */
typedef void calx_module_fn(void *user, const char *path, calx_module *m);
/** Calls fn for every module below, each after its children, then for m.
 *  @source torch.nn.Module.apply */
CALX_API void calx_module_apply(calx_module *m, calx_module_fn *fn, void *user);
/** Visits each parameter once, under its first name, in the order of
 *  calx_module_visit. @source torch.nn.Module.named_parameters */
CALX_API void calx_module_parameters(calx_module *m, calx_visit_fn *fn,
                                     void *user);
/** Makes all parameters collect gradients, or freezes them. An optimiser that
 *  is made later leaves frozen ones out. @errors to the root
 *  @source torch.nn.Module.requires_grad_ */
CALX_API void calx_module_requires_grad(calx_module *m, bool on);
/** Converts parameters, floating buffers and gradients to a floating type. The
 *  tensors stay the same ones, so ties and optimisers keep them. An optimiser's
 *  state gets the type at its next step: convert before it is made, or load it
 *  again. NULL is accepted.
 *  @errors to the root: no floating type  @source torch.nn.Module.to */
CALX_API void calx_module_to(calx_module *m, calx_dtype dtype);
/**
 * Makes a parameter stand under a second name, as m.b.weight = m.a.weight does
 * in Python. The state dict has both names, an optimiser updates it once, and
 * nothing that moves or loads the model separates them. What stood under the
 * name is released: tie before the optimiser is made.
 * @param path    "decoder.weight": a parameter of a layer, or a new name
 * @param shared  a parameter of this or another model, which owns it too
 * @shape shared as what stands under the path, if anything does
 * @errors to the root: no such module, no parameter, another shape or dtype
 */
CALX_API void calx_module_tie(calx_module *m, const char *path,
                              calx_tensor *shared);

// ---- text -------------------------------------------------------------------

/** The module as PyTorch prints it, without a newline at the end; the caller
 *  frees it with calx_string_free(). NULL: no memory, or a NULL module.
 *  @source torch.nn.Module.__repr__ */
CALX_API char *calx_module_str(const calx_module *m);
/** Prints it and a newline to the standard output. */
CALX_API void calx_module_print(const calx_module *m);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_summary_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_dtype dtype; /* of the input; default f32 */
} calx_summary_options;
/**
 * A table of all modules: output shape, parameters, floating-point operations.
 * The model's forward is recorded once in evaluation mode and nothing runs. Two
 * operations are counted for each multiplication with addition of a matrix
 * product or convolution, none elsewhere, as torch.utils.flop_counter does.
 * @return the text; the caller frees it with calx_string_free(). NULL: the
 *         model's forward failed, which the scope reports
 * @shape the model's first argument
 */
CALX_API char *calx_summary_str_with(calx_module *model, calx_dims input_shape,
                                     const calx_summary_options *options);
/** Prints it to the standard output. @errors as calx_summary_str */
CALX_API void calx_summary_with(calx_module *model, calx_dims input_shape,
                                const calx_summary_options *options);

// ---- computed parameters ----------------------------------------------------

/** Zero means default. */
typedef struct CALX_OPTIONS calx_weight_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *name; /* NULL: "weight" */
  /* the norm is over all others; 0 = 0; CALX_ALL_DIMS: one norm for all */
  CALX_NAMED int dim;
} calx_weight_norm_options;
/**
 * Makes a layer's parameter g v / |v| of two new ones, which state dicts call
 * parametrizations.weight.original0 (g) and original1 (v). Before the optimiser
 * is made: the parameter itself is released.
 * @errors to the root: no such parameter, or one that is computed already
 * @source torch.nn.utils.parametrizations.weight_norm
 */
CALX_API void calx_weight_norm_with(calx_module *m,
                                    const calx_weight_norm_options *options);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_spectral_norm_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *name;           /* NULL: "weight" */
  CALX_NAMED int64_t n_power_iterations; /* 0 = 1 */
  CALX_NAMED double eps;                 /* the least norm; 0 = 1e-12 */
  CALX_NAMED int64_t
      dim; /* of the rows; 0 = 0, of a transposed convolution 1 */
} calx_spectral_norm_options;
/**
 * Makes a layer's parameter w / s of a new one w, with s the largest singular
 * value by power iteration, whose vectors are buffers that training updates:
 * parametrizations.weight.original, .0._u, .0._v. As calx_weight_norm.
 * @errors to the root
 * @source torch.nn.utils.parametrizations.spectral_norm
 */
CALX_API void calx_spectral_norm_with(
    calx_module *m, const calx_spectral_norm_options *options);
/** Makes the computed value a plain parameter again.
 *  @errors to the root: it is not computed
 *  @source torch.nn.utils.parametrize.remove_parametrizations */
CALX_API void calx_remove_parametrizations(calx_module *m, const char *name);

#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_SITE_
#define CALX_SITE_T_(t) (t)
#define CALX_SITE_O_(o) (o)
#else
#define CALX_SITE_ calx_at_(CALX_HERE),
// A tensor and options, which may be calls that set the site to their own.
#define CALX_SITE_T_(t) calx_here_(t, CALX_HERE)
#define CALX_SITE_O_(o) calx_options_here_(o, CALX_HERE)
#define calx_forward(m, x) \
  (calx_at_(CALX_HERE), calx_forward(m, calx_here_(x, CALX_HERE)))
#define calx_forward2(m, x, y) \
  (calx_at_(CALX_HERE),        \
   calx_forward2(m, calx_here_(x, CALX_HERE), calx_here_(y, CALX_HERE)))
#define calx_forward3(m, x, y, z)                                       \
  (calx_at_(CALX_HERE),                                                 \
   calx_forward3(m, calx_here_(x, CALX_HERE), calx_here_(y, CALX_HERE), \
                 calx_here_(z, CALX_HERE)))
#define calx_forward_n(m, inputs, count) \
  (calx_at_(CALX_HERE), calx_forward_n(m, inputs, count))
#define calx_module_param(m, name, init) \
  (calx_at_(CALX_HERE), calx_module_param(m, name, init))
#define calx_module_buffer(m, name, init) \
  (calx_at_(CALX_HERE), calx_module_buffer(m, name, init))
#define calx_module_tie(m, path, shared) \
  (calx_at_(CALX_HERE), calx_module_tie(m, path, shared))
#define calx_remove_parametrizations(m, name) \
  (calx_at_(CALX_HERE), calx_remove_parametrizations(m, name))
#endif
// CALX_CALL_1_(function, options, a, .x = 1): function(a, &options); the number
// is that of the arguments before the options.
#define CALX_CALL_1_(fn, O, ...) \
  CALX_CALLED_1_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_2_(fn, O, ...) \
  CALX_CALLED_2_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_3_(fn, O, ...) \
  CALX_CALLED_3_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_4_(fn, O, ...) \
  CALX_CALLED_4_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_5_(fn, O, ...) \
  CALX_CALLED_5_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALLED_1_(fn, O, a, ...) (CALX_SITE_ fn(a, &(O){ __VA_ARGS__ }))
#define CALX_CALLED_2_(fn, O, a, b, ...) \
  (CALX_SITE_ fn(a, b, &(O){ __VA_ARGS__ }))
#define CALX_CALLED_3_(fn, O, a, b, c, ...) \
  (CALX_SITE_ fn(a, b, c, &(O){ __VA_ARGS__ }))
#define CALX_CALLED_4_(fn, O, a, b, c, d, ...) \
  (CALX_SITE_ fn(a, b, c, d, &(O){ __VA_ARGS__ }))
#define CALX_CALLED_5_(fn, O, a, b, c, d, e, ...) \
  (CALX_SITE_ fn(a, b, c, d, e, &(O){ __VA_ARGS__ }))
// The same where a written 0 is 0, see CALX_WRITE_.
#define CALX_CALL_1_W_(fn, O, ...) \
  CALX_CALLED_1_W_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_2_W_(fn, O, ...) \
  CALX_CALLED_2_W_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_3_W_(fn, O, ...) \
  CALX_CALLED_3_W_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_4_W_(fn, O, ...) \
  CALX_CALLED_4_W_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALL_5_W_(fn, O, ...) \
  CALX_CALLED_5_W_(fn, O, __VA_ARGS__, .size = sizeof(O))
#define CALX_CALLED_1_W_(fn, O, a, ...) \
  (CALX_SITE_ fn(a, CALX_WRITE_(O, __VA_ARGS__)))
#define CALX_CALLED_2_W_(fn, O, a, b, ...) \
  (CALX_SITE_ fn(a, b, CALX_WRITE_(O, __VA_ARGS__)))
#define CALX_CALLED_3_W_(fn, O, a, b, c, ...) \
  (CALX_SITE_ fn(a, b, c, CALX_WRITE_(O, __VA_ARGS__)))
#define CALX_CALLED_4_W_(fn, O, a, b, c, d, ...) \
  (CALX_SITE_ fn(a, b, c, d, CALX_WRITE_(O, __VA_ARGS__)))
#define CALX_CALLED_5_W_(fn, O, a, b, c, d, e, ...) \
  (CALX_SITE_ fn(a, b, c, d, e, CALX_WRITE_(O, __VA_ARGS__)))
#define calx_summary(...) \
  CALX_CALL_2_(calx_summary_with, calx_summary_options, __VA_ARGS__)
#define calx_summary_str(...) \
  CALX_CALL_2_(calx_summary_str_with, calx_summary_options, __VA_ARGS__)
#define calx_weight_norm(...) \
  CALX_CALL_1_(calx_weight_norm_with, calx_weight_norm_options, __VA_ARGS__)
#define calx_spectral_norm(...) \
  CALX_CALL_1_(calx_spectral_norm_with, calx_spectral_norm_options, __VA_ARGS__)
#endif
#include "calx/init.h"
#include "calx/layers.h"
#endif
