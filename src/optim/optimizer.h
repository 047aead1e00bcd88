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

enum {
  CX_OPTIM_RULE_STATES = 3,
  // The f32 value of a narrow parameter; follows the states of the rule.
  CX_OPTIM_MASTER = CX_OPTIM_RULE_STATES,
  CX_OPTIM_STATES,
  CX_OPTIM_NUMBERS = 2
};

typedef struct cx_optim_param {
  calx_tensor *tensor;  // owned
  const char *path;
  calx_tensor *state[CX_OPTIM_STATES];  // owned; NULL before the first step
  // What the rule keeps on the host, as PyTorch keeps it: f32 numbers.
  float number[CX_OPTIM_NUMBERS], confirmed_number[CX_OPTIM_NUMBERS];
  int64_t steps;            // that updated it
  int64_t confirmed_steps;  // of them, those that a sync has run
  size_t group;
  // Of a step that may not have been one, see `skip`: it was updated, and its
  // numbers before.
  bool is_skippable;
  float number_before[CX_OPTIM_NUMBERS];
} cx_optim_param;

// The results of a rule for one parameter: temporaries of the current scope.
typedef struct cx_optim_update {
  calx_tensor *value;  // NULL: not updated
  calx_tensor *state[CX_OPTIM_STATES];
  bool is_new[CX_OPTIM_STATES];  // state is a handle of its own
  float number[CX_OPTIM_NUMBERS];
} cx_optim_update;

// The values that an option may have.
typedef enum cx_optim_range {
  CX_OPTIM_NOTHING,        // no number: the second of an option that is no pair
  CX_OPTIM_POSITIVE,       // 0 or more
  CX_OPTIM_ANY,            // but NaN
  CX_OPTIM_FRACTION,       // [0, 1)
  CX_OPTIM_UNIT,           // [0, 1]
  CX_OPTIM_INSIDE,         // (0, 1)
  CX_OPTIM_ABOVE_ONE,      // > 1
  CX_OPTIM_FROM_ONE,       // >= 1
  CX_OPTIM_NEGATIVE,       // 0 or less
  CX_OPTIM_NONE_POSITIVE,  // 0 or more, or PyTorch's None, which is NaN here
  CX_OPTIM_FLAG,           // a bool
  CX_OPTIM_COUNT,          // a whole number of 0 or more
  CX_OPTIM_STEPS,          // a whole number of 1 to 99
  CX_OPTIM_NAME,           // the index of one of the rule's choices
  CX_OPTIM_TRIPLE          // of `second`: three numbers, all of `range`
} cx_optim_range;

// An option by PyTorch's name: where it is in the rule's group.
typedef struct cx_optim_field {
  const char *name;
  size_t offset;  // of a double, of several of them, or of a bool
  cx_optim_range range, second;
} cx_optim_field;

enum { CX_OPTIM_MOST_VALUES = 3 };
// How many numbers an option has.
static inline int cx_optim_field_count(const cx_optim_field *f)
{
  return f->second == CX_OPTIM_TRIPLE    ? 3
         : f->second != CX_OPTIM_NOTHING ? 2
                                         : 1;
}

// What the options of all rules have in common. The first member of each rule's
// own struct, whose other members are the rule's options and the numbers that
// prepare() makes.
typedef struct cx_optim_group {
  calx_optimizer *opt;
  double lr, weight_decay;
  double initial_lr;  // where a schedule was made for it
  bool has_initial_lr;
  bool maximize;
  bool decoupled;   // weight_decay scales the value by 1 - lr weight_decay;
                    // otherwise it adds weight_decay times the value to the
                    // gradient
  size_t first, n;  // its parameters
  // Of the step that is being recorded.
  int64_t step;  // 0: nothing is prepared
  calx_dtype dtype;
  float number[CX_OPTIM_NUMBERS], next[CX_OPTIM_NUMBERS];
  calx_tensor *by_decay;  // NULL: no weight decay
} cx_optim_group;

// Where a parameter's elements are among those that `inner` steps on.
typedef struct cx_optim_position {
  size_t inner;   // index of inner's parameter: a rank's equal part of several
                  // of the outer parameters, joined and padded
  int64_t first;  // index of its first element among the joined ones
} cx_optim_position;

