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
/** Reversed along dimension 1. @shape x rank >= 2 @source torch.fliplr */
CALX_API calx_tensor *calx_fliplr(calx_tensor *x);
/** Reversed along dimension 0. @shape x rank >= 1 @source torch.flipud */
CALX_API calx_tensor *calx_flipud(calx_tensor *x);
/** Turned by k right angles in the plane of two dimensions, from the first to
 *  the second. @param dims  absent: 0 and 1 @shape x rank >= 2
 *  @source torch.rot90 */
CALX_API calx_tensor *calx_rot90(calx_tensor *x, int64_t k, calx_dims dims);
/** calx_transpose. @shape x rank >= 2 @source torch.swapaxes */
CALX_API calx_tensor *calx_swapaxes(calx_tensor *x, int axis0, int axis1);
/** calx_transpose. @shape x rank >= 2 @source torch.swapdims */
CALX_API calx_tensor *calx_swapdims(calx_tensor *x, int dim0, int dim1);
/** calx_movedim. @shape x rank >= 1 @source torch.moveaxis */
CALX_API calx_tensor *calx_moveaxis(calx_tensor *x, int source,
                                    int destination);
/** calx_expand. @shape result `shape` @source torch.broadcast_to */
CALX_API calx_tensor *calx_broadcast_to(calx_tensor *x, calx_dims shape);
/** x expanded to the other's sizes. @shape result as other
 *  @source torch.Tensor.expand_as */
CALX_API calx_tensor *calx_expand_as(calx_tensor *x, calx_tensor *other);
/** A number as (1). @shape x any @source torch.atleast_1d */
CALX_API calx_tensor *calx_atleast_1d(calx_tensor *x);
/** A number as (1, 1), a vector as (1, n). @shape x any
 *  @source torch.atleast_2d */
CALX_API calx_tensor *calx_atleast_2d(calx_tensor *x);
/** A number as (1, 1, 1), a vector as (1, n, 1), a matrix as (n, m, 1).
 *  @shape x any @source torch.atleast_3d */
CALX_API calx_tensor *calx_atleast_3d(calx_tensor *x);
/** Joins along dimension 1, vectors along 0. @shape as calx_cat
 *  @source torch.hstack */
CALX_API calx_tensor *calx_hstack(calx_tensor *const *tensors, size_t count);
/** Joins along dimension 0, of at least two. @shape as calx_cat
 *  @source torch.vstack */
CALX_API calx_tensor *calx_vstack(calx_tensor *const *tensors, size_t count);
/** Joins along dimension 2, of at least three. @shape as calx_cat
 *  @source torch.dstack */
CALX_API calx_tensor *calx_dstack(calx_tensor *const *tensors, size_t count);
/** Matrices along the diagonal of one, else 0; vectors are rows.
 *  @shape each rank <= 2 @source torch.block_diag */
CALX_API calx_tensor *calx_block_diag(calx_tensor *const *tensors,
                                      size_t count);
/** calx_split. @param out  as many as there are sizes @shape x rank >= 1
 *  @source torch.Tensor.split_with_sizes */
CALX_API void calx_split_with_sizes(calx_tensor *x, calx_dims sizes, int dim,
                                    calx_tensor **out);
/** Exactly `sections` parts; the first ones have one element more where it does
 *  not come out even. @param out  as many as `sections` @shape x rank >= 1
 *  @source torch.tensor_split */
CALX_API void calx_tensor_split(calx_tensor *x, size_t sections, int dim,
                                calx_tensor **out);
/** Parts that end before these indices, and the rest; an index is clamped as in
 *  calx_slice. @param out  one more than there are indices @shape x rank >= 1
 *  @source torch.tensor_split */
CALX_API void calx_tensor_split_at(calx_tensor *x, calx_dims indices, int dim,
                                   calx_tensor **out);
/** A vector on the diagonal of a matrix, else 0; a matrix's diagonal.
 *  @param diagonal  1: the one above the main one @shape x rank 1 or 2
 *  @source torch.diag */
CALX_API calx_tensor *calx_diag(calx_tensor *x, int64_t diagonal);
/** The last dimension on the diagonal of two new ones, else 0.
 *  @param options  dim1 and dim2, both 0: the last two @shape x rank >= 1
 *  @source torch.diag_embed */
CALX_API calx_tensor *calx_diag_embed_with(
    calx_tensor *x, const calx_diagonal_options *options);
/** The sum of the diagonal. @shape (n, m) -> () @source torch.trace */
CALX_API calx_tensor *calx_trace(calx_tensor *x);
/** x with `source` in place of calx_slice(x, dim, start, end, step).
 *  @shape source as that slice @grad x, source @source torch.slice_scatter */
