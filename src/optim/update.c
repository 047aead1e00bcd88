// optim/update: the new value and state of one parameter. The rules compute in
// f32 and f64: other types come to them as these.
#include <string.h>

#include "base/dtype.h"
#include "calx/complex.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

// Makes the group's numbers for a parameter, unless the one before it has had
// the same.
static void prepare(cx_optim_group *g, const cx_optim_param *p, calx_dtype d)
{
  const cx_optim_rule *rule = g->opt->rule;
  bool master = cx_optim_has_master(g->opt, p);
  calx_dtype kept = master ? CALX_F32 : calx_tensor_dtype(p->tensor);
  if (g->step == p->steps + 1 && g->dtype == kept &&
      memcmp(g->number, p->number, sizeof g->number) == 0) {
    return;
  }
  g->step = p->steps + 1;
  g->dtype = kept;
  memcpy(g->number, p->number, sizeof g->number);
  memcpy(g->next, p->number, sizeof g->next);
  double decay = g->decoupled ? 1 - g->lr * g->weight_decay : g->weight_decay;
  bool decays = g->weight_decay != 0 && !rule->own_decay;
  g->by_decay = decays ? cx_optim_number(g->opt, d, decay) : NULL;
  rule->prepare(g, g->step, d);
}

static void update(cx_optim_group *g, const cx_optim_param *p,
                   calx_tensor *grad, cx_optim_update *out)
{
  calx_tensor *value = p->tensor;
  if (g->maximize) grad = calx_neg(grad);
  if (g->by_decay != NULL) {
    calx_tensor *scaled = calx_mul(value, g->by_decay);
    if (g->decoupled) {
      value = scaled;
    } else {
      grad = calx_add_with(grad, scaled, NULL);
    }
  }
  g->opt->rule->update(g, p, value, grad, out);
}

// Types narrower than f32 have too few bits for 1 - beta: their formulas are
// computed in f32, and what is kept is rounded. With a master nothing is but
// the parameter.
static void update_in_f32(cx_optim_group *g, const cx_optim_param *p,
                          calx_tensor *grad, cx_optim_update *out)
{
  calx_dtype narrow = calx_tensor_dtype(p->tensor);
  cx_optim_param wide = *p;
  bool master = cx_optim_has_master(g->opt, p);
  wide.tensor =
      master ? cx_optim_master(g->opt, p) : calx_to_dtype(p->tensor, CALX_F32);
  for (int k = 0; k < CX_OPTIM_RULE_STATES; k++) {
    if (p->state[k] == NULL) continue;
    wide.state[k] = calx_to_dtype(p->state[k], CALX_F32);
  }
  update(g, &wide, calx_to_dtype(grad, CALX_F32), out);
  if (master) out->state[CX_OPTIM_MASTER] = out->value;
  out->value = calx_to_dtype(out->value, narrow);
  for (int k = 0; k < CX_OPTIM_RULE_STATES && !master; k++) {
    if (out->state[k] == NULL) continue;
    out->state[k] = calx_to_dtype(out->state[k], narrow);
  }
}

// A rule sees the real and the imaginary parts as elements of their own, as
// PyTorch's optimisers do.
static void update_parts(cx_optim_group *g, const cx_optim_param *p,
                         calx_tensor *grad, cx_optim_update *out)
{
  cx_optim_param parts = *p;
  parts.tensor = calx_view_as_real(p->tensor);
  for (int k = 0; k < CX_OPTIM_RULE_STATES; k++) {
    if (p->state[k] == NULL) continue;
    parts.state[k] = calx_view_as_real(p->state[k]);
  }
  update(g, &parts, calx_view_as_real(grad), out);
  out->value = calx_view_as_complex(out->value);
  for (int k = 0; k < CX_OPTIM_RULE_STATES; k++) {
    if (out->state[k] == NULL) continue;
    out->state[k] = calx_view_as_complex(out->state[k]);
  }
}

void cx_optim_update_param(cx_optim_group *g, const cx_optim_param *p,
                           calx_tensor *grad, cx_optim_update *out)
{
  calx_dtype dtype = calx_tensor_dtype(p->tensor);
  if (cx_dtype_is_complex(dtype)) {
    prepare(g, p, cx_dtype_part(dtype));
    update_parts(g, p, grad, out);
  } else if (calx_dtype_size(dtype) < 4) {
    prepare(g, p, CALX_F32);
    update_in_f32(g, p, grad, out);
  } else {
    prepare(g, p, dtype);
    update(g, p, grad, out);
  }
  memcpy(out->number, g->next, sizeof out->number);
}
