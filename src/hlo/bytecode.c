// hlo/bytecode: the sections of a file.
#include "hlo/bytecode.h"

#include <string.h>

#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

bool cx_hlo_is_bytecode(const char *bytes, size_t size)
{
  return size >= CX_HLO_BYTECODE_MAGIC_SIZE &&
         memcmp(bytes, CX_HLO_BYTECODE_MAGIC, CX_HLO_BYTECODE_MAGIC_SIZE) == 0;
}

// ---- strings ----

// strings ::= count (length of each, the last first) bytes
static calx_status *read_strings(cx_hlo_bytecode *b)
{
  cx_hlo_bytes in = b->sections[CX_HLO_SECTION_STRINGS];
  CALX_TRY(cx_hlo_bytes_count(b, &in, &b->n_strings));
  b->strings = CX_ARENA_ARRAY(&b->r->module->arena, cx_hlo_str, b->n_strings);
  const char *end = in.end;
  const size_t size = (size_t)(end - in.at);
  char *copy = cx_arena_strndup(&b->r->module->arena, in.at, size);
  if (b->strings == NULL || copy == NULL) return cx_out_of_memory();
  char *copied = copy + size;  // where `end` is in the copy
  for (size_t i = b->n_strings; i-- > 0;) {
    uint64_t length = 0;
    CALX_TRY(cx_hlo_bytes_number(b, &in, &length));
    const size_t left = end < in.at ? 0 : (size_t)(end - in.at);
    if (length == 0 || length > left) {
      return CX_HLO_BYTES_FAIL(b, in.at,
                               "string %zu has %llu bytes, %zu are left", i,
                               (unsigned long long)length, left);
    }
    end -= length;
    copied -= length;
    copied[length - 1] = '\0';
    b->strings[i] = (cx_hlo_str){ copied, (size_t)length - 1 };
  }
  return NULL;
}

// ---- dialects and names of operations ----

// A number that carries a flag from one version on.
static calx_status *read_flagged(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 unsigned since, bool *out_flag, size_t *out)
{
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  *out_flag = b->version >= since && (v & 1);
  *out = (size_t)(b->version >= since ? v >> 1 : v);
  return NULL;
}

static cx_hlo_dialect dialect_of(cx_hlo_str name)
{
  if (cx_hlo_str_equal(name, "builtin")) return CX_HLO_DIALECT_BUILTIN;
  if (cx_hlo_str_equal(name, "vhlo")) return CX_HLO_DIALECT_VHLO;
  if (cx_hlo_str_equal(name, "sdy")) return CX_HLO_DIALECT_SDY;
  if (cx_hlo_str_equal(name, "stablehlo")) return CX_HLO_DIALECT_STABLEHLO;
  return CX_HLO_DIALECT_OTHER;
}

static calx_status *string_at(cx_hlo_bytecode *b, size_t i, const char *at,
                              cx_hlo_str *out)
{
  if (i >= b->n_strings) {
    return CX_HLO_BYTES_FAIL(b, at, "there is no string %zu; there are %zu", i,
                             b->n_strings);
  }
  *out = b->strings[i];
  return NULL;
}

static calx_status *read_dialect_names(cx_hlo_bytecode *b, cx_hlo_bytes *in)
{
  CALX_TRY(cx_hlo_bytes_count(b, in, &b->n_dialects));
  b->dialects = cx_arena_alloc_array(&b->r->module->arena, sizeof *b->dialects,
                                     b->n_dialects);
  if (b->dialects == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < b->n_dialects; i++) {
    const char *from = in->at;
    bool has_version = false;
    size_t name = 0, id = 0;
    cx_hlo_bytes ignored;
    CALX_TRY(read_flagged(b, in, 1, &has_version, &name));
    if (has_version) CALX_TRY(cx_hlo_bytes_section(b, in, &id, &ignored));
    CALX_TRY(string_at(b, name, from, &b->dialects[i].name));
    b->dialects[i].kind = dialect_of(b->dialects[i].name);
  }
  return NULL;
}

