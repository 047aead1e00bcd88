// data/split_text: see the header.
//
// The time is linear in the text: the pieces of the expression's alternatives
// end at the first character of another class.
#include "data/split_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

typedef enum class { LETTER, NUMBER, SPACE, OTHER } class;

typedef struct code_range {
  uint32_t first, last;
} code_range;

static const code_range letters[] = {
#include "data/unicode_letters.def"
};
static const code_range numbers[] = {
#include "data/unicode_numbers.def"
};

static bool has(const code_range *ranges, size_t count, uint32_t code)
{
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (code > ranges[middle].last) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && code >= ranges[low].first;
}

// Unicode's White_Space.
static bool is_space(uint32_t code)
{
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
         code == 0x3000;
}

// The class of the character at the text's beginning, and its bytes.
static class classify(const unsigned char *text, size_t size, size_t *out_bytes)
{
  unsigned char c[5] = { 0 };  // so that nothing past the end is read
  memcpy(c, text, size < 4 ? size : 4);
  size_t bytes = cx_text_utf8(c);
  *out_bytes = bytes == 0 ? 1 : bytes;
  if (bytes == 0) return OTHER;
  uint32_t code = bytes == 1 ? c[0] : c[0] & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; i++) code = code << 6 | (c[i] & 0x3f);
  if (is_space(code)) return SPACE;
  if (has(letters, sizeof letters / sizeof *letters, code)) return LETTER;
  return has(numbers, sizeof numbers / sizeof *numbers, code) ? NUMBER : OTHER;
}

// 0: none.
static size_t contraction(const unsigned char *text, size_t size)
{
  static const char *const all[] = {
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d"
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t n = strlen(all[i]);
    if (n <= size && memcmp(text, all[i], n) == 0) return n;
  }
  return 0;
}

size_t cx_data_split_text(const unsigned char *text, size_t size)
{
  size_t at = contraction(text, size), bytes;
  if (at != 0) return at;
  class first = classify(text, size, &bytes);
  if (text[0] == ' ' && size > 1) {
    // A space may stand before what is no space.
    size_t next;
    class second = classify(text + 1, size - 1, &next);
    if (second != SPACE) {
      first = second;
      bytes += next;
    }
  }
  size_t last = 0;  // where the last character begins
  at = bytes;
  while (at < size) {
    size_t begin = at;
    if (classify(text + at, size - at, &bytes) != first) break;
    last = begin;
    at += bytes;
  }
  // Of spaces before something else the last one belongs to that.
  return first == SPACE && at < size && last > 0 ? last : at;
}
