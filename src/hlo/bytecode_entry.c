// hlo/bytecode: entries by their number. They are read when they are first
// used.
#include <string.h>

#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

// Of an entry, all that it refers to written out. The uses of entries in
// operations count as the uses of aliases in a text do.
enum { MOST_PARTS = 1 << 20 };

// What an entry holds, as text: "#sdy.sharding<…>", "f8E4M3FN".
static calx_status *read_text(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                              bool is_type)
{
  cx_hlo_scan *s = &b->r->scan;
  const cx_hlo_scan file = *s;
  s->at = e->bytes.at;
  s->end = memchr(s->at, '\0', (size_t)(e->bytes.end - s->at));
  if (s->end == NULL) s->end = e->bytes.end;
  calx_status *status = is_type ? cx_hlo_read_type(b->r, &e->type)
                                : cx_hlo_read_attr(b->r, &e->attr);
  if (status == NULL && cx_hlo_scan_here(s) != s->end) {
    status = cx_hlo_scan_expected(s, "the end of the entry");
  }
  *s = file;
  return status;
}

// What each byte of the file adds once is no harm, so a bound grows with it.
size_t cx_hlo_bytes_bound(const cx_hlo_bytecode *b, size_t parts)
{
  const cx_hlo_scan *s = &b->r->scan;
  return parts + (size_t)(s->end - s->start) / CX_HLO_PART_BYTES;
}

calx_status *cx_hlo_bytes_expand(cx_hlo_bytecode *b, size_t parts,
                                 const char *at)
{
  b->r->expanded += parts;
  if (b->r->expanded <= CX_HLO_EXPANSION) return NULL;
  const size_t most = cx_hlo_bytes_bound(b, CX_HLO_EXPANSION);
  if (b->r->expanded <= most) return NULL;
  return CX_HLO_BYTES_FAIL(
      b, at, "attributes and types have more than %zu parts", most);
}

size_t cx_hlo_bytes_parts(const cx_hlo_any *type)
{
  const cx_hlo_non_tensor *t = type->non_tensor;
  if (t == NULL) return 0;
  size_t n = 1 + t->text.n / CX_HLO_PART_BYTES;
  for (size_t i = 0; i < t->n_parts; i++) {
    n += 1 + cx_hlo_bytes_parts(&t->parts[i]);
  }
  return n;
}

// Long data of an entry, which is hashed, copied or printed for each use: its
// bytes, of which an integer has 8 in memory and often one in the file, and a
// string's, which are elsewhere in the file.
static size_t data_parts(const cx_hlo_bytes_entry *e, bool is_type)
{
  size_t n = (size_t)(e->bytes.end - e->bytes.at);
  if (is_type) return n / CX_HLO_PART_BYTES;
  switch (e->attr->kind) {
    case CX_HLO_ATTR_STRING:
    case CX_HLO_ATTR_SYMBOL:
    case CX_HLO_ATTR_TEXT: n += e->attr->as.text.n; break;
    case CX_HLO_ATTR_ARRAY:
    case CX_HLO_ATTR_STRUCT: n *= sizeof(int64_t); break;
    default: break;
  }
  return n / CX_HLO_PART_BYTES;
}

// Counts an entry that is used, and how deep it nests.
static calx_status *count_use(cx_hlo_bytecode *b, const cx_hlo_bytes_entry *e,
                              const char *at)
{
  cx_hlo_reader *r = b->r;
  const size_t height = r->depth + e->height;
  const bool in_operation = b->n_open == 0;
  b->parts = in_operation ? 0 : b->parts + e->parts;
  if (height > r->deepest) r->deepest = height;
  if (height > CX_HLO_DEEPEST) {
    return CX_HLO_BYTES_FAIL(b, at, "nests deeper than %d", CX_HLO_DEEPEST);
  }
  if (b->parts > MOST_PARTS && b->parts > cx_hlo_bytes_bound(b, MOST_PARTS)) {
    return CX_HLO_BYTES_FAIL(b, at, "has more than %zu parts",
                             cx_hlo_bytes_bound(b, MOST_PARTS));
  }
  return cx_hlo_bytes_expand(b, in_operation ? e->parts : 0, at);
}

static calx_status *read_entry(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                               bool is_type)
{
  if (e->is_text) return read_text(b, e, is_type);
  return is_type ? cx_hlo_bytes_read_type(b, e, &e->type)
                 : cx_hlo_bytes_read_attr(b, e, &e->attr);
}

static calx_status *open_entry(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                               bool is_type, const char *at)
{
  cx_hlo_reader *r = b->r;
  if (e->is_open) return CX_HLO_BYTES_FAIL(b, at, "an entry has itself inside");
  const size_t parts = b->parts, deepest = r->deepest;
  CALX_TRY(cx_hlo_reader_deeper(r));
  e->is_open = true;
  b->n_open++;
  b->parts = 1;
  r->deepest = r->depth;
  CALX_TRY(read_entry(b, e, is_type));
  cx_hlo_reader_higher(r);
  e->is_open = false;
  b->n_open--;
  e->is_read = true;
  const size_t in_type = is_type ? cx_hlo_bytes_parts(&e->type) : 0;
  e->parts = (in_type > b->parts ? in_type : b->parts) + data_parts(e, is_type);
  e->height = r->deepest - r->depth;
  b->parts = parts;
  r->deepest = deepest;
  return NULL;
}

