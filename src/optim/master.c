// optim/master: f32 values of parameters of narrow types, which a step updates
// instead of them (P. Micikevicius et al., Mixed precision training, 2017). A
// master is one more state of the parameter, after those of the rule.
#include <float.h>

#include "base/dtype.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

// apex.optimizers FusedAdam and Transformer Engine's call it so.
const char *cx_optim_state_name(const calx_optimizer *opt, int k)
{
  if (k != CX_OPTIM_MASTER) return opt->rule->states[k];
  return opt->master_weights ? "master_param" : NULL;
}

bool cx_optim_has_master(const calx_optimizer *opt, const cx_optim_param *p)
{
  return opt->master_weights &&
         calx_dtype_size(calx_tensor_dtype(p->tensor)) < 4;
}

cx_graph_shape cx_optim_state_shape(const calx_optimizer *opt,
                                    const cx_optim_param *p, int k)
{
  cx_graph_shape shape = *cx_lazy_tensor_shape(p->tensor);
  if (cx_optim_has_master(opt, p)) shape.dtype = CALX_F32;
  if (opt->rule->state_shape != NULL && k != CX_OPTIM_MASTER) {
    opt->rule->state_shape(k, &shape);
  }
  return shape;
}

// That of the last step counts where the parameter is its rounding still, which
// is at most half a unit in the last place off. The comparison is of f32
// values: compilers that keep excess precision may drop a rounding to the
// narrow type.
calx_tensor *cx_optim_master(const calx_optimizer *opt, const cx_optim_param *p)
{
  bool half = calx_tensor_dtype(p->tensor) == CALX_F16;
  calx_tensor *wide = calx_to_dtype(p->tensor, CALX_F32);
  calx_tensor *master = p->state[CX_OPTIM_MASTER];
  if (master == NULL) return wide;
  calx_tensor *unit = cx_optim_number(opt, CALX_F32, half ? 0x1p-11 : 0x1p-8);
  calx_tensor *least =
      cx_optim_number(opt, CALX_F32, half ? 0x1p-25 : (double)FLT_MIN);
  calx_tensor *off = calx_abs(calx_sub_with(master, wide, NULL));
  calx_tensor *most = cx_optim_add_scaled(least, unit, calx_abs(wide));
  return calx_where(calx_le(off, most), master, wide);
}
