// fake/signature: types and donations of the function main, read off a program
// in MLIR's generic form. Just enough to know what a launch has to make:
//
//   "func.func"() <{arg_attrs = [{…}, …], function_type = (types) -> types,
//                   sym_name = "main"}>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ARGUMENTS 65536

typedef struct range {
  const char *at;
  const char *end;
} range;

static const char *find(range r, const char *needle)
{
  size_t n = strlen(needle);
  return r.at >= r.end ? NULL : memmem(r.at, (size_t)(r.end - r.at), needle, n);
}

// The properties of the function main, between <{ and }>.
static bool find_main(range text, range *out)
{
  for (;;) {
    const char *f = find(text, "\"func.func\"");
    if (f == NULL) return false;
    text.at = f + 1;
    range rest = { f, text.end };
    const char *open = find(rest, "<{");
    rest.at = open;
    const char *close = open == NULL ? NULL : find(rest, "}>");
    // Attributes may hold "}>" themselves: the sign belongs to "({".
    while (close != NULL && close + 4 < text.end &&
           memcmp(close, "}> ({", 5) != 0) {
      rest.at = close + 1;
      close = find(rest, "}>");
    }
    if (close == NULL) return false;
    range properties = { open + 2, close };
    if (find(properties, "sym_name = \"main\"") != NULL) {
      *out = properties;
      return true;
    }
  }
}

static int element_type(const char *s, size_t n)
{
  static const struct {
    const char *name;
    int type;
  } types[] = {
    { "i1", PJRT_Buffer_Type_PRED },
    { "i8", PJRT_Buffer_Type_S8 },
    { "i16", PJRT_Buffer_Type_S16 },
    { "i32", PJRT_Buffer_Type_S32 },
    { "i64", PJRT_Buffer_Type_S64 },
    { "ui8", PJRT_Buffer_Type_U8 },
    { "ui16", PJRT_Buffer_Type_U16 },
    { "ui32", PJRT_Buffer_Type_U32 },
    { "ui64", PJRT_Buffer_Type_U64 },
    { "f16", PJRT_Buffer_Type_F16 },
    { "bf16", PJRT_Buffer_Type_BF16 },
    { "f32", PJRT_Buffer_Type_F32 },
    { "f64", PJRT_Buffer_Type_F64 },
    { "complex<f32", PJRT_Buffer_Type_C64 },
    { "complex<f64", PJRT_Buffer_Type_C128 },
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strlen(types[i].name) == n && memcmp(types[i].name, s, n) == 0) {
      return types[i].type;
    }
  }
  return 0;
}

// tensor<2x3xf32>; moves past it.
static bool read_tensor(range *r, fake_shape *out)
{
  *out = (fake_shape){ 0 };
  if ((size_t)(r->end - r->at) < 7 || memcmp(r->at, "tensor<", 7) != 0) {
    return false;
  }
  const char *p = r->at + 7;
  while (p < r->end && *p >= '0' && *p <= '9') {
    char *after = NULL;
    int64_t size = strtoll(p, &after, 10);
    if (*after != 'x' || out->rank == FAKE_RANK) return false;
    out->dims[out->rank++] = size;
    p = after + 1;
  }
  const char *close = memchr(p, '>', (size_t)(r->end - p));
  if (close == NULL) return false;
  out->type = element_type(p, (size_t)(close - p));
  r->at = close + (memcmp(p, "complex", 7) == 0 ? 2 : 1);
  return out->type != 0;
}

// "(t, t)" or "t"
static bool read_types(range *r, fake_shape **out, size_t *out_n)
{
  size_t room = 16;
  bool parenthesis = r->at < r->end && *r->at == '(';
  *out_n = 0;
  *out = calloc(room, sizeof **out);
  if (parenthesis) r->at++;
  while (r->at < r->end && *r->at != ')') {
    if (*out_n == room) {
      room *= 2;
      *out = realloc(*out, room * sizeof **out);
    }
    if (*out == NULL) abort();
    if (*out_n == ARGUMENTS || !read_tensor(r, &(*out)[*out_n])) return false;
    ++*out_n;
    if (!parenthesis) return true;
    if (r->at + 1 < r->end && *r->at == ',') r->at += 2;
  }
  if (r->at == r->end) return false;
  r->at++;
  return true;
}

// Which dictionaries of arg_attrs = [{…}, {…}] ask for aliasing.
static void read_donations(range r, fake_signature *s)
{
  const char *at = find(r, "arg_attrs = [");
  if (at == NULL) return;
  int depth = 0;
  size_t argument = 0;
  for (at += strlen("arg_attrs = ["); at < r.end; at++) {
    if (*at == ']' && depth == 0) return;
    if (*at == '{') depth++;
    if (*at == '}' && --depth == 0) argument++;
    range here = { at, at + strlen("tf.aliasing_output") };
    if (here.end > r.end) return;
    if (depth == 1 && argument < s->n_params &&
        (find(here, "tf.aliasing_output") == at ||
         memcmp(at, "jax.buffer_donor", 16) == 0)) {
      s->donated[argument] = true;
    }
  }
}

PJRT_Error *fake_signature_parse(const char *text, size_t size,
                                 fake_signature *out)
{
  *out = (fake_signature){ 0 };
  range properties;
  if (!find_main((range){ text, text + size }, &properties)) {
    return fake_error(PJRT_Error_Code_UNKNOWN,
                      "-:1:1: error: fake: no function main");
  }
  const char *type = find(properties, "function_type = ");
  range r = { type == NULL ? properties.end : type + 16, properties.end };
  bool ok = read_types(&r, &out->params, &out->n_params);
  ok = ok && r.end - r.at > 4 && memcmp(r.at, " -> ", 4) == 0;
  if (ok) {
    r.at += 4;
    ok = read_types(&r, &out->results, &out->n_results);
  }
  if (!ok) {
    int shown = (int)(r.end - r.at < 60 ? r.end - r.at : 60);
    PJRT_Error *error =
        fake_error(PJRT_Error_Code_UNKNOWN,
                   "-:1:1: error: fake: function_type at '%.*s'", shown, r.at);
    fake_signature_clear(out);
    return error;
  }
  out->donated = calloc(out->n_params + 1, sizeof *out->donated);
  if (out->donated == NULL) abort();
  read_donations(properties, out);
  return NULL;
}

void fake_signature_clear(fake_signature *s)
{
  free(s->params);
  free(s->results);
  free(s->donated);
  *s = (fake_signature){ 0 };
}
