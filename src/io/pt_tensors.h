// io/pt_tensors: the tensors of a .pt archive, made of its storages.
//
// A storage is read when the first tensor that is kept needs it; tensors that
// lie in it in order share its memory, which is the file's map where it is not
// packed. The memory of tensors with overlapping elements is bounded, and a
// packed storage may not unpack to far more than its tensors need.
#ifndef CX_IO_PT_TENSORS_H
#define CX_IO_PT_TENSORS_H

#include "io/pickle.h"
#include "io/pt_archive.h"

typedef struct cx_io_pt_tensors {
  const cx_io_pt_archive *archive;
  cx_io_map **storages;  // by the entry's number; NULL: not read yet
  uint64_t *needs;       // bytes of the entries that the tensors reach
  uint64_t copies;  // bytes that tensors may still take besides the storages
  cx_io_strided *made;  // tensors that are held until the end
} cx_io_pt_tensors;

// The caller ends it on failure too. The archive must stay open until then.
calx_status *cx_io_pt_tensors_begin(const cx_io_pt_archive *archive,
                                    cx_io_pt_tensors *out) CALX_MUST_USE;
void cx_io_pt_tensors_end(cx_io_pt_tensors *r);
// Notes what a tensor needs of its storage; `user` is a cx_io_pt_tensors.
// cx_io_each_tensor() calls it before the first tensor is made.
void cx_io_pt_note_need(void *user, const cx_io_node *tensor);
// The tensor of a node, borrowed until the end.
calx_status *cx_io_pt_tensor(cx_io_pt_tensors *r, const cx_io_node *node,
                             calx_tensor **out) CALX_MUST_USE;

#endif
