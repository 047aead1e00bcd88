// A random network: convolutions of 16 or 32 images of few channels, poolings
// and their gradients, and other operations on images. All numbers are small
// enough that sums are exact.
#ifndef TESTS_ENGINE_OPT_NETWORK_H
#define TESTS_ENGINE_OPT_NETWORK_H

#include "hlo/module.h"

// The same one for the same seed.
cx_hlo_module *network_new(unsigned seed);

#endif
