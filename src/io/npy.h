// io/npy: numpy's formats: .npy, one array, and .npz, a zip archive of them.
//
//   \x93NUMPY, version   8 bytes: major 1, 2 or 3, minor 0
//   u16 or u32           bytes of the header; u16 in version 1
//   header               {'descr': '<f4', 'fortran_order': False,
//                         'shape': (3, 4), }, padded with spaces, and a newline
//   elements             row-major, or column-major where fortran_order is True
//
// Source: numpy/lib/format.py (NEP 1), numpy.savez.
#ifndef CX_IO_NPY_H
#define CX_IO_NPY_H

#include <stdbool.h>

#include "base/writer.h"
#include "calx/io.h"
#include "graph/node.h"
#include "io/map.h"

// What a header says.
typedef struct cx_io_npy_header {
  cx_graph_shape shape;
  bool swapped;  // big-endian
  bool fortran;  // column-major
  size_t begin;  // of the elements in the file
} cx_io_npy_header;

// The element type's letter and size, "f4"; NULL: numpy does not have it.
const char *cx_io_npy_code(calx_dtype dtype);

bool cx_io_is_npy(const cx_io_map *map);
// Whether a zip archive begins with an array.
bool cx_io_is_npz(const cx_io_map *map);

// The elements lie in the map as the header says.
calx_status *cx_io_npy_header_read(const cx_io_map *map,
                                   cx_io_npy_header *out) CALX_MUST_USE;
// A value of one host tensor, over the map where the elements are as they are
// in memory.
calx_status *cx_io_npy_read(cx_io_map *map,
                            calx_value **out_value) CALX_MUST_USE;
// A dict by the entries' names without ".npy"; an entry that is no array is
// bytes, as numpy gives them.
calx_status *cx_io_npz_read(cx_io_map *map,
                            calx_value **out_dict) CALX_MUST_USE;

// Writes a tensor, or a dict of tensors, each of which is fetched when its turn
// comes.
calx_status *cx_io_npy_write(cx_writer *w,
                             const calx_value *tensor) CALX_MUST_USE;
calx_status *cx_io_npz_write(cx_writer *w,
                             const calx_value *dict) CALX_MUST_USE;

#endif
