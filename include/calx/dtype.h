/**
 * calx/dtype.h: element types and lists of sizes.
 */
#ifndef CALX_DTYPE_H
#define CALX_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. CALX_DTYPE_DEFAULT (0) in an option means: what PyTorch would
 * choose. */
typedef enum calx_dtype {
  CALX_DTYPE_DEFAULT = 0,
  CALX_BOOL,
  CALX_I8,
  CALX_I16,
  CALX_I32,
  CALX_I64,
  CALX_U8,
  CALX_U16,
  CALX_U32,
  CALX_U64,
  CALX_BF16,
  CALX_F16,
  CALX_F32,
  CALX_F64,
  CALX_C64, /* complex: C's float complex, real part first */
  CALX_C128 /* C's double complex */
} calx_dtype;

/** "f32", "bf16", "i64", "bool", "c64"; "?" for a number that is none. @threads
 * thread-safe */
CALX_API const char *calx_dtype_name(calx_dtype dtype);

/** Bytes of one element on the host; 0 for a number that is none. @threads
 * thread-safe */
CALX_API size_t calx_dtype_size(calx_dtype dtype);

/** A tensor has at most this many dimensions. */
#define CALX_MAX_RANK 8

/**
 * A list of sizes or of dimension numbers. The empty list is the shape of rank
 * 0; as a choice of dimensions it means all of them. A number in its place,
 * `.dims = 1`, does not compile.
 */
typedef struct CALX_OPTIONS calx_dims {
  CALX_NO_NUMBER
  /* a function that is given more than CALX_MAX_RANK refuses */
  CALX_NAMED size_t count;
  CALX_NAMED int64_t values[CALX_MAX_RANK];
} calx_dims;

/** The list of `count` numbers at `values`. @threads thread-safe */
static inline calx_dims calx_dims_of(const int64_t *values, size_t count)
{
  calx_dims dims;
  dims.count = count;
  for (size_t i = 0; i < CALX_MAX_RANK; i++) {
    dims.values[i] = i < count ? values[i] : 0;
  }
  return dims;
}

/** A list of dimension numbers: CALX_DIMS(0, 2). More than CALX_MAX_RANK do not
 *  compile: an array would have a negative size. */
#ifndef __cplusplus
#define CALX_DIMS(...)                                                         \
  ((calx_dims){ .count = CALX_FITS_(sizeof((const int64_t[]){ __VA_ARGS__ }) / \
                                    sizeof(int64_t)),                          \
                .values = { __VA_ARGS__ } })
#define CALX_FITS_(n) ((n) + 0 * sizeof(char[(n) <= CALX_MAX_RANK ? 1 : -1]))
/** The shape of rank 0. */
#define CALX_SCALAR ((calx_dims){ .count = 0 })
#else
#define CALX_DIMS(...) calx_dims_list_(__VA_ARGS__)
#define CALX_SCALAR (calx_dims())
#endif
/** A list of sizes: CALX_SHAPE(128, 10). */
#define CALX_SHAPE(...) CALX_DIMS(__VA_ARGS__)

#ifdef __cplusplus
}
template <class... Number>
constexpr calx_dims calx_dims_list_(Number... numbers)
{
  static_assert(sizeof...(numbers) <= CALX_MAX_RANK,
                "calx_dims holds CALX_MAX_RANK numbers");
  return { sizeof...(numbers), { static_cast<int64_t>(numbers)... } };
}
#endif
#endif
