// io/pt_archive: the zip archive that torch.save writes, read entry by entry.
//
// Opening it compares all sizes in the directory with the file's own size,
// before anything is unpacked. Two entries of one name are refused: which one
// is meant differs between readers. Entries are numbered in the directory's
// order.
#ifndef CX_IO_PT_ARCHIVE_H
#define CX_IO_PT_ARCHIVE_H

#include <stdint.h>
#include <zip.h>

#include "calx/status.h"
#include "io/map.h"

typedef struct cx_io_pt_archive {
  const char *name;  // of the file, for messages; borrowed
  cx_io_map *map;    // the file; borrowed
  zip_t *zip;
  char prefix[256];   // the folder of all entries, "mnist/"
  uint64_t *offsets;  // of the entries' bytes in the file; 0: not known
  uint64_t n_entries;
} cx_io_pt_archive;

// The caller closes the archive on failure too.
calx_status *cx_io_pt_archive_open(cx_io_map *map,
                                   cx_io_pt_archive *out) CALX_MUST_USE;
// The same of any zip archive: its entries need be in no folder, and names that
// differ in case alone are two.
calx_status *cx_io_pt_archive_open_any(cx_io_map *map,
                                       cx_io_pt_archive *out) CALX_MUST_USE;
void cx_io_pt_archive_close(cx_io_pt_archive *a);
// The number of the entry PREFIX/name; -1: there is none.
int64_t cx_io_pt_archive_find(const cx_io_pt_archive *a, const char *name,
                              size_t size);
// The name, method and both sizes of *out are valid.
calx_status *cx_io_pt_archive_stat(const cx_io_pt_archive *a, uint64_t at,
                                   zip_stat_t *out) CALX_MUST_USE;
// All bytes of an entry, with its checksum checked; the caller frees them.
calx_status *cx_io_pt_archive_read(const cx_io_pt_archive *a, uint64_t at,
                                   void **out_data,
                                   size_t *out_size) CALX_MUST_USE;
// A stored entry's bytes as part of the file's map. NULL: it is packed, or its
// checksum is wrong, or its bytes are not aligned for all types.
calx_status *cx_io_pt_archive_map(const cx_io_pt_archive *a, uint64_t at,
                                  cx_io_map **out) CALX_MUST_USE;
// Unpacks an entry into memory of its own.
calx_status *cx_io_pt_archive_unpack(const cx_io_pt_archive *a, uint64_t at,
                                     cx_io_map **out) CALX_MUST_USE;

#endif
