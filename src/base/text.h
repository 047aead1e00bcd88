// base/text: a growing string. A failed growth sticks: later appends do
// nothing, cx_text_failed() tells.
#ifndef CX_BASE_TEXT_H
#define CX_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

typedef struct cx_text {
  char *data;  // zero-terminated once anything was appended; NULL before
  size_t size;
  size_t capacity;
  bool failed;
} cx_text;  // the zero value is the empty text

void cx_text_append(cx_text *text, const char *s);
void cx_text_append_n(cx_text *text, const char *s, size_t n);
void cx_text_char(cx_text *text, char c);
void cx_text_int(cx_text *text, int64_t value);
void cx_text_format(cx_text *text, const char *format, ...) CALX_PRINTF(2, 3);
void cx_text_format_v(cx_text *text, const char *format, va_list args);
void cx_text_clear(cx_text *text);  // keeps the memory
void cx_text_free(cx_text *text);
bool cx_text_failed(const cx_text *text);
const char *cx_text_str(const cx_text *text);  // never NULL
// The caller frees it with cx_free(); NULL if it failed. The text is empty
// then.
char *cx_text_take(cx_text *text);

// A list of numbers for a message, of which only the first few are shown.
typedef struct cx_text_numbers {
  int shown[8];
  int count;        // also of those that are not shown
} cx_text_numbers;  // the zero value is the empty list

void cx_text_numbers_add(cx_text_numbers *numbers, int number);
// "rank 2", "ranks 2, 3", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more".
void cx_text_append_numbers(cx_text *text, const char *one, const char *many,
                            const cx_text_numbers *numbers);

// A number for people, with a decimal point whatever the process's locale is:
// scripts read these texts.
void cx_text_real(cx_text *text, const char *format, double value);

// The bytes of the UTF-8 sequence at s (RFC 3629); 0: there is none.
size_t cx_text_utf8(const unsigned char *s);

// The columns of a text on a terminal: two of a wide character (East Asian),
// none of what sets colours (ESC [ … m), one of every other.
size_t cx_text_columns(const char *s);
// The bytes of s that fit into so many columns.
size_t cx_text_fit(const char *s, size_t columns);

// A text from outside in a form that may be shown on a terminal, cut to what
// fits `out`: what is not UTF-8 becomes question marks, control characters
// become spaces, U+0080 to U+009F are left out.
void cx_text_plain(const char *from, size_t n, char *out, size_t size);

#endif
