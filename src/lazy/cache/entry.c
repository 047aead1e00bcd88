// lazy/cache/entry: one compiled program as a file.
//
//   file  = magic(8) version(4) label size(4) checksum(16) sizes(3 x 8)
//           label key options program
//   label = plugin, platform, place in the user's program, each with its zero
//
// The checksum is of all that follows the header, so that a file that was cut
// or flipped is told before any of it is used.
#include <string.h>

#include "base/hash.h"
#include "lazy/cache/cache.h"

static const char magic[8] = { 'c', 'a', 'l', 'x', 'p', 'r', 'o', 'g' };
enum { FORMAT_VERSION = 2, LABEL_PARTS = 3, MOST_PART = 255 };

typedef struct entry_header {
  char magic[8];
  uint32_t version, label_size;
  cx_hash checksum;
  uint64_t key_size, options_size, program_size;
} entry_header;

// The label's parts: exactly so many strings, and nothing after the last.
static bool read_label(const char *label, size_t size, cx_lazy_cache_entry *out)
{
  const char **parts[LABEL_PARTS] = { &out->plugin, &out->platform,
                                      &out->program };
  size_t at = 0;
  for (int i = 0; i < LABEL_PARTS; i++) {
    const char *end =
        at < size ? memchr(label + at, '\0', size - at) : (const char *)NULL;
    if (end == NULL || end - (label + at) > MOST_PART) return false;
    *parts[i] = label + at;
    at = (size_t)(end - label) + 1;
  }
  return at == size;
}

cx_lazy_cache_state cx_lazy_cache_entry_read(const char *data, size_t size,
                                             cx_lazy_cache_entry *out)
{
  *out = (cx_lazy_cache_entry){ 0 };
  entry_header h;
  if (size < sizeof h) return CX_LAZY_CACHE_DAMAGED;
  memcpy(&h, data, sizeof h);
  if (memcmp(h.magic, magic, sizeof magic) != 0) return CX_LAZY_CACHE_DAMAGED;
  if (h.version != FORMAT_VERSION) return CX_LAZY_CACHE_OTHER_FORMAT;
  const char *body = data + sizeof h;
  size_t rest = size - sizeof h;
  if (h.label_size > rest || h.key_size > rest - h.label_size) {
    return CX_LAZY_CACHE_DAMAGED;
  }
  size_t left = rest - h.label_size - h.key_size;
  if (h.options_size > left || h.program_size != left - h.options_size ||
      !cx_hash_equal(h.checksum, cx_hash_bytes(body, rest, 0)) ||
      !read_label(body, h.label_size, out)) {
    return CX_LAZY_CACHE_DAMAGED;
  }
  out->key = body + h.label_size;
  out->key_size = h.key_size;
  out->options = out->key + h.key_size;
  out->options_size = h.options_size;
  out->bytes = out->options + h.options_size;
  out->n_bytes = h.program_size;
  return CX_LAZY_CACHE_WHOLE;
}

static void write_part(const char *part, cx_text *out)
{
  if (part == NULL) part = "";
  cx_text_append_n(out, part, strnlen(part, MOST_PART));
  cx_text_char(out, '\0');
}

void cx_lazy_cache_entry_write(const cx_lazy_cache_entry *e, cx_text *out)
{
  entry_header h = { .version = FORMAT_VERSION,
                     .key_size = e->key_size,
                     .options_size = e->options_size,
                     .program_size = e->n_bytes };
  memcpy(h.magic, magic, sizeof magic);
  size_t start = out->size, body = start + sizeof h;
  cx_text_append_n(out, (const char *)&h, sizeof h);
  write_part(e->plugin, out);
  write_part(e->platform, out);
  write_part(e->program, out);
  if (cx_text_failed(out)) return;
  h.label_size = (uint32_t)(out->size - body);
  cx_text_append_n(out, e->key, e->key_size);
  cx_text_append_n(out, e->options, e->options_size);
  cx_text_append_n(out, e->bytes, e->n_bytes);
  if (cx_text_failed(out)) return;
  h.checksum = cx_hash_bytes(out->data + body, out->size - body, 0);
  memcpy(out->data + start, &h, sizeof h);
}
