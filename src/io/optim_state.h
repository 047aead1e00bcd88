// io/optim_state: what the files of an optimiser's state dict share.
// optim_state.c has the dict of an optimiser; optim_whole.c that of one whose
// state is spread over the ranks, gathered; optim_param.c one parameter's part
// of either.
#ifndef CX_IO_OPTIM_STATE_H
#define CX_IO_OPTIM_STATE_H

#include "io/plan.h"
#include "optim/lbfgs.h"
#include "optim/optimizer.h"

// What a load will make of one parameter's state.
typedef struct cx_io_param_plan {
  calx_tensor *fresh[CX_OPTIM_STATES];  // owned: state that it did not have
  bool has[CX_OPTIM_STATES];
  int64_t steps;
  float number[CX_OPTIM_NUMBERS];
} cx_io_param_plan;

// ---- out of an optimiser ----------------------------------------------------

// Puts a dict at `key` of `state`. Where the rule counts steps, the dict has
// the steps of parameter i.
calx_status *cx_io_optim_put_param(const calx_optimizer *opt, size_t i,
                                   int64_t key, calx_value *state,
                                   calx_value **out_own) CALX_MUST_USE;
// Puts such a dict, with the parameter's state tensors, where it has any.
calx_status *cx_io_optim_put_states(const calx_optimizer *opt, size_t i,
                                    calx_value *state) CALX_MUST_USE;
// Puts the state of all parameters of `opt` into the empty dict `state`. Every
// rank must call it.
calx_status *cx_io_whole_put(const calx_optimizer *opt,
                             calx_value *state) CALX_MUST_USE;

// Puts LBFGS's state, which is that of all parameters, at 0 of `state`.
calx_status *cx_io_lbfgs_put(const cx_optim_lbfgs *l,
                             calx_value *state) CALX_MUST_USE;

// ---- into an optimiser ------------------------------------------------------

// The number that v holds, also where v is a tensor of one element: PyTorch
// keeps step counts so, and with `capturable` the learning rate. NaN: v is no
// number.
double cx_io_optim_number(const calx_value *v);
// The number of steps that v holds; -1: v is no number of steps.
int64_t cx_io_optim_steps(const calx_value *v);
// The error for an entry of the dict that is refused.
calx_status *cx_io_optim_wrong(const calx_optimizer *opt, const char *name,
                               const calx_value *found,
                               const char *wanted) CALX_MUST_USE;
calx_status *cx_io_optim_wrong_steps(const calx_optimizer *opt,
                                     const char *name,
                                     const calx_value *found) CALX_MUST_USE;
// The tensor of the rule's state k in the parameter's dict `own` (NULL: none).
// Its sizes are checked. *out_tensor is NULL where the dict has none.
calx_status *cx_io_optim_find(const calx_optimizer *opt,
                              const cx_optim_param *p, int k,
                              const calx_value *own,
                              calx_tensor **out_tensor) CALX_MUST_USE;
// The parameter's count of steps in its dict, and the rule's numbers; 0 where
// the dict has none, or the rule needs none.
calx_status *cx_io_optim_find_steps(const calx_optimizer *opt,
                                    const cx_optim_param *p,
                                    const calx_value *own,
                                    cx_io_param_plan *out) CALX_MUST_USE;
// Plans that parameter i takes the elements of t as its state k.
calx_status *cx_io_optim_plan_state(const calx_optimizer *opt, size_t i, int k,
                                    calx_tensor *t, cx_io_plan *plan,
                                    cx_io_param_plan *out) CALX_MUST_USE;
// Plans that parameter i takes the states and steps of its dict `own` (NULL:
// none).
calx_status *cx_io_optim_plan_param(const calx_optimizer *opt, size_t i,
                                    const calx_value *own, cx_io_plan *plan,
                                    cx_io_param_plan *out) CALX_MUST_USE;
// Reads LBFGS's state from the dict `own` (NULL: none) into the empty `out`,
// which the caller frees, after a failure too.
calx_status *cx_io_lbfgs_plan(const cx_optim_lbfgs *l, const calx_value *own,
                              cx_optim_lbfgs_state *out) CALX_MUST_USE;
void cx_io_lbfgs_give(cx_optim_lbfgs *l, cx_optim_lbfgs_state *from);
// Plans this rank's part of a whole state. `ids` are the keys of the
// parameters' dicts in `state`; `out` is the plan of each parameter of
// opt->inner.
calx_status *cx_io_whole_plan(const calx_optimizer *opt, const calx_value *ids,
                              const calx_value *state, cx_io_plan *plan,
                              cx_io_param_plan *out) CALX_MUST_USE;

#endif