CALX_API calx_tensor *calx_slice_scatter(calx_tensor *x, calx_tensor *source,
                                         int dim, int64_t start, int64_t end,
                                         int64_t step);
/** x with `source` in place of calx_select(x, dim, index).
 *  @shape source as that selection @errors OUT_OF_RANGE @grad x, source
 *  @source torch.select_scatter */
CALX_API calx_tensor *calx_select_scatter(calx_tensor *x, calx_tensor *source,
                                          int dim, int64_t index);
/** A vector on the diagonal of a matrix, of x flattened, else 0.
 *  @param offset  1: the diagonal above the main one @shape x any
 *  @source torch.diagflat */
CALX_API calx_tensor *calx_diagflat(calx_tensor *x, int64_t offset);
/** x with `source` in place of calx_diagonal(x, …). @shape source as that
 *  diagonal @grad x, source @source torch.diagonal_scatter */
CALX_API calx_tensor *calx_diagonal_scatter_with(
    calx_tensor *x, calx_tensor *source, const calx_diagonal_options *options);
/** The tensors expanded to the sizes that all broadcast to.
 *  @param out  as many as `count` @shape any @source torch.broadcast_tensors */
CALX_API void calx_broadcast_tensors(calx_tensor *const *tensors, size_t count,
                                     calx_tensor **out);
/** Rows of an element of each vector, the last one's changing fastest; of a
 *  single vector itself. @shape each rank 1, 8 at most
 *  @source torch.cartesian_prod */
CALX_API calx_tensor *calx_cartesian_prod(calx_tensor *const *tensors,
                                          size_t count);
/** Zero means default. */
typedef struct CALX_OPTIONS calx_combinations_options {
  CALX_NAMED size_t size;
  CALX_NAMED int64_t r; /* elements in a row; 0 = 2, CALX_ZERO_INT = 0 */
  CALX_NAMED bool with_replacement; /* an element may stand in it again */
} calx_combinations_options;
/** Each choice of r elements of a vector as a row. @shape (n) -> (rows, r), of
 *  2^24 elements at most @source torch.combinations */
CALX_API calx_tensor *calx_combinations_with(
    calx_tensor *x, const calx_combinations_options *options);
/** Joins along dimension 1; vectors and numbers are columns.
 *  @shape as calx_cat @source torch.column_stack */
CALX_API calx_tensor *calx_column_stack(calx_tensor *const *tensors,
                                        size_t count);
/** Equal parts along dimension 1, of a vector along 0.
 *  @param out  as many as `sections` @shape x rank >= 1
 *  @source torch.hsplit */
CALX_API void calx_hsplit(calx_tensor *x, size_t sections, calx_tensor **out);
/** The same, but parts that end before these indices, and the rest.
 *  @param out  one more than there are indices @shape x rank >= 1
 *  @source torch.hsplit */
CALX_API void calx_hsplit_at(calx_tensor *x, calx_dims indices,
                             calx_tensor **out);
/** Equal parts along dimension 0. @param out  as many as `sections`
 *  @shape x rank >= 2 @source torch.vsplit */
CALX_API void calx_vsplit(calx_tensor *x, size_t sections, calx_tensor **out);
/** The same, but parts that end before these indices, and the rest.
 *  @param out  one more than there are indices @shape x rank >= 2
 *  @source torch.vsplit */
CALX_API void calx_vsplit_at(calx_tensor *x, calx_dims indices,
                             calx_tensor **out);
/** Equal parts along dimension 2. @param out  as many as `sections`
 *  @shape x rank >= 3 @source torch.dsplit */
CALX_API void calx_dsplit(calx_tensor *x, size_t sections, calx_tensor **out);
/** The same, but parts that end before these indices, and the rest.
 *  @param out  one more than there are indices @shape x rank >= 3
 *  @source torch.dsplit */
CALX_API void calx_dsplit_at(calx_tensor *x, calx_dims indices,
                             calx_tensor **out);
/** All elements in one dimension. @shape x any @source torch.ravel */
CALX_API calx_tensor *calx_ravel(calx_tensor *x);
/** The indices in a tensor of these sizes of elements that are numbered in
 *  row-major order. @param out  as many as there are sizes @shape index any
 *  @dtype i64 @grad none @source torch.unravel_index */
CALX_API void calx_unravel_index(calx_tensor *index, calx_dims shape,
                                 calx_tensor **out);

#ifndef __cplusplus
#define CALX_UNWRITTEN_calx_combinations_options_ .r = CALX_UNWRITTEN_INT_,
CALX_WRITTEN_(calx_combinations_options, calx_written_int_(&o->r);)
#endif
#ifdef __cplusplus
}
#endif
#endif
