// io/optim_state: what the files of an optimiser's state dict share.
// optim_state.c has the dict of an optimiser; optim_whole.c that of one whose
// state is spread over the ranks, gathered; optim_param.c one parameter's part
// of either.
#ifndef CX_IO_OPTIM_STATE_H
#define CX_IO_OPTIM_STATE_H

#include "io/plan.h"
#include "optim/optimizer.h"

// What a load will make of one parameter's state.
typedef struct cx_io_param_plan {
  calx_tensor *fresh[CX_OPTIM_STATES];  // owned: state that it did not have
  bool has[CX_OPTIM_STATES];
  int64_t steps;
} cx_io_param_plan;

// ---- out of an optimiser ----------------------------------------------------

// A dict at `key` of `state`, with the steps of parameter i where the rule has
// them.
calx_status *cx_io_optim_put_param(const calx_optimizer *opt, size_t i,
                                   int64_t key, calx_value *state,
                                   calx_value **out_own) CALX_MUST_USE;
// The same with the state tensors that the parameter has.
calx_status *cx_io_optim_put_states(const calx_optimizer *opt, size_t i,
                                    calx_value *state) CALX_MUST_USE;
// The state of all of opt's parameters into the empty dict `state`. Every rank
// calls it.
calx_status *cx_io_whole_put(const calx_optimizer *opt,
                             calx_value *state) CALX_MUST_USE;

// ---- into an optimiser ------------------------------------------------------

// A number, also as a tensor of one element: PyTorch keeps the steps so, and
// with `capturable` the learning rate. NaN: it is none.
double cx_io_optim_number(const calx_value *v);
// A number of steps; -1: it is none.
int64_t cx_io_optim_steps(const calx_value *v);
// Why an entry of the dict is refused.
calx_status *cx_io_optim_wrong(const calx_optimizer *opt, const char *name,
                               const calx_value *found,
                               const char *wanted) CALX_MUST_USE;
calx_status *cx_io_optim_wrong_steps(const calx_optimizer *opt,
                                     const char *name,
                                     const calx_value *found) CALX_MUST_USE;
// The tensor of the rule's state k in a parameter's dict (NULL: none), of the
// parameter's sizes; NULL where there is none.
calx_status *cx_io_optim_find(const calx_optimizer *opt,
                              const cx_optim_param *p, int k,
                              const calx_value *own,
                              calx_tensor **out_tensor) CALX_MUST_USE;
// How many steps the dict says; 0 where there is none, or the rule has none.
calx_status *cx_io_optim_find_steps(const calx_optimizer *opt,
                                    const cx_optim_param *p,
                                    const calx_value *own,
                                    int64_t *out_steps) CALX_MUST_USE;
// Parameter i will have the elements of t as its state k.
calx_status *cx_io_optim_plan_state(const calx_optimizer *opt, size_t i, int k,
                                    calx_tensor *t, cx_io_plan *plan,
                                    cx_io_param_plan *out) CALX_MUST_USE;
// Parameter i will have the states and steps of its dict `own` (NULL: none).
calx_status *cx_io_optim_plan_param(const calx_optimizer *opt, size_t i,
                                    const calx_value *own, cx_io_plan *plan,
                                    cx_io_param_plan *out) CALX_MUST_USE;
// Of a whole state, whose dicts' keys are `ids`, this rank's part: what the
// parameters of opt->inner will have, `out`.
calx_status *cx_io_whole_plan(const calx_optimizer *opt, const calx_value *ids,
                              const calx_value *state, cx_io_plan *plan,
                              cx_io_param_plan *out) CALX_MUST_USE;

#endif
