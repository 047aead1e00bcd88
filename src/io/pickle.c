// io/pickle: a value as the pickle that torch.save would write for it.
//
// Protocol 2. Names that recur are in the memo, as Python's pickler puts them
// there; nothing else is. A tensor that occurs twice has one storage, so that
// PyTorch's tensors share memory too.
#include "io/pickle.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/fetch.h"
#include "io/value.h"

// Indices into `memo`: texts and names that are written once.
enum { MEMO_STORAGE, MEMO_CPU, MEMO_DICT, MEMO_TENSOR, MEMO_TYPES };

static void put_bytes(cx_io_pickling *p, const void *data, size_t size)
{
  cx_text_append_n(&p->out, data, size);
}

static void put_number(cx_io_pickling *p, uint64_t n, int bytes)
{
  for (int i = 0; i < bytes; i++) cx_text_char(&p->out, (char)(n >> (8 * i)));
}

// ---- scalars ----------------------------------------------------------------

static void put_int(cx_io_pickling *p, int64_t n)
{
  if (n >= 0 && n < 256) {
    cx_text_char(&p->out, 'K');
    put_number(p, (uint64_t)n, 1);
  } else if (n >= 0 && n < 65536) {
    cx_text_char(&p->out, 'M');
    put_number(p, (uint64_t)n, 2);
  } else if (n >= INT32_MIN && n <= INT32_MAX) {
    cx_text_char(&p->out, 'J');
    put_number(p, (uint64_t)n, 4);
  } else {
    put_bytes(p, "\x8a\x08", 2);
    put_number(p, (uint64_t)n, 8);
  }
}

static void put_float(cx_io_pickling *p, double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  cx_text_char(&p->out, 'G');
  for (int i = 7; i >= 0; i--) cx_text_char(&p->out, (char)(bits >> (8 * i)));
}

static calx_status *put_text(cx_io_pickling *p, const char *s, size_t size)
{
  if (size > UINT32_MAX) {
    return cx_invalid("save: a text of %zu bytes", size);
  }
  cx_text_char(&p->out, 'X');
  put_number(p, size, 4);
  put_bytes(p, s, size);
  return NULL;
}

// A name or text that was written before is fetched from the memo.
static bool is_known(cx_io_pickling *p, int which)
{
  if (p->memo[which] == 0) return false;
  cx_text_char(&p->out, 'h');
  put_number(p, (uint64_t)(p->memo[which] - 1), 1);
  return true;
}

static void remember(cx_io_pickling *p, int which)
{
  cx_text_char(&p->out, 'q');
  put_number(p, (uint64_t)p->n_memo, 1);
  p->memo[which] = ++p->n_memo;
}

static void put_name(cx_io_pickling *p, int which, const char *name)
{
  if (is_known(p, which)) return;
  cx_text_format(&p->out, "c%s\n", name);
  remember(p, which);
}

static calx_status *put_word(cx_io_pickling *p, int which, const char *word)
{
  if (is_known(p, which)) return NULL;
  CALX_TRY(put_text(p, word, strlen(word)));
  remember(p, which);
  return NULL;
}

// Bytes, which protocol 2 does not have: _codecs.encode(text, 'latin1').
static calx_status *put_raw(cx_io_pickling *p, const char *s, size_t size)
{
  cx_text text = { 0 };
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c >= 0x80) cx_text_char(&text, (char)(0xc0 | c >> 6));
    cx_text_char(&text, (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c));
  }
  cx_text_append(&p->out, "c_codecs\nencode\n");
  calx_status *status = cx_text_failed(&text)
                            ? cx_out_of_memory()
                            : put_text(p, cx_text_str(&text), text.size);
  cx_text_free(&text);
  CALX_TRY(status);
  CALX_TRY(put_text(p, "latin1", 6));
  put_bytes(p, "\x86R", 2);
  return NULL;
}

// ---- tensors ----------------------------------------------------------------

