// fuzz/folder: a fuzz entry over a corpus, for machines without libFuzzer.
#ifndef CX_FUZZ_FOLDER_H
#define CX_FUZZ_FOLDER_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_MOST = 1 << 20 };  // bytes of a file

// Where a file's choices start, so that they are the same in every run.
#define FUZZ_SEED 88172645463325252u

// Gives the entry a copy of exactly this size, so that a tool that watches
// memory sees a read past its end.
void fuzz_run(const unsigned char *data, size_t size);

// The next number of a row that starts with `*state`, not 0.
uint64_t fuzz_next(uint64_t *state);

// Runs one file as a whole and damaged; the bytes lie in FUZZ_MOST bytes that
// may be changed. Says how many runs that were.
typedef long fuzz_file(unsigned char *data, size_t size, void *user);

// Runs one file as it is.
fuzz_file fuzz_whole;

// Every file of the folder, or of the corpus for NULL; the program's exit code.
int fuzz_folder(const char *folder, fuzz_file *file, void *user);

#endif
