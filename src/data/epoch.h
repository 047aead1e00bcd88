// data/epoch: the epoch for which the calling thread makes samples.
//
// A dataset's callback is given a sample's number alone. What is drawn for a
// sample must differ from epoch to epoch and not depend on the worker: the
// loader's workers say the epoch here. 0 on any other thread.
#ifndef CX_DATA_EPOCH_H
#define CX_DATA_EPOCH_H

#include <stdint.h>

extern _Thread_local int64_t cx_data_epoch;

#endif
