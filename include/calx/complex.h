/**
 * calx/complex.h: complex numbers and their parts, beside calx/ops.h, whose
 * conventions hold here.
 *
 * A tensor of CALX_C64 or CALX_C128 has elements as C's `float complex` and
 * `double complex`: the real part, then the imaginary one. Elementwise
 * arithmetic, powers, exponentials, logarithms, trigonometric and hyperbolic
 * functions, equality, sums, means, products, matrix products and what only
 * moves elements take complex tensors; every other function refuses them.
 * A real operand beside a complex one becomes complex, as in PyTorch; a complex
 * tensor becomes a real one only by a function that says which part.
 *
 * A gradient is that of a real loss by the conjugate, as PyTorch's: its real
 * part is the derivative by the real part, its imaginary part that by the
 * imaginary part.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_COMPLEX_H
#define CALX_COMPLEX_H

#include "calx/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/** real + i imag. @shape real, imag broadcast together @dtype both f32 or both
 *  f64 @source torch.complex */
CALX_API calx_tensor *calx_complex(calx_tensor *real, calx_tensor *imag);
/** abs (cos angle + i sin angle). @shape abs, angle broadcast together
 *  @dtype both f32 or both f64 @source torch.polar */
CALX_API calx_tensor *calx_polar(calx_tensor *abs, calx_tensor *angle);
/** The real part, a tensor of its own and not a view; a real x is itself.
 *  @shape x any @source torch.real */
CALX_API calx_tensor *calx_real(calx_tensor *x);
/** The imaginary part, a tensor of its own and not a view. @shape x any
 *  @dtype complex @source torch.imag */
CALX_API calx_tensor *calx_imag(calx_tensor *x);
/** Real and imaginary parts along a new last dimension. A tensor of its own: in
 *  PyTorch a view, but a tensor here shares no memory with another.
 *  @shape (…) -> (…, 2) @dtype complex @source torch.view_as_real */
CALX_API calx_tensor *calx_view_as_real(calx_tensor *x);
/** Complex numbers of the pairs of the last dimension. A tensor of its own, as
 *  that of calx_view_as_real. @shape (…, 2) -> (…) @dtype f32 or f64
 *  @source torch.view_as_complex */
CALX_API calx_tensor *calx_view_as_complex(calx_tensor *x);
/** The conjugate; a real x is itself. @shape x any @source torch.conj */
CALX_API calx_tensor *calx_conj(calx_tensor *x);
/** calx_conj, which computes. @shape x any @source torch.conj_physical */
CALX_API calx_tensor *calx_conj_physical(calx_tensor *x);
/** The angle in radians, in [-pi, pi]; of a real number 0 or pi. The gradient
 *  at 0 is 0. @shape x any @source torch.angle */
CALX_API calx_tensor *calx_angle(calx_tensor *x);
/** x / |x|, 0 at 0; of real numbers calx_sign. @shape x any
 *  @source torch.sgn */
CALX_API calx_tensor *calx_sgn(calx_tensor *x);

#ifdef __cplusplus
}
#endif

#if !defined(CALX_NO_SITES) && !defined(__cplusplus)
// clang-format off
#define calx_complex(real, imag) (calx_at_(CALX_HERE), calx_complex(CALX_T_(real), CALX_T_(imag)))
#define calx_polar(abs, angle) (calx_at_(CALX_HERE), calx_polar(CALX_T_(abs), CALX_T_(angle)))
#define calx_real(x) (calx_at_(CALX_HERE), calx_real(CALX_T_(x)))
#define calx_imag(x) (calx_at_(CALX_HERE), calx_imag(CALX_T_(x)))
#define calx_view_as_real(x) (calx_at_(CALX_HERE), calx_view_as_real(CALX_T_(x)))
#define calx_view_as_complex(x) (calx_at_(CALX_HERE), calx_view_as_complex(CALX_T_(x)))
#define calx_conj(x) (calx_at_(CALX_HERE), calx_conj(CALX_T_(x)))
#define calx_conj_physical(x) (calx_at_(CALX_HERE), calx_conj_physical(CALX_T_(x)))
#define calx_angle(x) (calx_at_(CALX_HERE), calx_angle(CALX_T_(x)))
#define calx_sgn(x) (calx_at_(CALX_HERE), calx_sgn(CALX_T_(x)))
// clang-format on
#endif
#endif
