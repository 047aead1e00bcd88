// io/crc: the checksum of zip archives.
#ifndef CX_IO_CRC_H
#define CX_IO_CRC_H

#include <stddef.h>
#include <stdint.h>

// Continues a CRC-32 (ISO 3309) with more bytes. `crc` is the checksum of the
// bytes before, and 0 where there are none.
uint32_t cx_io_crc32(uint32_t crc, const void *data, size_t size);

#endif