// The operations of one dialect: dialect count name*
static calx_status *read_op_names(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  size_t *capacity)
{
  size_t dialect = 0, count = 0;
  CALX_TRY(cx_hlo_bytes_index(b, in, b->n_dialects, "dialect", &dialect));
  CALX_TRY(cx_hlo_bytes_count(b, in, &count));
  if (!cx_grow(&b->op_names, capacity, b->n_op_names + count,
               sizeof *b->op_names)) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < count; i++) {
    const char *from = in->at;
    cx_hlo_op_name *op = &b->op_names[b->n_op_names];
    size_t id = 0;
    cx_hlo_str name;
    *op = (cx_hlo_op_name){ .version = 0 };
    CALX_TRY(read_flagged(b, in, 5, &op->is_registered, &id));
    CALX_TRY(string_at(b, id, from, &name));
    CALX_TRY(cx_hlo_vhlo_name(b, b->dialects[dialect].name, name, op));
    b->n_op_names++;
  }
  return NULL;
}

static calx_status *read_dialects(cx_hlo_bytecode *b)
{
  cx_hlo_bytes in = b->sections[CX_HLO_SECTION_DIALECTS];
  uint64_t all_names = 0;  // known from the groups too
  size_t capacity = 0;
  CALX_TRY(read_dialect_names(b, &in));
  if (b->version >= 4) CALX_TRY(cx_hlo_bytes_number(b, &in, &all_names));
  while (in.at != in.end) CALX_TRY(read_op_names(b, &in, &capacity));
  return NULL;
}

// ---- attributes and types ----

// The sizes of n entries, in groups of a dialect; they lie behind each other.
static calx_status *read_sizes(cx_hlo_bytecode *b, cx_hlo_bytes *in, size_t n,
                               cx_hlo_bytes *data, cx_hlo_bytes_entry **out)
{
  cx_hlo_bytes_entry *entries =
      CX_ARENA_ARRAY(&b->r->module->arena, cx_hlo_bytes_entry, n);
  if (entries == NULL) return cx_out_of_memory();
  for (size_t done = 0; done < n;) {
    const char *from = in->at;
    size_t dialect = 0, count = 0;
    CALX_TRY(cx_hlo_bytes_index(b, in, b->n_dialects, "dialect", &dialect));
    CALX_TRY(cx_hlo_bytes_count(b, in, &count));
    if (count > n - done) {
      return CX_HLO_BYTES_FAIL(b, from, "%zu entries of %zu that are left",
                               count, n - done);
    }
    for (size_t i = 0; i < count; i++, done++) {
      uint64_t size = 0;
      CALX_TRY(cx_hlo_bytes_number(b, in, &size));
      entries[done].dialect = b->dialects[dialect].kind;
      entries[done].is_text = !(size & 1);
      CALX_TRY(cx_hlo_bytes_take(b, data, size >> 1, &entries[done].bytes));
    }
  }
  *out = entries;
  return NULL;
}

static calx_status *read_entries(cx_hlo_bytecode *b)
{
  cx_hlo_bytes in = b->sections[CX_HLO_SECTION_SIZES],
               data = b->sections[CX_HLO_SECTION_ENTRIES];
  CALX_TRY(cx_hlo_bytes_count(b, &in, &b->n_attrs));
  CALX_TRY(cx_hlo_bytes_count(b, &in, &b->n_types));
  CALX_TRY(read_sizes(b, &in, b->n_attrs, &data, &b->attrs));
  return read_sizes(b, &in, b->n_types, &data, &b->types);
}

