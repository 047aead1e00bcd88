// kernel/triangle_width: small triangles for one vector width. Each of
// triangle_16.c, triangle_32.c and triangle_64.c is this text, compiled for
// other processors, with
//   TRIANGLE_NAME    the array of functions
//   TRIANGLE_BYTES   of a vector
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel/triangle.h"

#define BLOCK CPU_KERNEL_TRIANGLE_BLOCK
#define LU_MOST CPU_KERNEL_LU_MOST
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define T float
#define ROOT sqrtf
#define ABSOLUTE fabsf
#define LEAST_NORMAL FLT_MIN
#define OF_TYPE(x) PASTE(x, _f32)
#include "kernel/triangle_type.h"
#define T double
#define ROOT sqrt
#define ABSOLUTE fabs
#define LEAST_NORMAL DBL_MIN
#define OF_TYPE(x) PASTE(x, _f64)
#include "kernel/triangle_type.h"

const cpu_kernel_triangle_fns TRIANGLE_NAME[2] = {
  [CPU_KERNEL_F32] = { solve_f32, factor_f32, lu_f32 },
  [CPU_KERNEL_F64] = { solve_f64, factor_f64, lu_f64 },
};
