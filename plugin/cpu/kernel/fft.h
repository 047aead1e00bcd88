// kernel/fft: discrete Fourier transforms.
//
// Numbers are transformed in blocks: as many lines at once as a vector has
// lanes, by Stockham's algorithm in scratch memory (fft_radix.h, fft_block.h).
// A long line of n = first * second numbers is a matrix: a block's lines are
// its columns, then the columns of its transpose (D. H. Bailey, FFTs in
// External or Hierarchical Memory, 1990). A line whose length has a large prime
// factor is a convolution of more numbers (L. Bluestein, 1970). A real line of
// 2 n numbers is a complex one of n.
//
// An inverse transform exchanges real and imaginary parts before and after.
// The functions of a type and a vector width take pairs of that type.
#ifndef CPU_KERNEL_FFT_H
#define CPU_KERNEL_FFT_H

#include "kernel/internal.h"

// Factors of a length; at most 2^25.
#define CPU_KERNEL_FFT_FACTORS 26
// The largest prime factor that is not a convolution.
#define CPU_KERNEL_FFT_PRIME 61

// A transform of n numbers, each factor one stage.
typedef struct cpu_kernel_fft_stages {
  int64_t n;
  int n_factors;
  int factors[CPU_KERNEL_FFT_FACTORS];
  // factor: cos and sin of 2 pi k / factor. Then, `done` being the product of
  // the factors before, [done][factor - 1]: e^(-2 pi i k q / (done factor)).
  const void *tables[CPU_KERNEL_FFT_FACTORS];
} cpu_kernel_fft_stages;

typedef struct cpu_kernel_fft_line {
  int64_t n, wide;  // wide > n: the numbers of a convolution
  // wide = first.n * second.n; second.n == 1: the line is not split.
  cpu_kernel_fft_stages first, second;
  // e^(-2 pi i k j / wide) for k < first.n, j < second.n is the product of
  // steps [second.n / lanes][first.n] and turns [first.n][re, im][lanes].
  const void *steps, *turns;
  const void *chirp;   // n: e^(-pi i k^2 / n)
  const void *filter;  // wide: transform of 1 / chirp, divided by wide
  bool halved;         // it stands for a real line of 2 n
  const void *halves;  // n / 2 + 1: e^(-pi i k / n) if it is halved
} cpu_kernel_fft_line;

// What a line of n numbers is in memory.
typedef enum cpu_kernel_fft_form {
  CPU_KERNEL_FFT_NUMBERS,
  CPU_KERNEL_FFT_REAL,  // without imaginary parts
  CPU_KERNEL_FFT_HALF,  // n / 2 + 1 numbers; the others are their conjugates
  // n + 1 numbers: those of the transform of a real line of 2 n. The real
  // line's pairs are numbers.
  CPU_KERNEL_FFT_PACKED
} cpu_kernel_fft_form;

// Where the lines of a block are, in real elements. Lines are `lane` apart in a
// group, a line's numbers `step`; one of them is the size of a number.
typedef struct cpu_kernel_fft_place {
  unsigned char *at;
  int64_t group, lane, step;
  cpu_kernel_fft_form form;
} cpu_kernel_fft_place;

// Lines that are transformed in blocks of `lanes`: the blocks of a group, and
// so on.
typedef struct cpu_kernel_fft_blocks {
  const cpu_kernel_fft_line *line;
  const cpu_kernel_fft_stages *stages;
  cpu_kernel_fft_place from, to;
  int64_t lines;              // of a group
  bool swap_from, swap_to;    // real and imaginary parts
  bool turned;                // the results are multiplied by the line's steps
  double scale;
} cpu_kernel_fft_blocks;

// One line whose numbers are changed before or after its transform.
typedef struct cpu_kernel_fft_row {
  const cpu_kernel_fft_line *line;
  cpu_kernel_fft_form form;
  bool swap;
  double scale;
  const void *from;
  void *to;
} cpu_kernel_fft_row;

// The part [lo, hi) of a row, in vectors of `lanes` numbers.
typedef void cpu_kernel_fft_row_fn(const cpu_kernel_fft_row *r, int64_t lo,
                                   int64_t hi);
typedef struct cpu_kernel_fft_fns {
  int64_t lanes;
  // The blocks [lo, hi). `scratch` has cpu_kernel_fft_block_vectors() vectors.
  void (*run)(const cpu_kernel_fft_blocks *b, int64_t lo, int64_t hi,
              void *scratch);
  // Makes numbers of a REAL, HALF or PACKED line: [0, n / lanes), or the same
  // of n / 2 + 1.
  cpu_kernel_fft_row_fn *open;
  cpu_kernel_fft_row_fn *chirp;   // times the chirp, then zeros: of wide
  cpu_kernel_fft_row_fn *filter;  // times the filter, conjugated: of wide
  // Makes of numbers, times the chirp, a line of the other forms; of what is
  // written.
  cpu_kernel_fft_row_fn *close;
  cpu_kernel_fft_row_fn *unpack;  // in place, of n / 2 + 1
} cpu_kernel_fft_fns;
// Of F32 and F64; see fft_width.h.
extern const cpu_kernel_fft_fns cpu_kernel_fft_16[2];
extern const cpu_kernel_fft_fns cpu_kernel_fft_32[2];
extern const cpu_kernel_fft_fns cpu_kernel_fft_64[2];
const cpu_kernel_fft_fns *cpu_kernel_fft_get(cpu_kernel_math math);

// The numbers of a line in a form.
static inline int64_t cpu_kernel_fft_count(int64_t n, cpu_kernel_fft_form form)
{
  switch (form) {
    case CPU_KERNEL_FFT_HALF: return n == 0 ? 0 : n / 2 + 1;
    case CPU_KERNEL_FFT_PACKED: return n + 1;
    default: return n;
  }
}

#endif
