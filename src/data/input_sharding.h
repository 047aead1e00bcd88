// data/input_sharding: batches that are split among devices.
#ifndef CX_DATA_INPUT_SHARDING_H
#define CX_DATA_INPUT_SHARDING_H

#include "calx/data.h"
#include "data/block_cache.h"
#include "ops/mesh.h"

// What the program gives, with a copy of the mesh; a NULL mesh: nothing is
// split. Freed with cx_data_sharding_free().
calx_status *cx_data_sharding_read(const calx_input_sharding *given,
                                   cx_ops_spec *out) CALX_MUST_USE;
calx_status *cx_data_sharding_copy(const cx_ops_spec *from,
                                   cx_ops_spec *out) CALX_MUST_USE;
void cx_data_sharding_free(cx_ops_spec *spec);
// Whether the loader's batches of an epoch of so many samples can be split.
calx_status *cx_data_sharding_check(const calx_loader *loader,
                                    int64_t samples) CALX_MUST_USE;

// Uploads a field of a batch, each device's part of it where it is split. Ends
// one hold of the block, on failure too.
calx_status *cx_data_upload_field(calx_device *device, const cx_ops_spec *spec,
                                  const calx_field *field, const void *data,
                                  cx_data_block *block,
                                  calx_tensor **out) CALX_MUST_USE;

#endif
