// kernel/split_pack: packs rows or columns for split.c: numbers of f32 as three
// of bf16 each, in tiles. Only files that are compiled for AMX include it.
//
// For each step of 32 inner elements there are six tiles: the first parts of 16
// lines, their second and third parts; the same of the next 16. Pairs are of
// inner elements that are 16 apart.
#ifndef CPU_KERNEL_SPLIT_PACK_H
#define CPU_KERNEL_SPLIT_PACK_H

#include "kernel/amx.h"
#include "kernel/split.h"

#define PARTS 3
#define STEP_BYTES (2 * PARTS * TILE)

// A band or panel. exponent: of what its numbers were multiplied by; NaN: one
// is an infinity or NaN.
typedef struct cpu_kernel_split_packed {
  _Alignas(64) float exponent;
  _Alignas(64) unsigned char tiles[];
} cpu_kernel_split_packed;

_Static_assert(sizeof(cpu_kernel_split_packed) == CPU_KERNEL_SPLIT_HEADER,
               "header");
_Static_assert(STEP == CPU_KERNEL_SPLIT_STEP, "step");
_Static_assert(STEP_BYTES == CPU_KERNEL_SPLIT_STEP_BYTES, "bytes of a step");

// Rows or columns of an operand ("lines") in a block.
typedef struct cpu_kernel_split_lines {
  const float *from;
  int64_t n, inner;     // how many there are
  int64_t apart, next;  // strides of lines and of inner elements
  bool pairs;           // tiles have pairs of inner elements as rows
} cpu_kernel_split_lines;

// Lines whose exponents are found at once.
#define CPU_KERNEL_SPLIT_MOST_LINES 512

// Finds the exponents of bands or panels.
void cpu_kernel_split_find_exponents(const cpu_kernel_split_lines *l,
                                     float *out);
// With the exponent that is in `to`.
void cpu_kernel_split_pack_lines(const cpu_kernel_split_lines *l,
                                 cpu_kernel_split_packed *to);

#endif
