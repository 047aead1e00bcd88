// cli/doctor_names: the variables that calx reads.
#ifndef CX_CLI_DOCTOR_NAMES_H
#define CX_CLI_DOCTOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cx_cli_variable_kind {
  CX_CLI_ANY,
  CX_CLI_NUMBER,     // whole, from `least` to `most`
  CX_CLI_SECONDS,    // above 0; with least = 0 also 0
  CX_CLI_BYTES,      // "500M"
  CX_CLI_WORDS,      // one of `words`
  CX_CLI_WORD_LIST,  // some of them, or numbers
  CX_CLI_FILE,       // or folder, which is there
} cx_cli_variable_kind;

typedef struct cx_cli_variable {
  const char *name;
  cx_cli_variable_kind kind;
  int64_t least, most;
  const char *words;  // with commas between
} cx_cli_variable;

const cx_cli_variable *cx_cli_variable_at(size_t i);  // NULL: no more
bool cx_cli_variable_is_known(const char *name);
// The known name that an unknown one looks like; NULL: none.
const char *cx_cli_variable_nearest(const char *name);
// Whether a value is of its kind. Of a CX_CLI_FILE any is.
bool cx_cli_variable_takes(const cx_cli_variable *v, const char *value);

#endif
