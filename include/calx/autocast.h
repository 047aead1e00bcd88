/**
 * calx/autocast.h: mixed precision. In a region, products and convolutions
 * compute in bf16 or f16 and losses, softmax and norms in f32, whatever their
 * operands are; parameters stay f32, and so do their gradients.
 *
 * To bf16 or f16: convolutions, matmul, mm, bmm, mv, linear, addmm, addmv,
 * baddbmm, einsum, prelu, relu, max_pool2d. To f32: softmax and log_softmax,
 * batch_norm and the other norms, recurrences, pow with a number, prod,
 * reflection and replication pad, all losses. The others take what comes and
 * promote as ever. f64 and integers are left alone.
 *
 * @threads  each thread has regions of its own
 */
#ifndef CALX_AUTOCAST_H
#define CALX_AUTOCAST_H

#include "calx/dtype.h"
#include "calx/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Begins a region; regions nest, and end with calx_autocast_end() or with their
 * scope. Call calx_backward() outside, or inside: gradients have the types of
 * the forward pass either way.
 * @param dtype  CALX_BF16, CALX_F16, or CALX_DTYPE_DEFAULT: no autocast in it
 * @errors through the scope: INVALID_ARGUMENT another type; RESOURCE_EXHAUSTED
 *         64 regions are open
 * @source torch.amp.autocast, torch_xla.amp.autocast
 */
CALX_API void calx_autocast_begin(calx_dtype dtype);
/** Ends the innermost region of the current scope.
 *  @errors through the scope: FAILED_PRECONDITION there is none */
CALX_API void calx_autocast_end(void);
/** What products compute in now; CALX_DTYPE_DEFAULT: no region is open. */
CALX_API calx_dtype calx_autocast_dtype(void);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define calx_autocast_begin(dtype) \
  (calx_at_(CALX_HERE), calx_autocast_begin(dtype))
#define calx_autocast_end() (calx_at_(CALX_HERE), calx_autocast_end())
#endif
#endif
