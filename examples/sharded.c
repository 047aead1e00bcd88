// Trains a perceptron whose parameters are split among the devices: one program
// on all of them, written as for one.
//
//   CPU_NUM_DEVICES=4 sharded [--tensor] [--steps N]
//
// Without --tensor as in FSDP: each device has an equal part of every
// parameter, of the optimiser's state and of the batch, and the compiler
// gathers a weight where it is used. With it as in Megatron: a device has some
// columns of the first weight and the same rows of the second, and the sum
// behind the second is the only communication; the batch is whole. Exit code 1:
// an error, or the loss did not fall to a tenth.
#include <calx/calx.h>
#include <getopt.h>
#include <stdlib.h>

#include "args.h"

enum { BATCH = 64, IN = 32, HIDDEN = 256, OUT = 8 };

static void mark_rows(void *user, const char *path, calx_entry_kind kind,
                      calx_tensor *t)
{
  const calx_mesh *mesh = user;
  (void)path;
  (void)kind;
  if (calx_tensor_rank(t) == 2) {
    calx_mark_sharding(t, mesh, CALX_AXES("devices", NULL));
  } else {
    calx_mark_sharding(t, mesh, CALX_AXES("devices"));
  }
}

static void mark_tensor_parallel(calx_module *net, const calx_mesh *mesh)
{
  // A weight is (out, in): the columns of PyTorch's x W^T are its rows.
  calx_mark_sharding(calx_module_find(net, "0.weight"), mesh,
                     CALX_AXES("devices", NULL));
  calx_mark_sharding(calx_module_find(net, "0.bias"), mesh,
                     CALX_AXES("devices"));
  calx_mark_sharding(calx_module_find(net, "2.weight"), mesh,
                     CALX_AXES(NULL, "devices"));
}

static calx_module *new_net(void)
{
  calx_module *net = calx_nn_sequential(NULL, NULL);
  calx_nn_linear(net, NULL, IN, HIDDEN);
  calx_nn_gelu(net, NULL);
  calx_nn_linear(net, NULL, HIDDEN, OUT);
  return net;
}

// Learns a fixed linear map of random inputs. Reads the first and the last
// loss.
static calx_status *steps_of(calx_module *net, const calx_mesh *batch_mesh,
                             int64_t steps, double *first, double *last)
{
  calx_optimizer *opt = calx_adam(net, .lr = 3e-3);
  calx_tensor *map = calx_take(calx_randn(CALX_SHAPE(IN, OUT)));
  calx_status *status = NULL;
  for (int64_t i = 0; status == NULL && i < steps; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *x = calx_randn(CALX_SHAPE(BATCH, IN));
    if (batch_mesh != NULL) {
      calx_mark_sharding(x, batch_mesh, CALX_AXES("devices", NULL));
    }
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = calx_mse_loss(calx_forward(net, x), calx_mm(x, map));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    if (i == 0) *first = calx_item(loss);
    if (i == steps - 1) *last = calx_item(loss);
    status = calx_scope_end(scope);
  }
  calx_release(map);
  calx_optimizer_free(opt);
  return status;
}

static calx_status *train(bool tensor, int64_t steps)
{
  CALX_TRY(calx_use_spmd());
  int n = calx_spmd_device_count();
  calx_mesh *mesh = calx_mesh_new(CALX_SHAPE(n), CALX_AXES("devices"));
  calx_manual_seed(1);
  calx_module *net = new_net();
  if (tensor) {
    mark_tensor_parallel(net, mesh);
  } else {
    calx_module_parameters(net, mark_rows, mesh);
  }
  double first = 0, last = 0;
  calx_status *status =
      steps_of(net, tensor ? NULL : mesh, steps, &first, &last);
  calx_dims shard = calx_shard_shape(calx_module_find(net, "0.weight"));
  printf("%d devices, each with %lld of %d rows of the first weight\n", n,
         (long long)shard.values[0], HIDDEN);
  printf("loss %.4f, then %.4f\n", first, last);
  if (status == NULL) status = calx_scope_take_error();
  if (status == NULL && !(last < first / 10)) {
    status =
        calx_status_new(CALX_OUT_OF_RANGE, "the loss did not fall to a tenth");
  }
  calx_module_free(net);
  calx_mesh_free(mesh);
  return status;
}

int main(int argc, char **argv)
{
  static const struct option options[] = { { "tensor", no_argument, NULL, 't' },
                                           { "steps", required_argument, NULL,
                                             's' },
                                           { NULL, 0, NULL, 0 } };
  bool tensor = false;
  int64_t steps = 300;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c == 't') {
      tensor = true;
    } else if (c == 's') {
      steps = arg_count(argv, "steps", 1, 1000000);
    } else {
      return 2;
    }
  }
  arg_end(argc, argv);
  calx_status *status = train(tensor, steps);
  calx_status_print(stderr, status);
  const bool failed = status != NULL;
  calx_status_free(status);
  calx_shutdown();
  return failed;
}
