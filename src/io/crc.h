// io/crc: the checksum of zip archives.
#ifndef CX_IO_CRC_H
#define CX_IO_CRC_H

#include <stddef.h>
#include <stdint.h>

// CRC-32 (ISO 3309) of bytes that follow those of which `crc` is the checksum;
// 0: of none.
uint32_t cx_io_crc32(uint32_t crc, const void *data, size_t size);

#endif