// NULL: PyTorch has no storage class of this type and uses an untyped storage.
static const char *storage_name(calx_dtype d)
{
  switch ((int)d) {
    case CALX_BOOL: return "torch\nBoolStorage";
    case CALX_I8: return "torch\nCharStorage";
    case CALX_I16: return "torch\nShortStorage";
    case CALX_I32: return "torch\nIntStorage";
    case CALX_I64: return "torch\nLongStorage";
    case CALX_U8: return "torch\nByteStorage";
    case CALX_BF16: return "torch\nBFloat16Storage";
    case CALX_F16: return "torch\nHalfStorage";
    case CALX_F32: return "torch\nFloatStorage";
    case CALX_F64: return "torch\nDoubleStorage";
    case CALX_C64: return "torch\nComplexFloatStorage";
    case CALX_C128: return "torch\nComplexDoubleStorage";
    default: return NULL;
  }
}

static const char *dtype_name(calx_dtype d)
{
  return d == CALX_U16   ? "torch\nuint16"
         : d == CALX_U32 ? "torch\nuint32"
                         : "torch\nuint64";
}

// The number of the tensor's storage.
static calx_status *index_of(cx_io_pickling *p, calx_tensor *t, int64_t *out)
{
  int64_t key = (int64_t)(intptr_t)t;
  const calx_value *known = calx_value_get_at(p->seen, key);
  if (known != NULL) {
    *out = calx_value_as_int(known);
    return NULL;
  }
  if (!cx_grow(&p->tensors, &p->capacity, p->n + 1, sizeof *p->tensors)) {
    return cx_out_of_memory();
  }
  *out = (int64_t)p->n;
  p->tensors[p->n++] = t;
  return calx_value_set_at(p->seen, key, calx_value_int(*out));
}

static void put_numbers(cx_io_pickling *p, const int64_t *n, size_t count)
{
  static const char *const ends[] = { ")", "\x85", "\x86", "\x87" };
  if (count > 3) cx_text_char(&p->out, '(');
  for (size_t i = 0; i < count; i++) put_int(p, n[i]);
  cx_text_append(&p->out, count > 3 ? "t" : ends[count]);
}

// ('storage', torch.FloatStorage, '0', 'cpu', 250), as a persistent id.
static calx_status *put_storage(cx_io_pickling *p, calx_tensor *t)
{
  calx_dtype d = calx_tensor_dtype(t);
  const char *name = storage_name(d);
  int64_t index = 0;
  char key[24];
  CALX_TRY(index_of(p, t, &index));
  snprintf(key, sizeof key, "%" PRId64, index);
  cx_text_char(&p->out, '(');
  CALX_TRY(put_word(p, MEMO_STORAGE, "storage"));
  put_name(p, MEMO_TYPES + (name != NULL ? (int)d : 0),
           name != NULL ? name : "torch.storage\nUntypedStorage");
  CALX_TRY(put_text(p, key, strlen(key)));
  CALX_TRY(put_word(p, MEMO_CPU, "cpu"));
  put_int(p, name != NULL ? calx_tensor_numel(t) : (int64_t)cx_io_bytes(t));
  put_bytes(p, "tQ", 2);
  return NULL;
}

// _rebuild_tensor_v2(storage, 0, sizes, strides, False, OrderedDict()); v3 with
// the dtype at the end, where the storage does not say it.
static calx_status *put_tensor(cx_io_pickling *p, calx_tensor *t)
{
  CALX_TRY(cx_io_fetchable(t));
  calx_dims shape = calx_tensor_shape(t);
  calx_dtype d = calx_tensor_dtype(t);
  bool typed = storage_name(d) != NULL;
  int64_t strides[CALX_MAX_RANK];
  uint64_t next = 1;  // past 2^64 only where a tensor without elements has it
  for (size_t i = shape.count; i > 0; i--) {
    strides[i - 1] = (int64_t)(next & INT64_MAX);
    next *= shape.values[i - 1] > 1 ? (uint64_t)shape.values[i - 1] : 1;
  }
  if (typed) {
    put_name(p, MEMO_TENSOR, "torch._utils\n_rebuild_tensor_v2");
  } else {
    cx_text_append(&p->out, "ctorch._utils\n_rebuild_tensor_v3\n");
  }
  cx_text_char(&p->out, '(');
  CALX_TRY(put_storage(p, t));
  put_int(p, 0);
  put_numbers(p, shape.values, shape.count);
  put_numbers(p, strides, shape.count);
  cx_text_char(&p->out, '\x89');
  put_name(p, MEMO_DICT, "collections\nOrderedDict");
  put_bytes(p, ")R", 2);
  if (!typed) cx_text_format(&p->out, "c%s\n", dtype_name(d));
  put_bytes(p, "tR", 2);
  return NULL;
}

