// optim/lbfgs: what an LBFGS optimiser is, for its state dict too.
//
// Its vectors are the parameters' elements, joined, as doubles of the host:
// each decision of a step needs a number there, and an iteration has four
// operations for each vector of the history, which would be as many launches.
#ifndef CX_OPTIM_LBFGS_H
#define CX_OPTIM_LBFGS_H

#include "optim/optimizer.h"

// What the next step goes on from, by PyTorch's names.
typedef struct cx_optim_lbfgs_state {
  int64_t func_evals, n_iter;
  double t, h_diag, prev_loss;
  double *d, *prev_flat_grad;          // NULL before the first iteration
  double **old_dirs, **old_stps, *ro;  // n_old of each, the oldest first
  size_t n_old, capacity;
} cx_optim_lbfgs_state;
void cx_optim_lbfgs_state_free(cx_optim_lbfgs_state *s);
// Makes room for one more pair. NULL and false: no memory.
bool cx_optim_lbfgs_grow(cx_optim_lbfgs_state *s, size_t size);

typedef struct cx_optim_lbfgs_group {
  cx_optim_group base;
  double max_iter, max_eval, tolerance_grad, tolerance_change, history_size;
  double line_search;  // 0: none, 1: strong_wolfe
} cx_optim_lbfgs_group;

typedef struct cx_optim_lbfgs {
  calx_optimizer base;
  cx_optim_lbfgs_state s;
  size_t size;
  calx_dtype dtype;  // of the device's joined vector: f64, or f32
  // During a step.
  calx_loss_closure_fn *closure;
  void *user;
  double *x, *grad;
  double *search[4];  // of the line search: gradients
  void *staging;      // what is read, and written
  int64_t evals;
} cx_optim_lbfgs;

// The LBFGS optimiser; NULL: it is another one.
cx_optim_lbfgs *cx_optim_as_lbfgs(calx_optimizer *opt);

// Reads the parameters into x.
calx_status *cx_optim_lbfgs_read(cx_optim_lbfgs *l) CALX_MUST_USE;
// Gives the parameters the values x + t d, and d NULL: x. Each is rounded to
// the parameter's type.
calx_status *cx_optim_lbfgs_assign(cx_optim_lbfgs *l, double t,
                                   const double *d) CALX_MUST_USE;
// What the former makes of x + t d becomes x.
void cx_optim_lbfgs_advance(cx_optim_lbfgs *l, double t, const double *d);
// Runs the closure: the loss, and its gradient.
calx_status *cx_optim_lbfgs_evaluate(cx_optim_lbfgs *l, double *out_loss,
                                     double *out_grad) CALX_MUST_USE;
// Evaluates the closure at x + t d: the loss, and the gradient.
calx_status *cx_optim_lbfgs_at(cx_optim_lbfgs *l, double t, double *out_loss,
                               double *out_grad) CALX_MUST_USE;
double cx_optim_dot(size_t n, const double *x, const double *y);
double cx_optim_greatest(size_t n, const double *x);  // NaN where one is

// A point of the line search.
typedef struct cx_optim_point {
  double t, loss, slope;
  double *grad;
} cx_optim_point;
// Finds a step that satisfies the strong Wolfe conditions. *at is the point of
// step 0 with the first step to be tried as `t`; then the one that was found.
// Its gradient is copied to `grad`.
calx_status *cx_optim_strong_wolfe(cx_optim_lbfgs *l, cx_optim_point *at,
                                   int64_t most) CALX_MUST_USE;

#endif
