// cli/lines: input by lines of bounded length, and text made to fit in one.
#ifndef CX_CLI_LINES_H
#define CX_CLI_LINES_H

#include <stdio.h>

#include "base/text.h"

#define CX_CLI_LINE_LIMIT ((size_t)1 << 20)

// The next line, without its newline; false at the end. Of a longer line the
// first CX_CLI_LINE_LIMIT + 1 bytes are kept, the rest is skipped.
bool cx_cli_line_read(FILE *file, cx_text *out);

// The next word of a line from *at on; false: there is none. *at moves past it.
bool cx_cli_line_word(const cx_text *line, size_t *at, const char **out_word,
                      size_t *out_size);

// A message as part of one line: line breaks become "; ", other control
// characters spaces, and it is cut after some thousand bytes.
void cx_cli_line_append(cx_text *out, const char *message);

#endif
