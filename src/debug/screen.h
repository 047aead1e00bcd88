// debug/screen: the last lines of a terminal, which are drawn anew again and
// again. A line of the log takes their place until they are drawn next, and
// while a program is being compiled they say so.
//
// What is shown is a text, so the threads that log and compile need nothing of
// its owner. Of several screens the newest is shown. The cursor rests in the
// first of its lines.
#ifndef CX_DEBUG_SCREEN_H
#define CX_DEBUG_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cx_debug_screen cx_debug_screen;
struct cx_debug_screen {
  FILE *file;
  int offset;              // lines from the cursor's to the first one
  cx_debug_screen *older;  // which is shown when this one ends
  char *text;              // the newest
  int64_t drawn_ns;        // when its owner drew; 0: it is to be drawn anew
  int lines;               // on the terminal
};

// Whether lines can be drawn anew there.
bool cx_debug_is_terminal(FILE *file);
// Of a terminal; else those of the variable COLUMNS; 0: neither is known.
int cx_debug_columns(FILE *file);
// Whether the environment's locale has UTF-8. The C locale has, as Python takes
// it.
bool cx_debug_has_utf8(void);

// Begins one on a terminal; nothing is drawn yet.
void cx_debug_screen_begin(cx_debug_screen *s, FILE *file, int offset);
// Whether the interval since it was drawn is over.
bool cx_debug_screen_is_due(cx_debug_screen *s, int64_t interval_ns);
// Shows the lines of the text, each cut to the width of the terminal.
void cx_debug_screen_draw(cx_debug_screen *s, const char *text);
// Before something else is printed on the terminal: the lines go, and come
// below it when they are drawn next.
void cx_debug_screen_make_room(void);
// Ends it: the text stays, from the cursor's line on, or goes.
void cx_debug_screen_end(cx_debug_screen *s, bool stays);

#endif
