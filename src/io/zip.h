// io/zip: zip archives: written entry by entry as torch.save does, and the
// offsets of the entries in an archive that is read.
//
// Every entry is stored, and its bytes begin at a multiple of 64 in the file:
// the local header's extra field "FB" is as long as that needs. An entry is
// whole in memory when it is written, so its checksum stands before it. Sizes
// and offsets of 4 GB and more have zip64's fields.
//
// Source: PKWARE's APPNOTE.TXT 6.3.10, 4.3 to 4.5; caffe2/serialize of PyTorch.
#ifndef CX_IO_ZIP_H
#define CX_IO_ZIP_H

#include <stdint.h>

#include "base/text.h"
#include "base/writer.h"

typedef struct cx_io_zip {
  cx_writer *w;        // borrowed
  const char *prefix;  // folder of all entries, borrowed; NULL: none
  cx_text central;     // the directory so far
  uint64_t entries;
  uint32_t names, checks;  // checksums over all names, over all checksums
} cx_io_zip;

// Adds PREFIX/name, or name.
calx_status *cx_io_zip_add(cx_io_zip *zip, const char *name, const void *data,
                           size_t size) CALX_MUST_USE;
// Writes the directory, and frees it, on failure too.
calx_status *cx_io_zip_end(cx_io_zip *zip, calx_status *status) CALX_MUST_USE;

// Where the content of each of the first n entries begins, in the directory's
// order; 0: not found. In a damaged archive an offset may be anything.
void cx_io_zip_offsets(const void *data, size_t size, uint64_t n,
                       uint64_t *out_offsets);

#endif
