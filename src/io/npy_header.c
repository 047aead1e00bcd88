// io/npy_header: a bounded reader of the header, which is a literal of Python.
//
// A dict with the three keys, in any order, each once. Of all literals it can
// read what numpy writes: texts without escapes, True, False, a tuple of whole
// numbers. What it cannot read is told by the byte of the file.
#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "io/npy.h"

// numpy refuses longer headers too: its parser is slow.
#define MOST_HEADER ((size_t)10000)

static const struct {
  calx_dtype dtype;
  const char *code;
} types[] = {
  { CALX_BOOL, "b1" }, { CALX_I8, "i1" },    { CALX_I16, "i2" },
  { CALX_I32, "i4" },  { CALX_I64, "i8" },   { CALX_U8, "u1" },
  { CALX_U16, "u2" },  { CALX_U32, "u4" },   { CALX_U64, "u8" },
  { CALX_F16, "f2" },  { CALX_F32, "f4" },   { CALX_F64, "f8" },
  { CALX_C64, "c8" },  { CALX_C128, "c16" },
};
enum { TYPES = sizeof types / sizeof *types };

const char *cx_io_npy_code(calx_dtype dtype)
{
  for (size_t i = 0; i < TYPES; i++) {
    if (types[i].dtype == dtype) return types[i].code;
  }
  return NULL;
}

typedef struct npy_text {
  const cx_io_map *map;
  size_t at, end;  // bytes of the file
} npy_text;

static calx_status *bad(const npy_text *t, const char *what)
{
  return cx_error(CALX_DATA_LOSS, "'%s': byte %zu of the npy header: %s",
                  t->map->name, t->at, what);
}

static char peek(npy_text *t)
{
  while (t->at < t->end) {
    char c = (char)t->map->data[t->at];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
    t->at++;
  }
  return '\0';
}

static bool accept(npy_text *t, char c)
{
  if (peek(t) != c || c == '\0') return false;
  t->at++;
  return true;
}

static bool accept_word(npy_text *t, const char *word)
{
  size_t n = strlen(word);
  peek(t);
  if (t->end - t->at < n || memcmp(t->map->data + t->at, word, n) != 0) {
    return false;
  }
  t->at += n;
  return true;
}

static calx_status *read_text(npy_text *t, char out[32])
{
  char quote = peek(t);
  if (quote != '\'' && quote != '"') return bad(t, "no text in quotes");
  size_t n = 0;
  for (t->at++; t->at < t->end; t->at++) {
    char c = (char)t->map->data[t->at];
    if (c == quote) {
      t->at++;
      out[n] = '\0';
      return NULL;
    }
    if (n == 31 || c < ' ' || c > '~' || c == '\\') break;
    out[n++] = c;
  }
  return bad(t, "a text that is too long, or has no end");
}

// ---- values -----------------------------------------------------------------

static calx_status *other_type(const npy_text *t, const char *descr)
{
  static const struct {
    char kind;
    const char *what;
  } kinds[] = {
    { 'O', "Python objects: nothing in a file is run" },
    { 'S', "texts" },
    { 'a', "texts" },
    { 'U', "texts" },
    { 'V', "records or bytes without a type" },
    { 'M', "dates" },
    { 'm', "spans of time" },
    { 'c', "complex numbers" },
    { 'f', "floats of another size" },
  };
  const char *what = "of no type that is known";
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (descr[0] != '\0' && kinds[i].kind == descr[1]) what = kinds[i].what;
  }
  return cx_error(CALX_UNIMPLEMENTED,
                  "'%s': the elements are '%s', %s; bool, integers of 1 to 8 "
                  "bytes and floats of 2 to 8 are read",
                  t->map->name, descr, what);
}

static calx_status *read_descr(npy_text *t, cx_io_npy_header *h)
{
  char descr[32];
  if (peek(t) == '[') {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': the elements are records of several fields, which "
                    "are not read; save each field as an array",
                    t->map->name);
  }
  CALX_TRY(read_text(t, descr));
  char order = descr[0];
  bool known = order == '<' || order == '>' || order == '|' || order == '=';
  for (size_t i = 0; known && i < TYPES; i++) {
    if (strcmp(types[i].code, descr + 1) == 0) h->shape.dtype = types[i].dtype;
  }
  if (h->shape.dtype == CALX_DTYPE_DEFAULT) return other_type(t, descr);
  h->swapped = order == '>';
  return NULL;
}

static calx_status *read_order(npy_text *t, cx_io_npy_header *h)
{
  h->fortran = accept_word(t, "True");
  if (h->fortran || accept_word(t, "False")) return NULL;
  return bad(t, "fortran_order is neither True nor False");
}

