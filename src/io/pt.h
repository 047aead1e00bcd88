// io/pt: PyTorch's zip format.
//
//   NAME/data.pkl             the value, a pickle; tensors name their storages
//   NAME/.format_version      "1"
//   NAME/.storage_alignment   "64"
//   NAME/byteorder            "little"
//   NAME/data/0 …             the storages' bytes
//   NAME/version              "3\n"
//   NAME/.data/serialization_id
//
// NAME is the file's own base name without its ending. Source:
// torch/serialization.py, caffe2/serialize/inline_container.cc.
#ifndef CX_IO_PT_H
#define CX_IO_PT_H

#include "base/writer.h"
#include "calx/io.h"
#include "io/map.h"

bool cx_io_is_zip(const cx_io_map *map);
// Whether it is the format that torch.save had before 1.6.
bool cx_io_is_old_pt(const cx_io_map *map);

// Tensors are on the host; those that share a storage share its memory.
calx_status *cx_io_pt_read(cx_io_map *map,
                           calx_value **out_value) CALX_MUST_USE;
// Each tensor is fetched when its turn comes.
calx_status *cx_io_pt_write(cx_writer *w, const char *path,
                            const calx_value *value) CALX_MUST_USE;

#endif
