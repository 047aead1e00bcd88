// The form of a program: its lines without extents, numbers and places. The
// operations, the types with their ranks, the names of values and attributes,
// and so which value goes where and which argument is donated, stay.
#include "novelty.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { LONGEST_FORM = 1 << 18 };  // longer than any program that is compiled

static bool in_name(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '#';
}

// Where the digits at `i` end, and whether they belong to a name, as in i64.
static size_t digits_end(const char *line, size_t i, bool *out_named)
{
  char before = i == 0 ? ' ' : line[i - 1];
  *out_named = in_name(before) && before != 'x';
  while (isdigit((unsigned char)line[i])) i++;
  return i;
}

// Copies a line's form to `form` and returns its length. A list of numbers is
// one number, a literal's content nothing: they differ with the extents.
static size_t form_of(const char *line, size_t length, char *form)
{
  size_t n = 0;
  for (size_t i = 0; i < length && n + 1 < LONGEST_FORM; i++) {
    bool listed = n != 0 && form[n - 1] == '0', named;
    if (isdigit((unsigned char)line[i])) {
      size_t end = digits_end(line, i, &named);
      if (!named && !listed) form[n++] = '0';
      while (named && i < end && n + 1 < LONGEST_FORM) form[n++] = line[i++];
      i = end - 1;
    } else if (line[i] == '%') {
      form[n++] = line[i];
      while (i + 1 < length && in_name(line[i + 1]) && n + 1 < LONGEST_FORM) {
        form[n++] = line[++i];
      }
    } else if (strncmp(line + i, "dense<", 6) == 0) {
      const char *end = memchr(line + i, '>', length - i);
      if (end == NULL) break;
      i = end - line;
    } else if (listed && strncmp(line + i, ", ", 2) == 0 &&
               strchr("-0123456789", line[i + 2]) != NULL) {
      i++;
    } else if (strncmp(line + i, " loc(", 5) == 0) {
      break;
    } else if (strchr("-+", line[i]) == NULL || line[i + 1] == '>') {
      form[n++] = line[i];
    }
  }
  return n;
}

static bool put(uint64_t *hashes, size_t capacity, uint64_t hash)
{
  size_t at = hash & (capacity - 1);
  while (hashes[at] != 0 && hashes[at] != hash) at = (at + 1) & (capacity - 1);
  bool is_new = hashes[at] == 0;
  hashes[at] = hash;
  return is_new;
}

static bool take_in(seen_forms *seen, uint64_t hash)
{
  if (2 * (seen->count + 1) > seen->capacity) {
    size_t capacity = seen->capacity == 0 ? 4096 : 2 * seen->capacity;
    uint64_t *hashes = cx_alloc(capacity * sizeof *hashes);
    memset(hashes, 0, capacity * sizeof *hashes);
    for (size_t i = 0; i < seen->capacity; i++) {
      if (seen->hashes[i] != 0) put(hashes, capacity, seen->hashes[i]);
    }
    cx_free(seen->hashes);
    seen->hashes = hashes;
    seen->capacity = capacity;
  }
  bool is_new = put(seen->hashes, seen->capacity, hash == 0 ? 1 : hash);
  seen->count += is_new;
  return is_new;
}

bool has_new_form(seen_forms *seen, const char *text, int devices)
{
  static char form[LONGEST_FORM];
  uint64_t hash = (uint64_t)devices;
  for (const char *line = text; *line != '\0';) {
    size_t length = strcspn(line, "\n");
    hash = cx_hash_bytes(form, form_of(line, length, form), hash).low;
    line += length + (line[length] == '\n');
  }
  return take_in(seen, hash);
}

void seen_forms_free(seen_forms *seen)
{
  cx_free(seen->hashes);
  *seen = (seen_forms){ 0 };
}