// ---- containers -------------------------------------------------------------

static calx_status *put_value(cx_io_pickling *p, const calx_value *v,
                              int depth);

static calx_status *put_items(cx_io_pickling *p, const calx_value *v, int depth)
{
  for (size_t i = 0; i < calx_value_count(v); i++) {
    const char *key = calx_value_key(v, i);
    if (key != NULL) {
      CALX_TRY(put_text(p, key, strlen(key)));
    } else if (calx_value_kind(v) == CALX_KIND_DICT) {
      put_int(p, calx_value_key_number(v, i));
    }
    calx_status *status = put_value(p, calx_value_item(v, i), depth + 1);
    if (status != NULL) {
      return key == NULL ? status
                         : cx_annotate(status, "while saving '%s'", key);
    }
  }
  return NULL;
}

static calx_status *put_container(cx_io_pickling *p, const calx_value *v,
                                  int depth)
{
  if (depth >= CX_IO_DEPTH) {
    return cx_invalid("save: containers in containers, %d deep", CX_IO_DEPTH);
  }
  size_t n = calx_value_count(v);
  calx_kind kind = calx_value_kind(v);
  if (kind == CALX_KIND_TUPLE) {
    if (n == 0 || n > 3) cx_text_char(&p->out, n == 0 ? ')' : '(');
    CALX_TRY(put_items(p, v, depth));
    if (n > 0) cx_text_char(&p->out, n > 3 ? 't' : (char)('\x84' + (int)n));
    return NULL;
  }
  if (kind == CALX_KIND_SET) cx_text_append(&p->out, "c__builtin__\nset\n");
  cx_text_char(&p->out, kind == CALX_KIND_DICT ? '}' : ']');
  if (n > 0) {
    cx_text_char(&p->out, '(');
    CALX_TRY(put_items(p, v, depth));
    cx_text_char(&p->out, kind == CALX_KIND_DICT ? 'u' : 'e');
  }
  if (kind == CALX_KIND_SET) put_bytes(p, "\x85R", 2);
  return NULL;
}

static calx_status *put_value(cx_io_pickling *p, const calx_value *v, int depth)
{
  switch (calx_value_kind(v)) {
    case CALX_KIND_NONE: cx_text_char(&p->out, 'N'); return NULL;
    case CALX_KIND_BOOL:
      cx_text_char(&p->out, calx_value_as_bool(v) ? '\x88' : '\x89');
      return NULL;
    case CALX_KIND_INT: put_int(p, calx_value_as_int(v)); return NULL;
    case CALX_KIND_FLOAT: put_float(p, calx_value_as_float(v)); return NULL;
    case CALX_KIND_STRING:
      return put_text(p, calx_value_as_string(v), calx_value_count(v));
    case CALX_KIND_BYTES:
      return put_raw(p, calx_value_as_string(v), calx_value_count(v));
    case CALX_KIND_TENSOR: return put_tensor(p, calx_value_as_tensor(v));
    case CALX_KIND_LIST:
    case CALX_KIND_TUPLE:
    case CALX_KIND_SET:
    case CALX_KIND_DICT: return put_container(p, v, depth);
  }
  return NULL;
}

calx_status *cx_io_pickle(const calx_value *value, cx_io_pickling *out)
{
  *out = (cx_io_pickling){ .seen = calx_value_container(CALX_KIND_DICT) };
  if (out->seen == NULL) return cx_out_of_memory();
  put_bytes(out, "\x80\x02", 2);
  CALX_TRY(put_value(out, value, 0));
  cx_text_char(&out->out, '.');
  return cx_text_failed(&out->out) ? cx_out_of_memory() : NULL;
}

void cx_io_pickled(cx_io_pickling *p)
{
  cx_text_free(&p->out);
  calx_value_free(p->seen);
  cx_free(p->tensors);
  *p = (cx_io_pickling){ 0 };
}