typedef struct cx_optim_rule {
  const char *name;                              // "sgd"
  const char *states[CX_OPTIM_RULE_STATES + 1];  // PyTorch's names
  const char *numbers[CX_OPTIM_NUMBERS + 1];     // PyTorch's names
  const cx_optim_field *fields;  // in PyTorch's order, ended by a NULL name
  size_t bytes;                  // of an optimiser; 0: of the shared part
  size_t group_bytes;            // of the rule's struct; 0: of the shared part
  // Those of the option that is a text, ended by NULL; PyTorch's None is "".
  const char *const *choices;
  bool has_step;   // PyTorch keeps each parameter's steps
  bool own_decay;  // the rule does what weight_decay asks for
  // The update of an element depends on the parameter's other elements:
  // through sums over all, which cx_optim_sum() makes, or (needs_shape) more.
  bool needs_all, needs_shape;
  // What is wrong with options that are each in range; may be NULL.
  calx_status *(*check)(const cx_optim_group *g);
  // What is wrong with a parameter; may be NULL.
  calx_status *(*check_param)(const calx_tensor *t);
  // The sizes of state k of a parameter, written over the parameter's; NULL:
  // they are the parameter's.
  void (*state_shape)(int k, cx_graph_shape *shape);
  // Makes the numbers that step `step`, counted from 1, needs for parameters of
  // this type. They are made once for all parameters of a group, so that they
  // are uploaded once. Where the rule has numbers it computes `next` of
  // `number`, which are 0 at step 1.
  void (*prepare)(cx_optim_group *g, int64_t step, calx_dtype dtype);
  // The new value and states, of `value` and `grad` after maximize and
  // weight_decay. A narrow type comes as f32.
  void (*update)(const cx_optim_group *g, const cx_optim_param *p,
                 calx_tensor *value, calx_tensor *grad, cx_optim_update *out);
  // The next five are NULL unless an inner optimiser does the steps. `step`
  // does the whole step instead of the two above.
  calx_status *(*step)(calx_optimizer *opt);
  // The step of a rule that evaluates the loss itself; NULL: a step follows the
  // closure. *out_loss is a temporary of the current scope.
  calx_status *(*step_closure)(calx_optimizer *opt,
                               calx_loss_closure_fn *closure, void *user,
                               calx_tensor **out_loss);
  // Sets the gradients of inner's parameters to the reduced ones. The next step
  // uses them, unless the outer gradients have changed since.
  calx_status *(*reduce)(calx_optimizer *opt);
  // The position of parameter i, equal on all ranks.
  cx_optim_position (*position)(const calx_optimizer *opt, size_t i);
  // Gives inner the group that `group`, the optimiser's last one, is.
  calx_status *(*add_group)(calx_optimizer *opt, const cx_optim_group *group,
                            const calx_param_group_options *options);
  void (*free)(calx_optimizer *opt);
} cx_optim_rule;

struct calx_optimizer {
  const cx_optim_rule *rule;
  calx_optimizer *inner;  // that keeps state and count; NULL: none
  cx_optim_param *params;
  size_t n, capacity;
  cx_optim_update *updates;  // scratch of a step, one for each parameter
  calx_device *device;       // of all parameters
  cx_optim_group **groups;   // each parameter is in one, in their order
  size_t n_groups, groups_capacity;
  cx_optim_group *defaults;  // the options that it was made with
  bool keep_gradients;
  bool master_weights;  // narrow parameters have CX_OPTIM_MASTER
  bool sharded;         // each parameter is this rank's part of a longer one
  int64_t steps, confirmed_steps;
  // A tensor that the steps since the last sync assigned, and its values before
  // and after them. They show whether the sync ran these steps.
  calx_tensor *probe;
  const cx_graph_node *probe_before, *probe_after;
  calx_status *status;
  // During a step: where it is not 0 nothing changes. Not owned.
  calx_tensor *condition;
  // That of the last step, which the host has counted; owned. It is read, and
  // the count corrected, when the count is needed. NULL: there is none.
  calx_tensor *skip;
};

// Which parameters an optimiser or a group gets.
typedef struct cx_optim_choice {
  calx_module *model;
  calx_tensor *const *params;  // NULL: all of the model's
  size_t n;
} cx_optim_choice;

// Makes an optimiser with one group of these parameters. Never NULL: without
// memory it is one that has no parameters. `status` is what is wrong so far.
calx_optimizer *cx_optim_new(const cx_optim_rule *rule, calx_status *status,
                             cx_optim_choice choice);
// The first group, whose options the constructor sets; NULL: no memory.
void *cx_optim_first_group(calx_optimizer *opt);
// Checks the options, which later groups begin with. Returns opt.
calx_optimizer *cx_optim_ready(calx_optimizer *opt, bool keep_gradients,
                               bool master_weights);
