// optim/optimizer: what the optimisers share.
//
// A rule computes one parameter's new value and state from its gradient. The
// shared part calls it for each parameter and assigns the results when all have
// succeeded: a step changes all parameters or none.
#ifndef CX_OPTIM_OPTIMIZER_H
#define CX_OPTIM_OPTIMIZER_H

#include <stddef.h>

#include "calx/optim.h"
#include "graph/node.h"

enum { CX_OPTIM_STATES = 3 };

typedef struct cx_optim_param {
  calx_tensor *tensor;  // owned
  const char *path;
  calx_tensor *state[CX_OPTIM_STATES];  // owned; NULL before the first step
  int64_t steps;                        // that updated it
  int64_t confirmed_steps;              // of them, those that a sync has run
} cx_optim_param;

// The results of a rule for one parameter: temporaries of the current scope.
typedef struct cx_optim_update {
  calx_tensor *value;  // NULL: not updated
  calx_tensor *state[CX_OPTIM_STATES];
  bool is_new[CX_OPTIM_STATES];  // state is a handle of its own
} cx_optim_update;

// A hyperparameter by PyTorch's name: where it is in the optimiser's struct.
typedef enum cx_optim_field_kind {
  CX_OPTIM_NUMBER,  // a double, of 0 or more
  CX_OPTIM_PAIR,    // two of them, in [0, 1)
  CX_OPTIM_FLAG     // a bool
} cx_optim_field_kind;
typedef struct cx_optim_field {
  const char *name;
  cx_optim_field_kind kind;
  size_t offset;
} cx_optim_field;

// Where a parameter's elements are among those that `inner` steps on.
typedef struct cx_optim_position {
  size_t inner;   // index of inner's parameter: a rank's equal part of several
                  // of the outer parameters, joined and padded
  int64_t first;  // index of its first element among the joined ones
} cx_optim_position;

typedef struct cx_optim_rule {
  const char *name;                         // "sgd"
  const char *states[CX_OPTIM_STATES + 1];  // PyTorch's names
  const cx_optim_field *fields;  // in PyTorch's order, ended by a NULL name
  bool has_step;                 // PyTorch keeps each parameter's steps
  // Makes the numbers that step `step`, counted from 1, needs for parameters of
  // this type. They are made once for all parameters, so that they are uploaded
  // once.
  void (*prepare)(calx_optimizer *opt, int64_t step, calx_dtype dtype);
  void (*update)(calx_optimizer *opt, const cx_optim_param *p,
                 calx_tensor *grad, cx_optim_update *out);
  // The next four are NULL unless an inner optimiser does the steps. `step`
  // does the whole step instead of the two above.
  calx_status *(*step)(calx_optimizer *opt);
  // Sets the gradients of inner's parameters to the reduced ones. The next step
  // uses them, unless the outer gradients have changed since.
  calx_status *(*reduce)(calx_optimizer *opt);
  // The position of parameter i, equal on all ranks.
  cx_optim_position (*position)(const calx_optimizer *opt, size_t i);
  void (*free)(calx_optimizer *opt);
} cx_optim_rule;

struct calx_optimizer {  // the first member of each optimiser's own struct
  const cx_optim_rule *rule;
  calx_optimizer *inner;  // that keeps state and count; NULL: none
  cx_optim_param *params;
  size_t n, capacity;
  cx_optim_update *updates;  // scratch of a step, one for each parameter
  calx_device *device;       // of all parameters
  double lr;
  bool keep_gradients;
  int64_t steps, confirmed_steps;
  // A tensor that the steps since the last sync assigned, and its values before
  // and after them. They show whether the sync ran these steps.
  calx_tensor *probe;
  const cx_graph_node *probe_before, *probe_after;
  calx_status *status;
};

// Makes an optimiser of `bytes`, whose first member is the shared part, for a
// model's parameters. Never NULL: without memory it is one that has no
// parameters.
calx_optimizer *cx_optim_new(size_t bytes, const cx_optim_rule *rule,
                             calx_module *model);
// Records a failure, or NULL, and owns it. The first one is kept.
void cx_optim_fail(calx_optimizer *opt, calx_status *status);
// False: there was no memory for the optimiser, and it must not be changed.
bool cx_optim_is_real(const calx_optimizer *opt);

// A number of the user's, as an operand for parameters of this type.
calx_tensor *cx_optim_number(const calx_optimizer *opt, calx_dtype dtype,
                             double value);
// The status, annotated with the parameter whose gradient it is about.
calx_status *cx_optim_name_gradient(calx_status *status,
                                    const cx_optim_param *p);
// "sgd: lr -1, a number of 0 or more is wanted"; NULL: value is 0 or more.
calx_status *cx_optim_check_positive(const calx_optimizer *opt,
                                     const char *name,
                                     double value) CALX_MUST_USE;

#endif
