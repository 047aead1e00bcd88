// optim/optimizer: what the optimisers share.
//
// A rule says how one parameter's new value and new state follow from its
// gradient. The shared part calls it for each parameter, and only when all
// succeeded assigns anything: a step happens whole or not at all.
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

// What a rule makes of one parameter: temporaries of the current scope.
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
  size_t inner;   // its parameter: one of the equal parts, a rank's, into which
                  // several of the outer ones', joined and padded, are cut
  int64_t first;  // element, of those that are joined
} cx_optim_position;

typedef struct cx_optim_rule {
  const char *name;                         // "sgd"
  const char *states[CX_OPTIM_STATES + 1];  // PyTorch's names
  const cx_optim_field *fields;  // in PyTorch's order, ended by a NULL name
  bool has_step;                 // PyTorch keeps each parameter's steps
  // The numbers of step number `step`, from 1, of parameters of this type: made
  // once for all of them, so that they are uploaded once.
  void (*prepare)(calx_optimizer *opt, int64_t step, calx_dtype dtype);
  void (*update)(calx_optimizer *opt, const cx_optim_param *p,
                 calx_tensor *grad, cx_optim_update *out);
  // Of an optimiser that lets another one step, `inner`; NULL: none. The whole
  // step instead of the above, and what to free of its own.
  calx_status *(*step)(calx_optimizer *opt);
  // Gives inner's parameters their reduced gradients, which the next step takes
  // as they are then, if the outer ones' have not changed.
  calx_status *(*reduce)(calx_optimizer *opt);
  // Of parameter i; the same on all ranks.
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
  // and after them: from these it follows whether the sync ran them.
  calx_tensor *probe;
  const cx_graph_node *probe_before, *probe_after;
  calx_status *status;
};

// An optimiser of `bytes` (with the shared part first) for a model's
// parameters. Never NULL; the one without memory has no parameters.
calx_optimizer *cx_optim_new(size_t bytes, const cx_optim_rule *rule,
                             calx_module *model);
// Takes a failure, or NULL; the first stays.
void cx_optim_fail(calx_optimizer *opt, calx_status *status);
// Whether there is an optimiser at all, to be filled in.
bool cx_optim_is_real(const calx_optimizer *opt);

// A number of the user's as an operand of parameters of this type.
calx_tensor *cx_optim_number(const calx_optimizer *opt, calx_dtype dtype,
                             double value);
// "sgd: lr -1, a number of 0 or more is wanted"; NULL when it is.
// The same status, with whose gradient it is about.
calx_status *cx_optim_name_gradient(calx_status *status,
                                    const cx_optim_param *p);
calx_status *cx_optim_check_positive(const calx_optimizer *opt,
                                     const char *name,
                                     double value) CALX_MUST_USE;

#endif
