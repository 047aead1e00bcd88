// torchvision MODEL FROM TO: resnet50, resnet101, resnet152 or b0 to b7 in f64
// with torchvision's weights. FROM has 'model' (a state dict), 'x' (n, 3, h, w)
// and 'y' (n). TO gets 'logits' in evaluation, then, of a training step by SGD
// with rate 0.1, 'loss' and the state dict 'model'; 'parameters' counts.
#include <calx/calx.h>
#include <string.h>

#include "../../examples/efficientnet.h"
#include "../../examples/resnet.h"

static resnet res;
static efficientnet efficient;

static calx_status *make(const char *name, calx_module **out)
{
  static const struct {
    const char *name;
    int layers[4];
  } depths[] = { { "resnet50", { 3, 4, 6, 3 } },
                 { "resnet101", { 3, 4, 23, 3 } },
                 { "resnet152", { 3, 8, 36, 3 } } };
  for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
    if (strcmp(name, depths[i].name) != 0) continue;
    CALX_TRY(resnet_init(&res, depths[i].layers, 1000));
    *out = res.root;
    return NULL;
  }
  CALX_TRY(efficientnet_init(&efficient, name, 1000, true));
  *out = efficient.root;
  return NULL;
}

static calx_status *run(const char *name, const char *from, const char *to)
{
  calx_module *m;
  calx_value *in, *out = calx_value_container(CALX_KIND_DICT), *model;
  CALX_TRY(make(name, &m));
  calx_module_to(m, CALX_F64);
  CALX_TRY(calx_load(from, &in));
  CALX_TRY(calx_module_load_state_dict(m, calx_value_get(in, "model")));
  calx_optimizer *opt = calx_sgd(m, .lr = 0.1);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_to(calx_value_as_tensor(calx_value_get(in, "x")),
                           calx_device_current());
  calx_tensor *y = calx_to(calx_value_as_tensor(calx_value_get(in, "y")),
                           calx_device_current());
  calx_module_train(m, false);
  calx_tensor *logits = calx_detach(calx_forward(m, x));
  calx_module_train(m, true);
  calx_tensor *loss = calx_cross_entropy(calx_forward(m, x), y);
  calx_backward(loss);
  calx_optimizer_step(opt);
  calx_sync(logits, loss);
  CALX_TRY(calx_value_set(out, "logits", calx_value_tensor(logits)));
  CALX_TRY(calx_value_set(out, "loss", calx_value_tensor(calx_detach(loss))));
  CALX_TRY(calx_scope_end(scope));
  CALX_TRY(calx_module_state_dict(m, &model));
  CALX_TRY(calx_value_set(out, "model", model));
  CALX_TRY(calx_value_set(out, "parameters",
                          calx_value_int(calx_module_param_count(m))));
  CALX_TRY(calx_save(out, to));
  calx_value_free(out);
  calx_value_free(in);
  calx_optimizer_free(opt);
  calx_module_free(m);
  return NULL;
}

int main(int argc, char **argv)
{
  if (argc != 4) return 2;
  calx_status *status = run(argv[1], argv[2], argv[3]);
  calx_status_print(stderr, status);
  if (status != NULL) return 1;
  calx_shutdown();
  return 0;
}
