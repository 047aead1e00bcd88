// data/parallel: what device loaders of one and of many devices share.
#ifndef CX_DATA_PARALLEL_H
#define CX_DATA_PARALLEL_H

#include "data/loader.h"

// Checks the options and fills in the defaults.
calx_status *cx_data_device_options(
    const calx_device_loader_options *given, cx_data_depth *out_depth,
    int64_t *out_per_execution,
    calx_input_sharding *out_sharding) CALX_MUST_USE;

#endif