// properties ::= count (size bytes)*
static calx_status *read_properties(cx_hlo_bytecode *b)
{
  cx_hlo_bytes in = b->sections[CX_HLO_SECTION_PROPERTIES];
  if (in.at == NULL) return NULL;
  CALX_TRY(cx_hlo_bytes_count(b, &in, &b->n_properties));
  b->properties = CX_ARENA_ARRAY(&b->r->module->arena, cx_hlo_bytes_properties,
                                 b->n_properties);
  if (b->properties == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < b->n_properties; i++) {
    uint64_t size = 0;
    CALX_TRY(cx_hlo_bytes_number(b, &in, &size));
    CALX_TRY(cx_hlo_bytes_take(b, &in, size, &b->properties[i].bytes));
  }
  return NULL;
}

// ---- the file ----

static calx_status *read_sections(cx_hlo_bytecode *b, cx_hlo_bytes in)
{
  in.at += CX_HLO_BYTECODE_MAGIC_SIZE;
  CALX_TRY(cx_hlo_bytes_number(b, &in, &b->version));
  if (b->version > CX_HLO_BYTECODE_NEWEST) {
    return CX_HLO_BYTES_UNKNOWN(b, in.at,
                                "bytecode of version %llu; versions up to %d "
                                "are read",
                                (unsigned long long)b->version,
                                CX_HLO_BYTECODE_NEWEST);
  }
  const char *producer = memchr(in.at, '\0', (size_t)(in.end - in.at));
  if (producer == NULL) {
    return CX_HLO_BYTES_FAIL(b, in.at, "the producer's name has no end");
  }
  for (in.at = producer + 1; in.at != in.end;) {
    const char *from = in.at;
    size_t id = 0;
    cx_hlo_bytes section;
    CALX_TRY(cx_hlo_bytes_section(b, &in, &id, &section));
    if (id >= CX_HLO_SECTIONS || b->sections[id].at != NULL) {
      return CX_HLO_BYTES_FAIL(
          b, from, "section %zu is %s", id,
          id >= CX_HLO_SECTIONS ? "unknown" : "there twice");
    }
    b->sections[id] = section;
  }
  static const int needed[] = { CX_HLO_SECTION_STRINGS, CX_HLO_SECTION_DIALECTS,
                                CX_HLO_SECTION_ENTRIES, CX_HLO_SECTION_SIZES,
                                CX_HLO_SECTION_PROGRAM };
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    if (b->sections[needed[i]].at == NULL) {
      return CX_HLO_BYTES_FAIL(b, in.at, "section %d is missing", needed[i]);
    }
  }
  return NULL;
}

// Memory for the module, as far as there is. An operation has about 250 bytes
// in it, and 12 in a file that says nothing twice. A huge page takes as long as
// about 30 small ones, so most of one may stay unused.
static void reserve(cx_hlo_bytecode *b)
{
  const cx_hlo_bytes program = b->sections[CX_HLO_SECTION_PROGRAM];
  const size_t page = 2 << 20, least = page / 8, most = 256 << 20;
  size_t bytes = 20 * (size_t)(program.end - program.at);
  if (bytes < least) return;
  if (bytes < page) bytes = page;
  if (bytes > most) bytes = most;
  (void)cx_arena_reserve(&b->r->module->arena, bytes);
}

static calx_status *read_file(cx_hlo_bytecode *b, cx_hlo_bytes in)
{
  CALX_TRY(read_sections(b, in));
  reserve(b);
  CALX_TRY(read_strings(b));
  CALX_TRY(read_dialects(b));
  CALX_TRY(read_entries(b));
  CALX_TRY(read_properties(b));
  return cx_hlo_bytes_read_program(b, b->sections[CX_HLO_SECTION_PROGRAM]);
}

calx_status *cx_hlo_read_bytecode(cx_hlo_reader *r)
{
  cx_hlo_bytecode b = { .r = r };
  r->scan.is_binary = true;
  calx_status *status =
      read_file(&b, (cx_hlo_bytes){ r->scan.start, r->scan.end });
  cx_free(b.op_names);
  cx_free(b.values.v);
  return status;
}
