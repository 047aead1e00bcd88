// loggers/crc32c: the checksum of TensorFlow's records.
#ifndef CX_LOGGERS_CRC32C_H
#define CX_LOGGERS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// CRC-32C, Castagnoli's (RFC 3720, 12.1 and B.4).
uint32_t cx_loggers_crc32c(const void *data, size_t size);
// The same, masked as records have it (tensorflow/core/lib/hash/crc32c.h):
// rotated right by 15 bits, and a constant added.
uint32_t cx_loggers_masked_crc32c(const void *data, size_t size);

#endif
