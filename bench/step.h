// bench/step: the MNIST training step that ours and the peers are timed on.
//
// Images, labels and initial parameters come from one formula (see step.c and
// peers/common.py), so that all print the same losses.
#ifndef CX_BENCH_STEP_H
#define CX_BENCH_STEP_H

#include "calx/calx.h"

typedef struct bench_step {
  calx_module *root, *conv1, *bn1, *conv2, *bn2, *fc1, *fc2;
  calx_optimizer *opt;         // SGD, lr 0.01, momentum 0.5
  calx_tensor *data, *target;  // f32 (B, 1, 28, 28), i64 (B), on the device
} bench_step;

// fixed: the formula's parameters in place of the layers' own.
void bench_step_init(bench_step *s, int64_t batch, bool fixed);
void bench_step_free(bench_step *s);

// The parts of a step, in a scope of the caller's.
calx_tensor *bench_step_forward(bench_step *s);  // the loss
// One whole step, launched, not waited for. loss: its value, which is waited
// for; NULL: it is not read.
void bench_step_run(bench_step *s, double *loss);

#endif
