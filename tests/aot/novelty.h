// tests/aot/novelty: which of many programs differ from those before in more
// than extents and numbers.
#ifndef CX_TESTS_AOT_NOVELTY_H
#define CX_TESTS_AOT_NOVELTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct seen_forms {
  uint64_t *hashes;  // open addressing; 0 is an empty place
  size_t count, capacity;
} seen_forms;

// Whether no program before had this form and so many devices; takes it in.
// `text` ends with a zero.
bool has_new_form(seen_forms *seen, const char *text, int devices);
void seen_forms_free(seen_forms *seen);

#endif
