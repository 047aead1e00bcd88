// tests/aot/novelty: which of many programs say something that the ones before
// did not, when extents, literals and names of values do not count.
#ifndef CX_TESTS_AOT_NOVELTY_H
#define CX_TESTS_AOT_NOVELTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct seen_lines {
  uint64_t *hashes;  // open addressing; 0 is an empty place
  size_t count, capacity;
} seen_lines;

// Whether the text has a line whose form no text before it had; takes its forms
// in. `text` ends with a zero.
bool says_something_new(seen_lines *seen, const char *text);
void seen_lines_free(seen_lines *seen);

#endif
