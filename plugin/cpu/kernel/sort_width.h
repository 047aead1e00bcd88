// kernel/sort_width: keys for one vector width. Each of sort_16.c, sort_32.c
// and sort_64.c is this text, compiled for other processors, with
//   SORT_NAME  the array of functions
// The loops are plain ones of a form that compilers turn into vectors.
#include <string.h>

#include "kernel/sort.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define T uint32_t
#define SORT_OF(x) PASTE(x, _32)
#include "kernel/sort_type.h"
#define T uint64_t
#define SORT_OF(x) PASTE(x, _64)
#include "kernel/sort_type.h"

const cpu_kernel_sort_fns SORT_NAME[2] = {
  { keys_32, numbers_32, slots_32, below_32 },
  { keys_64, numbers_64, slots_64, below_64 },
};
