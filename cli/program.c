// cli/program: see program.h.
//
// XLA runs only an entry that is called main. A program of one function may
// give it any name, so its symbol is renamed in the text, outside strings and
// comments; nothing else of the text is touched.
#include "program.h"

#include <string.h>

#include "args.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "element.h"
#include "hlo/parse.h"
#include "hlo/verify.h"

#define TEXT_LIMIT ((size_t)1 << 30)

// ---- the entry's name ----

typedef struct renaming {
  const char *at, *end;
  const char *name;  // of the entry
  size_t size;
  cx_text out;
  size_t found;
} renaming;

static bool is_symbol(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.' || c == '-';
}

static bool sees(const renaming *r, const char *at, const char *s, size_t size)
{
  return (size_t)(r->end - at) >= size && memcmp(at, s, size) == 0;
}

// Where a comment ends, or a string behind its last quote.
static const char *skip(const renaming *r)
{
  const char *p = r->at;
  if (*p == '/') {
    while (p < r->end && *p != '\n') p++;
    return p;
  }
  for (p++; p < r->end && *p != '"'; p++) {
    if (*p == '\\' && p + 1 < r->end) p++;
  }
  return p < r->end ? p + 1 : p;
}

// Copies a string. As the value of sym_name it is a definition's name, in
// generic form.
static void pass_string(renaming *r)
{
  const char *end = skip(r), *p = r->at;
  bool is_name =
      (size_t)(end - p) == r->size + 2 && memcmp(p + 1, r->name, r->size) == 0;
  const char *start = r->out.data, *q = start + r->out.size;
  while (is_name && q > start && (q[-1] == ' ' || q[-1] == '=')) q--;
  if (is_name && q - start >= 8 && memcmp(q - 8, "sym_name", 8) == 0) {
    cx_text_append(&r->out, "\"main\"");
    r->found++;
  } else {
    cx_text_append_n(&r->out, p, (size_t)(end - p));
  }
  r->at = end;
}

// Copies @symbol or @"symbol".
static void pass_symbol(renaming *r)
{
  const char *p = r->at + 1;
  bool quoted = p < r->end && *p == '"';
  const char *name = quoted ? p + 1 : p;
  const char *end = name + r->size;
  bool same = sees(r, name, r->name, r->size);
  if (same && quoted) {
    same = end < r->end && *end == '"';
    end += same;
  } else if (same) {
    same = end == r->end || !is_symbol(*end);
  }
  if (same) {
    cx_text_append(&r->out, "@main");
    r->found++;
    r->at = end;
  } else {
    cx_text_char(&r->out, '@');
    r->at++;
  }
}

static calx_status *name_main(cx_cli_program *p, const char *path,
                              const char *name)
{
  if (strcmp(name, "main") == 0) return NULL;
  renaming r = {
    .at = p->text, .end = p->text + p->size, .name = name, .size = strlen(name)
  };
  cx_text_append(&r.out, "");
  while (r.at < r.end) {
    if (*r.at == '"') {
      pass_string(&r);
    } else if (sees(&r, r.at, "//", 2)) {
      const char *end = skip(&r);
      cx_text_append_n(&r.out, r.at, (size_t)(end - r.at));
      r.at = end;
    } else if (*r.at == '@') {
      pass_symbol(&r);
    } else {
      cx_text_char(&r.out, *r.at++);
    }
  }
  if (r.found == 0) {
    cx_text_free(&r.out);
    return cx_error_at(NULL, CALX_INVALID_ARGUMENT,
                       "%s: the entry must be called main, it is '%s'", path,
                       name);
  }
  size_t size = r.out.size;
  char *text = cx_text_take(&r.out);
  if (text == NULL) return cx_out_of_memory();
  cx_free(p->text);
  p->text = text;
  p->size = size;
  return NULL;
}

// ---- what it takes and returns ----

