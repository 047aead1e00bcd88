// spmd/write: shardings as XLA's clients read them.
#ifndef CX_SPMD_WRITE_H
#define CX_SPMD_WRITE_H

#include "base/text.h"
#include "spmd/sharding.h"

// Appends a serialised xla.OpSharding behind its size, 4 little-endian bytes.
// Without memory the text fails (cx_text_failed).
// Field numbers: openxla/xla, xla/xla_data.proto, message OpSharding.
void cx_spmd_write(const cx_spmd_mesh *mesh, cx_arena *arena,
                   const cx_spmd_sharding *s, cx_text *out);

#endif
