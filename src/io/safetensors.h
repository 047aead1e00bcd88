// io/safetensors: the safetensors format, read and written.
//
//   u64 little-endian   bytes of the header
//   header              JSON {"name": {"dtype", "shape", "data_offsets"}, …,
//                       "__metadata__": {"key": "text"}}, padded with spaces
//   elements            row-major, little-endian, without holes or overlaps
//
// Source: https://github.com/huggingface/safetensors (README, tensor.rs).
#ifndef CX_IO_SAFETENSORS_H
#define CX_IO_SAFETENSORS_H

#include "base/writer.h"
#include "calx/io.h"
#include "io/map.h"

// Bytes of a header, at most: the format's own bound.
#define CX_IO_SAFETENSORS_HEADER ((uint64_t)100000000)

// "F32", …; NULL for a type that is none, DEFAULT for a name that is none.
const char *cx_io_safetensors_name(calx_dtype dtype);
calx_dtype cx_io_safetensors_dtype(const char *name);

// A dict of host tensors over the map, in the header's order, and the metadata
// as a dict of strings (NULL: not wanted).
calx_status *cx_io_safetensors_read(cx_io_map *map, calx_value **out_dict,
                                    calx_value **out_metadata) CALX_MUST_USE;

// Writes a dict of tensors; each is fetched when its turn comes. metadata: a
// dict of strings; NULL: none.
calx_status *cx_io_safetensors_write(cx_writer *w, const calx_value *dict,
                                     const calx_value *metadata) CALX_MUST_USE;

#endif