// A value that a file can hold; else why not.
static calx_status *fit(const char *what, size_t i, const cx_hlo_type *type,
                        cx_cli_value *out)
{
  *out = (cx_cli_value){ .elem = type->elem };
  out->shape.type = cx_cli_element_type(type->elem);
  out->shape.rank = type->rank;
  if (out->shape.type == 0) {
    return cx_error_at(NULL, CALX_UNIMPLEMENTED,
                       "%s %zu is %s: no plugin has buffers of that", what, i,
                       cx_hlo_shape(type).s);
  }
  if (type->rank > CALX_MAX_RANK) {
    return cx_error_at(NULL, CALX_UNIMPLEMENTED,
                       "%s %zu has %zu dimensions, %d is the most", what, i,
                       type->rank, CALX_MAX_RANK);
  }
  bool fits = true, empty = false;
  out->bytes = cx_hlo_elem_bytes(type->elem);
  for (size_t k = 0; k < type->rank; k++) {
    out->shape.dims[k] = type->dims[k];
    fits = fits && type->dims[k] >= 0;
    empty = empty || type->dims[k] == 0;
  }
  for (size_t k = 0; k < type->rank && fits && !empty; k++) {
    fits = cx_mul_size(out->bytes, (size_t)type->dims[k], &out->bytes);
  }
  if (empty) out->bytes = 0;
  if (fits && out->bytes < INT64_MAX) return NULL;
  return cx_error_at(NULL, CALX_UNIMPLEMENTED,
                     "%s %zu is %s: its size is dynamic or too large", what, i,
                     cx_hlo_shape(type).s);
}

static calx_status *fit_all(const char *what, const cx_hlo_type *types,
                            size_t n, cx_cli_value **out, size_t *out_n)
{
  *out = cx_calloc(n, sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) CALX_TRY(fit(what, i, &types[i], &(*out)[i]));
  *out_n = n;
  return NULL;
}

static calx_status *fit_signature(cx_cli_program *p, const cx_hlo_signature *s)
{
  CALX_TRY(
      fit_all("argument", s->params, s->n_params, &p->params, &p->n_params));
  return fit_all("result", s->results, s->n_results, &p->results,
                 &p->n_results);
}

// ---- the body ----

// What is wrong in the program itself is told here, with the file's name and
// before any plugin sees it. What calx does not know is the plugin's to judge.
static calx_status *check(const cx_cli_program *p, const char *name)
{
  cx_hlo_module *module = NULL;
  calx_status *status = cx_hlo_parse(p->text, p->size, name, &module);
  if (status == NULL) {
    status = cx_annotate(cx_hlo_verify(module), "in %s", name);
  }
  cx_hlo_module_free(module);
  if (calx_status_code(status) != CALX_UNIMPLEMENTED) return status;
  calx_status_free(status);
  return NULL;
}

// ---- all of it ----

int cx_cli_program_read(const char *path, cx_cli_program *out,
                        calx_status **out_status)
{
  *out = (cx_cli_program){ 0 };
  bool standard = strcmp(path, "-") == 0;
  *out_status = cx_file_read(standard ? "/dev/stdin" : path, TEXT_LIMIT,
                             &out->text, &out->size);
  if (*out_status != NULL) return CX_CLI_FAILED;
  const char *name = standard ? "<stdin>" : path;
  cx_hlo_signature signature = { 0 };
  calx_status *status = check(out, name);
  if (status == NULL) {
    status = cx_hlo_parse_signature(out->text, out->size, name, &signature);
  }
  if (status == NULL) status = name_main(out, name, signature.name);
  if (status == NULL) {
    out->unfit = fit_signature(out, &signature);
  } else if (calx_status_code(status) == CALX_UNIMPLEMENTED) {
    out->unfit = status;
    status = NULL;
  }
  cx_hlo_signature_free(&signature);
  *out_status = status;
  if (status == NULL) return CX_CLI_OK;
  return calx_status_code(status) == CALX_RESOURCE_EXHAUSTED ? CX_CLI_FAILED
                                                             : CX_CLI_INVALID;
}

void cx_cli_program_free(cx_cli_program *p)
{
  cx_free(p->text);
  cx_free(p->params);
  cx_free(p->results);
  calx_status_free(p->unfit);
  *p = (cx_cli_program){ 0 };
}
