// data/sha256: see the header.
//
// Source: NIST, FIPS 180-4, "Secure Hash Standard", 2015.
#include "data/sha256.h"

#include <stdio.h>
#include <string.h>

// The first 32 bits of the fractions of the first 64 primes' cube roots.
static const uint32_t constants[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
  0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
  0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
  0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
  0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t turn(uint32_t x, int bits)
{
  return x >> bits | x << (32 - bits);
}

static void fill_schedule(const unsigned char *block, uint32_t w[64])
{
  for (int i = 0; i < 16; i++) {
    const unsigned char *p = block + 4 * (size_t)i;
    w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
  }
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = (turn(b, 17) ^ turn(b, 19) ^ b >> 10) + w[i - 7] +
           (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 16];
  }
}

static void take_block(cx_data_sha256 *s, const unsigned char *block)
{
  uint32_t w[64], v[8];
  fill_schedule(block, w);
  memcpy(v, s->state, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t a = v[0], e = v[4];
    uint32_t one = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                   ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
    uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                   ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += one;
    v[0] = one + two;
  }
  for (int i = 0; i < 8; i++) s->state[i] += v[i];
}

void cx_data_sha256_begin(cx_data_sha256 *s)
{
  static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                     0xa54ff53a, 0x510e527f, 0x9b05688c,
                                     0x1f83d9ab, 0x5be0cd19 };
  *s = (cx_data_sha256){ .bytes = 0 };
  memcpy(s->state, first, sizeof first);
}

void cx_data_sha256_add(cx_data_sha256 *s, const void *data, size_t size)
{
  const unsigned char *from = data;
  while (size > 0) {
    size_t at = (size_t)(s->bytes % 64), n = 64 - at < size ? 64 - at : size;
    memcpy(s->block + at, from, n);
    s->bytes += n;
    from += n;
    size -= n;
    if (at + n == 64) take_block(s, s->block);
  }
}

void cx_data_sha256_end(cx_data_sha256 *s, char out[65])
{
  static const unsigned char padding[64] = { 0x80 };
  uint64_t bits = s->bytes * 8;
  size_t at = (size_t)(s->bytes % 64);
  cx_data_sha256_add(s, padding, at < 56 ? 56 - at : 120 - at);
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
  cx_data_sha256_add(s, length, 8);
  for (size_t i = 0; i < 8; i++) snprintf(out + 8 * i, 9, "%08x", s->state[i]);
}
