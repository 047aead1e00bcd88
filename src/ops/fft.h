// ops/fft: the transform that torch.fft's functions are composed of.
#ifndef CX_OPS_FFT_H
#define CX_OPS_FFT_H

#include "hlo/build.h"
#include "ops/ops.h"

// Dimensions of one transform, at most.
enum { CX_OPS_FFT_DIMS = 3 };

// Over the last n_dims dimensions of a usable x, none of size 0. `length`: of
// the last one, where its numbers are real; IRFFT takes length/2+1 of them.
calx_tensor *cx_ops_transform(cx_hlo_fft_kind kind, calx_tensor *x,
                              uint32_t n_dims, int64_t length);

#endif