static calx_status *read_size(npy_text *t, cx_io_npy_header *h)
{
  int64_t n = 0;
  char c = peek(t);
  if (c < '0' || c > '9') return bad(t, "a size of the shape is no number");
  for (; c >= '0' && c <= '9';
       c = t->at < t->end ? (char)t->map->data[t->at] : '\0') {
    if (__builtin_mul_overflow(n, 10, &n) ||
        __builtin_add_overflow(n, (int64_t)(c - '0'), &n)) {
      return bad(t, "a size of the shape is too large");
    }
    t->at++;
  }
  accept(t, 'L');  // of Python 2
  if (h->shape.rank == CALX_MAX_RANK) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': an array of more than %d dimensions", t->map->name,
                    CALX_MAX_RANK);
  }
  h->shape.dims[h->shape.rank++] = n;
  return NULL;
}

static calx_status *read_shape(npy_text *t, cx_io_npy_header *h)
{
  if (!accept(t, '(')) return bad(t, "the shape is no tuple");
  bool comma = true;
  while (!accept(t, ')')) {
    if (!comma) return bad(t, "the shape has no ')'");
    CALX_TRY(read_size(t, h));
    comma = accept(t, ',');
    if (!comma && h->shape.rank == 1) return bad(t, "the shape is no tuple");
  }
  return NULL;
}

// ---- the whole --------------------------------------------------------------

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

static calx_status *read_item(npy_text *t, cx_io_npy_header *h, int *seen)
{
  char key[32];
  CALX_TRY(read_text(t, key));
  int which = strcmp(key, "descr") == 0           ? DESCR
              : strcmp(key, "fortran_order") == 0 ? ORDER
              : strcmp(key, "shape") == 0         ? SHAPE
                                                  : 0;
  if (which == 0 || (*seen & which) != 0) {
    return bad(t,
               "a key that is not descr, fortran_order or shape, or is "
               "there twice");
  }
  *seen |= which;
  if (!accept(t, ':')) return bad(t, "no ':' after a key");
  if (which == DESCR) return read_descr(t, h);
  return which == ORDER ? read_order(t, h) : read_shape(t, h);
}

static calx_status *read_dict(npy_text *t, cx_io_npy_header *h)
{
  int seen = 0;
  bool comma = true;
  if (!accept(t, '{')) return bad(t, "no '{'");
  while (!accept(t, '}')) {
    if (!comma) return bad(t, "no ',' after a value");
    CALX_TRY(read_item(t, h, &seen));
    comma = accept(t, ',');
  }
  if (seen != ALL) return bad(t, "it lacks descr, fortran_order or shape");
  if (peek(t) != '\0' || t->at < t->end) return bad(t, "text after its '}'");
  return NULL;
}

bool cx_io_is_npy(const cx_io_map *map)
{
  return map->size >= 6 && memcmp(map->data, "\x93NUMPY", 6) == 0;
}

// Finds where the header is.
static calx_status *find_text(const cx_io_map *map, npy_text *out)
{
  const uint8_t *p = map->data;
  if (!cx_io_is_npy(map) || map->size < 10) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': no npy file: it has %zu bytes, and begins with "
                    "'\\x93NUMPY' and 4 more",
                    map->name, map->size);
  }
  if (p[6] < 1 || p[6] > 3 || p[7] != 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': version %d.%d of npy; 1.0, 2.0 and 3.0 are read",
                    map->name, p[6], p[7]);
  }
  size_t begin = p[6] == 1 ? 10 : 12, n = 0;
  for (size_t i = begin; i > 8 && begin <= map->size; i--) {
    n = n << 8 | p[i - 1];
  }
  if (begin > map->size || n > map->size - begin || n > MOST_HEADER) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': an npy header of %zu bytes, the file has %zu and "
                    "%zu are allowed",
                    map->name, n, map->size, MOST_HEADER);
  }
  *out = (npy_text){ .map = map, .at = begin, .end = begin + n };
  return NULL;
}

calx_status *cx_io_npy_header_read(const cx_io_map *map, cx_io_npy_header *out)
{
  npy_text t = { 0 };
  *out = (cx_io_npy_header){ 0 };
  CALX_TRY(find_text(map, &t));
  out->begin = t.end;
  CALX_TRY(read_dict(&t, out));
  int64_t elements;
  size_t bytes, left = map->size - out->begin;
  if (!cx_dims_bytes(out->shape.dtype, out->shape.dims, out->shape.rank,
                     &elements, &bytes) ||
      bytes > left) {
    return cx_error(CALX_DATA_LOSS,
                    "'%s': an array %s has more than the %zu bytes that the "
                    "file has of it",
                    map->name, cx_graph_shape_str(&out->shape), left);
  }
  return NULL;
}
