// fuzz/engine_main: what a fuzz entry may do to a file of the corpus first.
#ifndef CX_FUZZ_ENGINE_MAIN_H
#define CX_FUZZ_ENGINE_MAIN_H

#include <stddef.h>

// Changes a file's bytes into what the entry is about, in place; at most `most`
// bytes. Only where CX_FUZZ_PREPARES is defined.
size_t engine_main_prepare(unsigned char *data, size_t size, size_t most);

#endif
