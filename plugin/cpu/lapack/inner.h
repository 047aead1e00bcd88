// lapack/inner: what the files of this module share: rows of the table, and the
// call of a routine.
#ifndef CPU_LAPACK_INNER_H
#define CPU_LAPACK_INNER_H

#include <stdbool.h>
#include <stddef.h>

#include "lapack/lapack.h"

// Indices of cpu_lapack_desc.sizes.
enum {
  CPU_LAPACK_A,
  CPU_LAPACK_B,
  CPU_LAPACK_K,
  CPU_LAPACK_M,
  CPU_LAPACK_N,
  CPU_LAPACK_U,
  CPU_LAPACK_V,
  CPU_LAPACK_LETTERS
};

// A routine's call for one matrix, or the question for its workspace.
typedef struct cpu_lapack_call {
  const cpu_lapack_desc *d;
  cpu_lapack_function *function;
  bool query;  // only sets lwork, liwork and lrwork; all memory is 64 bytes
  int a, b, k, m, n, u, v;
  void *t[CPU_LAPACK_BUFFERS];  // column-major
  void *work, *rwork;
  int *iwork;
  int lwork, liwork, lrwork;
} cpu_lapack_call;

typedef void cpu_lapack_routine(cpu_lapack_call *c);
// Whether sizes and flags fit each other.
typedef bool cpu_lapack_check(const cpu_lapack_desc *d);

typedef struct cpu_lapack_flag {
  const char *name;
  // The letters that it may be; "" for a boolean, NULL for any integer.
  const char *letters;
} cpu_lapack_flag;
// Whether it may have this value.
bool cpu_lapack_flag_has(const cpu_lapack_flag *f, int64_t v);

// A target. Shapes are words of a type and dimensions: T the element type, R
// its real type, C its complex type, I i32; then letters of sizes, of which p
// is min(m, n) and q is max(n - 1, 0); "=0" says that the result begins as
// operand 0.
typedef struct cpu_lapack_target {
  const char *name;  // with '?' for LAPACK's letter of the type
  const char *symbol;
  const char *types;  // letters of LAPACK: s, d, c, z
  const char *operands, *results;
  cpu_lapack_flag flags[CPU_LAPACK_FLAGS];
  cpu_lapack_check *check;  // NULL: nothing to check
  cpu_lapack_routine *run;
  bool layout_optional;  // the call need not say that it is column-major
} cpu_lapack_target;

extern const cpu_lapack_target cpu_lapack_targets[];
extern const size_t cpu_lapack_n_targets;

// A word of a row's shapes.
typedef struct cpu_lapack_shape {
  char type;
  size_t rank;     // 0 to 2
  char letter[2];  // of each dimension
  int from;        // the operand that the result begins as; -1: none
} cpu_lapack_shape;
// Reads the next word; false: there is none.
bool cpu_lapack_next_shape(const char **io_text, cpu_lapack_shape *out);
// The size of a letter.
int64_t cpu_lapack_size(const cpu_lapack_desc *d, char letter);
// The index of a letter in sizes; -1: it is computed (p, q).
int cpu_lapack_letter(char letter);
cx_hlo_elem cpu_lapack_elem(cx_hlo_elem type, char letter);
// s, d, c, z; 0: LAPACK has no such type.
char cpu_lapack_type_letter(cx_hlo_elem type);

// The library's function "sgetrf_".
calx_status *cpu_lapack_symbol(const char *name,
                               cpu_lapack_function **out) CALX_MUST_USE;

static inline bool cpu_lapack_is_complex(const cpu_lapack_call *c)
{
  return c->d->type == CX_HLO_C64 || c->d->type == CX_HLO_C128;
}
static inline bool cpu_lapack_is_wide(const cpu_lapack_call *c)
{
  return c->d->type == CX_HLO_F64 || c->d->type == CX_HLO_C128;
}
// Leading dimensions are at least 1.
static inline int cpu_lapack_ld(int n)
{
  return n > 1 ? n : 1;
}
// The number in work[0] after a question for the size, rounded up.
int cpu_lapack_asked(const cpu_lapack_call *c, const void *work);
// Some routines might not end on numbers that are not finite. Reports in *info
// what jaxlib reports for them. False: all are finite, or this is a question.
bool cpu_lapack_stops(const cpu_lapack_call *c, const void *a, int rows,
                      int columns, void *info);

cpu_lapack_routine cpu_lapack_trsm, cpu_lapack_getrf, cpu_lapack_potrf,
    cpu_lapack_gtsv, cpu_lapack_geqrf, cpu_lapack_geqp3, cpu_lapack_orgqr,
    cpu_lapack_ormqr, cpu_lapack_syevd, cpu_lapack_sytrd, cpu_lapack_gesdd,
    cpu_lapack_gesvd, cpu_lapack_geev, cpu_lapack_gees, cpu_lapack_gehrd;

#endif
