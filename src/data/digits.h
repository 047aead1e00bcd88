// data/digits: one drawn digit as bytes.
#ifndef CX_DATA_DIGITS_H
#define CX_DATA_DIGITS_H

#include <stdint.h>

// Draws sample `index` of a seed, (28, 28) grey values with light ink on dark
// paper as MNIST has them. @return the label
int cx_data_digit_draw(uint64_t seed, int64_t index, uint8_t *out_pixels);

#endif
