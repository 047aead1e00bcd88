// data/sha256: SHA-256 (FIPS 180-4) of data in pieces.
#ifndef CX_DATA_SHA256_H
#define CX_DATA_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct cx_data_sha256 {
  uint32_t state[8];
  uint64_t bytes;  // so far
  unsigned char block[64];
} cx_data_sha256;

void cx_data_sha256_begin(cx_data_sha256 *s);
void cx_data_sha256_add(cx_data_sha256 *s, const void *data, size_t size);
// In hexadecimal, zero-terminated.
void cx_data_sha256_end(cx_data_sha256 *s, char out[65]);

#endif
