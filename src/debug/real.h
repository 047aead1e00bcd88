// debug/real: numbers for people, with a point whatever the process's locale
// is: scripts read these texts.
#ifndef CX_DEBUG_REAL_H
#define CX_DEBUG_REAL_H

#include "base/text.h"

static inline void cx_debug_real(cx_text *out, const char *format, double v)
{
  size_t from = out->size;
  cx_text_format(out, format, v);
  for (size_t i = from; i < out->size; i++) {
    if (out->data[i] == ',') out->data[i] = '.';
  }
}

#endif