static calx_status *use_entry(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                              bool is_type, const char *at)
{
  if (!e->is_read) CALX_TRY(open_entry(b, e, is_type, at));
  return count_use(b, e, at);
}

calx_status *cx_hlo_bytes_type_at(cx_hlo_bytecode *b, size_t i, const char *at,
                                  cx_hlo_any *out)
{
  if (i >= b->n_types) {
    return CX_HLO_BYTES_FAIL(b, at, "there is no type %zu; there are %zu", i,
                             b->n_types);
  }
  cx_hlo_bytes_entry *e = &b->types[i];
  CALX_TRY(use_entry(b, e, true, at));
  *out = e->type;
  return NULL;
}

calx_status *cx_hlo_bytes_attr_at(cx_hlo_bytecode *b, size_t i, const char *at,
                                  const cx_hlo_attr **out)
{
  if (i >= b->n_attrs) {
    return CX_HLO_BYTES_FAIL(b, at, "there is no attribute %zu; there are %zu",
                             i, b->n_attrs);
  }
  CALX_TRY(use_entry(b, &b->attrs[i], false, at));
  *out = b->attrs[i].attr;
  return NULL;
}

calx_status *cx_hlo_bytes_type(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_any *out)
{
  const char *at = in->at;
  size_t i = 0;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_types, "type", &i));
  return cx_hlo_bytes_type_at(b, i, at, out);
}

calx_status *cx_hlo_bytes_attr(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               const cx_hlo_attr **out)
{
  const char *at = in->at;
  size_t i = 0;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_attrs, "attribute", &i));
  return cx_hlo_bytes_attr_at(b, i, at, out);
}

calx_status *cx_hlo_bytes_string(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_str *out)
{
  size_t i = 0;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_strings, "string", &i));
  *out = b->strings[i];
  return NULL;
}

// ---- locations ----

static calx_status *read_file_loc(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  const cx_hlo_loc **out)
{
  cx_hlo_loc *loc = CX_ARENA_NEW(&b->r->module->arena, cx_hlo_loc);
  const cx_hlo_attr *file = NULL;
  uint64_t line = 0, column = 0;
  if (loc == NULL) return cx_out_of_memory();
  CALX_TRY(cx_hlo_bytes_attr(b, in, &file));
  CALX_TRY(cx_hlo_bytes_number(b, in, &line));
  CALX_TRY(cx_hlo_bytes_number(b, in, &column));
  if (file->kind != CX_HLO_ATTR_STRING || line > INT32_MAX ||
      column > INT32_MAX) {
    return CX_HLO_BYTES_FAIL(b, in->at,
                             "a location needs file, line and column");
  }
  *loc = (cx_hlo_loc){ file->as.text, (int64_t)line, (int64_t)column };
  *out = loc;
  return NULL;
}

// The parts of a location that is seen for the first time.
static calx_status *open_loc(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e)
{
  cx_hlo_bytes parts = e->bytes;
  const cx_hlo_attr *name = NULL;
  uint64_t code = 0;
  size_t count = 1;
  e->has_loc = true;  // a location inside of itself has none
  if (e->is_text || e->dialect != CX_HLO_DIALECT_BUILTIN) return NULL;
  CALX_TRY(cx_hlo_reader_deeper(b->r));
  CALX_TRY(cx_hlo_bytes_number(b, &parts, &code));
  if (code == CX_HLO_BUILTIN_LOC_FILE)
    CALX_TRY(read_file_loc(b, &parts, &e->loc));
  if (code == CX_HLO_BUILTIN_LOC_NAME)
    CALX_TRY(cx_hlo_bytes_attr(b, &parts, &name));
  if (code == CX_HLO_BUILTIN_LOC_FUSED ||
      code == CX_HLO_BUILTIN_LOC_FUSED_MORE) {
    CALX_TRY(cx_hlo_bytes_count(b, &parts, &count));
  }
  if (code >= CX_HLO_BUILTIN_LOC_CALL && code <= CX_HLO_BUILTIN_LOC_NAME &&
      code != CX_HLO_BUILTIN_LOC_FILE && count != 0) {
    CALX_TRY(cx_hlo_bytes_loc(b, &parts, &e->loc));
  }
  if (e->loc != NULL) e->loc_parts = e->loc->file.n / CX_HLO_PART_BYTES;
  cx_hlo_reader_higher(b->r);
  return NULL;
}

// The first file and line in a location of several parts; NULL: there is none.
calx_status *cx_hlo_bytes_loc(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              const cx_hlo_loc **out)
{
  const char *at = in->at;
  size_t i = 0;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_attrs, "attribute", &i));
  cx_hlo_bytes_entry *e = &b->attrs[i];
  if (!e->has_loc) CALX_TRY(open_loc(b, e));
  *out = e->loc;
  return e->loc_parts == 0 ? NULL : cx_hlo_bytes_expand(b, e->loc_parts, at);
}
