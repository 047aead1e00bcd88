// io/optim_state: what the two layouts of an optimiser's state share: its own
// one, and the whole of one that lets another step, `inner`, whose state is
// spread over the ranks (io/optim_whole).
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
// The state of all of opt's parameters into the empty dict `state`. Every rank
// calls it.
calx_status *cx_io_whole_put(const calx_optimizer *opt,
                             calx_value *state) CALX_MUST_USE;

// ---- into an optimiser ------------------------------------------------------

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
// Of a whole state, whose dicts' keys are `ids`, this rank's part: what the
// parameters of opt->inner will have, `out`.
calx_status *cx_io_whole_plan(const calx_optimizer *opt, const calx_value *ids,
                              const calx_value *state, cx_io_plan *plan,
                              cx_io_param_plan *out) CALX_MUST_USE;

#endif
