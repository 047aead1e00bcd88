// loggers/crc32c: the checksum of TensorFlow's records.
//
// A table of 16 entries and two steps for each byte (D. Sarwate, "Computation
// of cyclic redundancy checks via table look-up", 1988), bits reflected. Entry
// i is what four steps of the polynomial, RFC 3720's 0x1EDC6F41 in reversed
// order (0x82F63B78), make of i.
#include "loggers/crc32c.h"

static const uint32_t table[16] = {
  0x00000000U, 0x105ec76fU, 0x20bd8edeU, 0x30e349b1U, 0x417b1dbcU, 0x5125dad3U,
  0x61c69362U, 0x7198540dU, 0x82f63b78U, 0x92a8fc17U, 0xa24bb5a6U, 0xb21572c9U,
  0xc38d26c4U, 0xd3d3e1abU, 0xe330a81aU, 0xf36e6f75U
};

uint32_t cx_loggers_crc32c(const void *data, size_t size)
{
  const unsigned char *p = data;
  uint32_t crc = UINT32_MAX;
  for (; size > 0; size--) {
    crc ^= *p++;
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

uint32_t cx_loggers_masked_crc32c(const void *data, size_t size)
{
  const uint32_t crc = cx_loggers_crc32c(data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}
