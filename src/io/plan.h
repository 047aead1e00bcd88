// io/plan: the changes of a load. All new values are on the device before the
// first of them is assigned.
#ifndef CX_IO_PLAN_H
#define CX_IO_PLAN_H

#include "calx/io.h"

typedef struct cx_io_change {
  calx_tensor *to;     // borrowed
  calx_tensor *value;  // owned
} cx_io_change;

typedef struct cx_io_plan {
  cx_io_change *changes;
  size_t n, capacity;
} cx_io_plan;  // the zero value changes nothing

// A durable tensor with t's elements and shape, of this type, on the device of
// `like`. t may have another type and be on the host.
calx_status *cx_io_copy_to_device(calx_tensor *t, const calx_tensor *like,
                                  calx_dtype dtype,
                                  calx_tensor **out_tensor) CALX_MUST_USE;
// Plans that `to` takes the elements of t.
calx_status *cx_io_plan_add(cx_io_plan *plan, calx_tensor *to,
                            calx_tensor *t) CALX_MUST_USE;
void cx_io_plan_give(const cx_io_plan *plan);
void cx_io_plan_free(cx_io_plan *plan);

bool cx_io_same_size(const calx_tensor *a, const calx_tensor *b);

// calx_module_state_dict() with a prefix ("": none) before each key.
calx_status *cx_io_state_dict(calx_module *model, const char *prefix,
                              calx_value **out_dict) CALX_MUST_USE;

// The plans behind calx_module_load_state_dict_with() and
// calx_optimizer_load_state_dict().
calx_status *cx_io_module_plan(calx_module *model, const calx_value *dict,
                               const calx_load_state_dict_options *options,
                               cx_io_plan *plan) CALX_MUST_USE;

// What is wrong with the state of a schedule; NULL: it may be given.
calx_status *cx_io_scheduler_check(const calx_lr_scheduler *s,
                                   const calx_value *dict) CALX_MUST_USE;
void cx_io_scheduler_give(calx_lr_scheduler *s, const calx_value *dict);
// The same of a gradient scaler.
calx_status *cx_io_scaler_check(const calx_grad_scaler *s,
                                const calx_value *dict) CALX_MUST_USE;
void cx_io_scaler_give(calx_grad_scaler *s, const calx_value *dict);

typedef struct cx_io_optimizer_plan cx_io_optimizer_plan;
calx_status *cx_io_optimizer_plan_new(
    calx_optimizer *opt, const calx_value *dict, cx_io_plan *plan,
    cx_io_optimizer_plan **out_plan) CALX_MUST_USE;
// Call it after cx_io_plan_give().
void cx_io_optimizer_plan_give(cx_io_optimizer_plan *p);
void cx_io_optimizer_plan_free(cx_io_optimizer_plan *p);  // NULL is accepted

#endif
