// kernel/half: converts bf16 and f16 to f32, exactly, and back, to nearest
// even, without branches, so that compilers vectorize loops over them. A NaN
// stays a NaN.
#ifndef CPU_KERNEL_HALF_H
#define CPU_KERNEL_HALF_H

#include <stdint.h>
#include <string.h>

static inline float cpu_kernel_f32_from_bits(uint32_t bits)
{
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint32_t cpu_kernel_f32_to_bits(float f)
{
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static inline float cpu_kernel_bf16_widen(uint16_t h)
{
  return cpu_kernel_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t cpu_kernel_bf16_round(float f)
{
  uint32_t u = cpu_kernel_f32_to_bits(f);
  uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return (uint16_t)(f != f ? (u >> 16) | 0x40 : rounded);
}

// The exponent's bias changes from 15 to 127; subnormals are multiplied.
static inline float cpu_kernel_f16_widen(uint16_t h)
{
  uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t rest = (uint32_t)(h & 0x7fff) << 13;
  float normal = cpu_kernel_f32_from_bits(rest + ((127u - 15u) << 23));
  float special = cpu_kernel_f32_from_bits(rest | 0x7f800000);
  float tiny = (float)(h & 0x7fff) * 0x1p-24f;
  float f = rest >= 0x0f800000 ? special : rest < 0x00800000 ? tiny : normal;
  return cpu_kernel_f32_from_bits(cpu_kernel_f32_to_bits(f) | sign);
}

// Adding 0.5 rounds a number below 2^-14 to the spacing of f16's subnormals.
static inline uint16_t cpu_kernel_f16_round(float f)
{
  uint32_t u = cpu_kernel_f32_to_bits(f);
  uint32_t sign = (u >> 16) & 0x8000;
  u &= 0x7fffffff;
  uint32_t normal = (u + 0xfff + ((u >> 13) & 1) - ((127u - 15u) << 23)) >> 13;
  uint32_t tiny = cpu_kernel_f32_to_bits(cpu_kernel_f32_from_bits(u) + 0.5f) -
                  cpu_kernel_f32_to_bits(0.5f);
  uint32_t out = u > 0x7f800000    ? 0x7e00
                 : u >= 0x477ff000 ? 0x7c00
                 : u < 0x38800000  ? tiny
                                   : normal;
  return (uint16_t)(out | sign);
}

#endif
