// data/glyphs: the outlines of the ten digits.
#ifndef CX_DATA_GLYPHS_H
#define CX_DATA_GLYPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CX_DATA_GLYPH_POINTS 16   // of one stroke, at most
#define CX_DATA_GLYPH_STROKES 2   // of one glyph, at most
#define CX_DATA_GLYPH_VARIANTS 4  // of one digit, at most

typedef struct cx_data_point {
  int8_t x, y;  // right and down from the middle; a digit is 100 high
} cx_data_point;

// Control points of a quadratic B-spline; zero points: no stroke. An open
// stroke begins and ends at its first and last point, a closed one is a loop. A
// point given twice in a row is a corner.
typedef struct cx_data_stroke {
  size_t count;
  bool closed;
  cx_data_point points[CX_DATA_GLYPH_POINTS];
} cx_data_stroke;

typedef struct cx_data_glyph {
  cx_data_stroke strokes[CX_DATA_GLYPH_STROKES];
} cx_data_glyph;

typedef struct cx_data_digit {
  size_t variants;  // ways to write it
  cx_data_glyph glyphs[CX_DATA_GLYPH_VARIANTS];
} cx_data_digit;

extern const cx_data_digit cx_data_digits[10];

#endif
