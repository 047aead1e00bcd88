// kernel/packed: matrix products of f32 whose right operand is packed first,
// once for all that multiply it: of a loop that does not change it, before the
// loop.
//
// b (k, n) is in panels of a few vectors of columns, each panel [k][columns],
// padded with zeros. The columns are cut into parts, some for each thread,
// and each part into panels of nearly equal width, so that no thread has many
// more vectors than another. Rows of a are packed in groups, [k][ROWS], for
// some of k at a time: this stays in the first cache while a panel's tiles are
// computed.
#ifndef CPU_KERNEL_PACKED_H
#define CPU_KERNEL_PACKED_H

#include "kernel/internal.h"

#define CPU_KERNEL_PACKED_ROWS 16    // of a group
#define CPU_KERNEL_PACKED_BLOCK 128  // most rows that are packed at a time
#define CPU_KERNEL_PACKED_INNER 512  // of k at a time
// Sums of more products are added up in other ways (gemm.h).
#define CPU_KERNEL_PACKED_LONGEST 8192

// c = a * b; strides in elements. c's rows are ldc apart, each dense.
typedef struct cpu_kernel_packed {
  int64_t m, n, k;
  int64_t parts;  // of the columns
  const float *a, *b;
  int64_t a_row, a_column, b_row, b_column;
  float *packed;  // b in panels
  float *c;
  int64_t ldc;
} cpu_kernel_packed;

// Elements of b in panels, whatever the processor and the number of parts.
static inline int64_t cpu_kernel_packed_elements(int64_t n, int64_t k)
{
  return (n + 15) / 16 * 16 * k;
}
// Bytes for the rows of a that one call of cpu_kernel_packed_run() packs; a
// multiple of 64.
size_t cpu_kernel_packed_scratch(int64_t m, int64_t k);
// Packs the columns of one part.
void cpu_kernel_packed_pack(const cpu_kernel_packed *p, int64_t part);
// The product of `rows` <= BLOCK rows from `row` on with the columns of a part.
void cpu_kernel_packed_run(const cpu_kernel_packed *p, int64_t row,
                           int64_t rows, int64_t part, float *scratch);

// ---- one vector width; see packed_width.h ----

// The next k inner elements of some rows, as they are in memory.
#define CPU_KERNEL_PACKED_TILE 8  // the most rows of a tile
typedef struct cpu_kernel_packed_segment {
  int64_t k;
  const float *rows[CPU_KERNEL_PACKED_TILE];
} cpu_kernel_packed_segment;

typedef struct cpu_kernel_packed_loops {
  int64_t lanes;          // of a vector
  int64_t rows, vectors;  // the most of a tile
  void (*pack)(const cpu_kernel_packed *p, int64_t part);
  void (*run)(const cpu_kernel_packed *p, int64_t row, int64_t rows,
              int64_t part, float *scratch);
  // Packs b (k, n), its strides `row` and `column`, to one panel [k][width],
  // padded with zeros.
  void (*panel)(const float *b, int64_t row, int64_t column, int64_t k,
                int64_t n, int64_t width, float *to);
  // c = or, with `add`, c += a group of rows [k][ROWS] by a panel of nv
  // vectors, of which `columns` columns are stored.
  void (*multiply)(int64_t k, const float *a, int64_t rows, const float *b,
                   int64_t nv, int64_t columns, float *c, int64_t ldc,
                   bool add);
  // The same for the rows of one tile, in n segments.
  void (*multiply_at)(int64_t n, const cpu_kernel_packed_segment *s,
                      int64_t rows, const float *b, int64_t nv, int64_t columns,
                      float *c, int64_t ldc, bool add);
} cpu_kernel_packed_loops;
// For this processor.
const cpu_kernel_packed_loops *cpu_kernel_packed_get(void);
extern const cpu_kernel_packed_loops cpu_kernel_packed_16, cpu_kernel_packed_32,
    cpu_kernel_packed_64;

#endif