// Records a failure, or NULL, and owns it. The first one is kept.
void cx_optim_fail(calx_optimizer *opt, calx_status *status);
// False: there was no memory for the optimiser, and it must not be changed.
bool cx_optim_is_real(const calx_optimizer *opt);

// The name of state k in state dicts; NULL: the optimiser has no such state.
const char *cx_optim_state_name(const calx_optimizer *opt, int k);
// Whether this parameter has an f32 value of its own.
bool cx_optim_has_master(const calx_optimizer *opt, const cx_optim_param *p);
// The f32 value that a step updates.
calx_tensor *cx_optim_master(const calx_optimizer *opt,
                             const cx_optim_param *p);
// The type, and the sizes, of a parameter's state k.
cx_graph_shape cx_optim_state_shape(const calx_optimizer *opt,
                                    const cx_optim_param *p, int k);
// Computes the new value and state of one parameter.
void cx_optim_update_param(cx_optim_group *g, const cx_optim_param *p,
                           calx_tensor *grad, cx_optim_update *out);
// The status, annotated with the parameter whose gradient it is about.
calx_status *cx_optim_name_gradient(calx_status *status,
                                    const cx_optim_param *p);
// ---- groups, see group.c ----------------------------------------------------

// The group with this number; NULL: none. Of the inner optimiser's, where there
// is one.
cx_optim_group *cx_optim_group_at(const calx_optimizer *opt, size_t group);
// Appends a group of these parameters with the options of `like` (NULL: 0).
calx_status *cx_optim_append_group(calx_optimizer *opt, cx_optim_choice choice,
                                   const cx_optim_group *like,
                                   cx_optim_group **out_group) CALX_MUST_USE;
// Takes the last group away again.
void cx_optim_drop_group(calx_optimizer *opt);
// Appends a group of these parameters with the options that are given; those of
// `options` that name parameters are not looked at.
calx_status *cx_optim_add_group(calx_optimizer *opt, cx_optim_choice choice,
                                const calx_param_group_options *options)
    CALX_MUST_USE;
// "sgd: lr -1, a number of 0 or more is wanted"; NULL: all options are good.
calx_status *cx_optim_check_group(const cx_optim_group *g) CALX_MUST_USE;
bool cx_optim_in_range(cx_optim_range range, double x);
// "a number of 0 or more"
const char *cx_optim_range_text(const cx_optim_field *f);
double cx_optim_get(const cx_optim_group *g, const cx_optim_field *f,
                    int which);
void cx_optim_put(cx_optim_group *g, const cx_optim_field *f, int which,
                  double x);

// ---- terms of rules, see terms.c --------------------------------------------

// A number of the user's, as an operand for parameters of this type.
calx_tensor *cx_optim_number(const calx_optimizer *opt, calx_dtype dtype,
                             double value);
// The same where x is not 0; NULL where it is.
calx_tensor *cx_optim_number_or_none(const calx_optimizer *opt, calx_dtype d,
                                     double x);

// Of a state that is NULL, which stands for zeros.

// torch.lerp(average, x, weight), computed as PyTorch does from the operand
// that the weight is nearer to. `by` is the weight, or 1 - weight where
// cx_optim_lerp_weight() says so.
typedef struct cx_optim_lerp_weight {
  calx_tensor *by;
  bool from_end;  // by is 1 - weight
} cx_optim_lerp_weight;
cx_optim_lerp_weight cx_optim_lerp_by(const cx_optim_group *g, calx_dtype d,
                                      double rest);
calx_tensor *cx_optim_lerp(cx_optim_lerp_weight w, calx_tensor *average,
                           calx_tensor *x);
// by x + rest y y
calx_tensor *cx_optim_square_average(calx_tensor *by, calx_tensor *rest,
                                     calx_tensor *x, calx_tensor *y);
// x + by y; x and by may be NULL
calx_tensor *cx_optim_add_scaled(calx_tensor *x, calx_tensor *by,
                                 calx_tensor *y);
// The sum of all elements of a parameter-sized tensor, of all ranks' where the
// parameter is spread over them.
calx_tensor *cx_optim_sum(const cx_optim_group *g, calx_tensor *x);
// The Euclidean norm of the same elements.
calx_tensor *cx_optim_norm(const cx_optim_group *g, calx_tensor *x);
// x / below (NULL: y) where the scalars x and y are above 0, else 1.
calx_tensor *cx_optim_ratio(const cx_optim_group *g, calx_tensor *x,
                            calx_tensor *y, calx_tensor *below);

#endif
