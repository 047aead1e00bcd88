// io/shard: a dict that several ranks save together and others load.
#ifndef CX_IO_SHARD_H
#define CX_IO_SHARD_H

#include <jansson.h>

#include "calx/io.h"

// A rank and the number of ranks; the public functions use the calling
// thread's.
typedef struct cx_io_rank_info {
  int rank, ranks;
} cx_io_rank_info;

// "shard-00001-of-00004.safetensors": a rank's file in the folder.
void cx_io_shard_name(char out[64], int rank, int ranks);

calx_status *cx_io_shard_save(
    cx_io_rank_info self, const calx_value *dict, const char *folder,
    const calx_save_sharded_options *options) CALX_MUST_USE;
calx_status *cx_io_shard_load(cx_io_rank_info self, const char *folder,
                              const calx_load_sharded_options *options,
                              calx_value **out_dict) CALX_MUST_USE;
// The tensors of one safetensors file of a folder; the caller frees the dict.
calx_status *cx_io_folder_file(const char *folder, const char *name,
                               calx_value **out) CALX_MUST_USE;
// Adds the tensors of an index, {name: file}, that another program wrote.
calx_status *cx_io_index_load(const char *folder, json_t *weight_map,
                              calx_value *dict) CALX_MUST_USE;

#endif
