// rules: reads rules.txt, whose first lines say how it is written.
#ifndef TESTS_HLO_RULES_H
#define TESTS_HLO_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

typedef struct rule {
  char *next;  // the text that is left; cut into pieces as it is read
  char *params, *operation, *results, *verdict;
  size_t line;
} rule;

// The next one; false: there is none.
bool rule_next(rule *r);
// A module with a function main that holds the operation.
void rule_module(const rule *r, cx_text *out);

#endif
