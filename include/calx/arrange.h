/**
 * calx/arrange.h: other arrangements of elements: repetition, padding, parts,
 * diagonals. Part of calx/ops.h, whose conventions hold here.
 *
 * @errors  as calx/ops.h says for all ops
 */
#ifndef CALX_ARRANGE_H
#define CALX_ARRANGE_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How calx_pad fills. */
typedef enum calx_pad_mode {
  CALX_PAD_CONSTANT = 0,
  CALX_PAD_REFLECT,   /* the elements beside the edge, mirrored */
  CALX_PAD_REPLICATE, /* the edge's element */
  CALX_PAD_CIRCULAR   /* the elements of the other edge */
} calx_pad_mode;
/** Zero means default. */
typedef struct CALX_OPTIONS calx_pad_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_pad_mode mode;
  CALX_NAMED double value; /* of CALX_PAD_CONSTANT */
} calx_pad_options;
/**
 * Adds elements at both ends of dimensions; negative numbers remove some.
 * @param pad  two numbers for the last dimension, then for the one before, …
 * @shape x any @errors also reflection by the dimension's size or more
 * @source torch.nn.functional.pad
 */
CALX_API calx_tensor *calx_pad_with(calx_tensor *x, calx_dims pad,
                                    const calx_pad_options *options);
/** Reversed along the dimensions. @shape x any @source torch.flip */
CALX_API calx_tensor *calx_flip(calx_tensor *x, calx_dims dims);
/** x so many times along each dimension; more numbers than dimensions add some
 *  in front. @shape x any @source torch.Tensor.repeat */
CALX_API calx_tensor *calx_repeat(calx_tensor *x, calx_dims repeats);
/** As calx_repeat; fewer numbers are for the last dimensions. @shape x any
 *  @source torch.tile */
CALX_API calx_tensor *calx_tile(calx_tensor *x, calx_dims repeats);
/** Each slice along a dimension so many times. @shape x rank >= 1
 *  @source torch.repeat_interleave */
CALX_API calx_tensor *calx_repeat_interleave(calx_tensor *x, int64_t repeats,
                                             int dim);
/** Dimension `source` at `destination`, the others in their order.
 *  @shape x rank >= 1 @source torch.movedim */
CALX_API calx_tensor *calx_movedim(calx_tensor *x, int source, int destination);
/** One dimension as several; one size may be -1. @shape x rank >= 1
 *  @source torch.unflatten */
CALX_API calx_tensor *calx_unflatten(calx_tensor *x, int dim, calx_dims sizes);
/** `length` elements from `start` on along a dimension. @shape x rank >= 1
 *  @errors OUT_OF_RANGE @source torch.narrow */
CALX_API calx_tensor *calx_narrow(calx_tensor *x, int dim, int64_t start,
                                  int64_t length);
/** Parts of these sizes, which add up to the dimension's.
 *  @param out  as many as there are sizes @shape x rank >= 1
 *  @source torch.split */
CALX_API void calx_split(calx_tensor *x, calx_dims sizes, int dim,
                         calx_tensor **out);
/** At most `chunks` parts of equal size, the last one maybe smaller.
 *  @param out  as many as `chunks` @return how many there are
 *  @shape x rank >= 1 @source torch.chunk */
CALX_API size_t calx_chunk(calx_tensor *x, size_t chunks, int dim,
                           calx_tensor **out);
/** Each element along a dimension, which is removed.
 *  @param out  as many as the dimension's size @shape x rank >= 1
 *  @source torch.unbind */
CALX_API void calx_unbind(calx_tensor *x, int dim, calx_tensor **out);
/** Moves elements on by the shifts, and what leaves one end enters the other.
 *  @param dims  absent: x is flattened for it @shape x any
 *  @source torch.roll */
CALX_API calx_tensor *calx_roll(calx_tensor *x, calx_dims shifts,
                                calx_dims dims);
/** The elements on and below a diagonal, else 0; 0: the main one, 1: the one
 *  above. @shape x (…, n, m) @source torch.tril */
CALX_API calx_tensor *calx_tril(calx_tensor *x, int64_t diagonal);
/** The elements on and above a diagonal, else 0. @shape x (…, n, m)
 *  @source torch.triu */
CALX_API calx_tensor *calx_triu(calx_tensor *x, int64_t diagonal);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_diagonal_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t offset; /* 1: above the main diagonal */
  CALX_NAMED int dim1;       /* both 0: 0 and 1 */
  CALX_NAMED int dim2;
} calx_diagonal_options;
/** The diagonal of two dimensions, which becomes the last dimension.
 *  @shape x rank >= 2 @source torch.diagonal */
CALX_API calx_tensor *calx_diagonal_with(calx_tensor *x,
                                         const calx_diagonal_options *options);
/** Channels as pixels: (…, C r^2, H, W) as (…, C, H r, W r).
 *  @shape x rank >= 3 @source torch.nn.functional.pixel_shuffle */
CALX_API calx_tensor *calx_pixel_shuffle(calx_tensor *x,
                                         int64_t upscale_factor);

#ifdef __cplusplus
}
#endif
#endif
