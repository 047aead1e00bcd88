// io/shard: a dict that several ranks save together and others load.
#ifndef CX_IO_SHARD_H
#define CX_IO_SHARD_H

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

#endif
