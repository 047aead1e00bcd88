// data/split_text: GPT-2's regular expression, by hand.
#ifndef CX_DATA_SPLIT_TEXT_H
#define CX_DATA_SPLIT_TEXT_H

#include <stddef.h>

// The bytes of the piece that begins the text, at least 1; size is at least 1.
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is no UTF-8 is a character of its own, neither letter nor space.
size_t cx_data_split_text(const unsigned char *text, size_t size);

#endif
