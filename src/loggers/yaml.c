// loggers/yaml: hyperparameters, and hparams.yaml as PyYAML writes it.
//
// A text is written plain where a reader takes it for a text, in single quotes
// where it would be a number, a bool or syntax, and in double quotes where it
// has characters that need an escape. Long texts are not folded.
#include "loggers/yaml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "loggers/number.h"

// ---- the list ---------------------------------------------------------------

static calx_hyperparameter *find(const cx_loggers_hyperparameters *all,
                                 const char *name)
{
  for (size_t i = 0; i < all->count; i++) {
    if (strcmp(all->items[i].name, name) == 0) return &all->items[i];
  }
  return NULL;
}

calx_status *cx_loggers_hyperparameters_set(cx_loggers_hyperparameters *all,
                                            const calx_hyperparameter *value)
{
  char *text = NULL;
  if (value->text != NULL && (text = cx_strdup(value->text)) == NULL) {
    return cx_out_of_memory();
  }
  calx_hyperparameter *item = find(all, value->name);
  const char *name = item != NULL ? item->name : cx_strdup(value->name);
  if (item == NULL && name != NULL &&
      cx_grow(&all->items, &all->capacity, all->count + 1,
              sizeof *all->items)) {
    item = &all->items[all->count++];
    item->text = NULL;
  }
  if (item == NULL) {
    cx_free((char *)name);
    cx_free(text);
    return cx_out_of_memory();
  }
  cx_free((char *)item->text);
  *item = *value;
  item->name = name;
  item->text = text;
  return NULL;
}

void cx_loggers_hyperparameters_free(cx_loggers_hyperparameters *all)
{
  for (size_t i = 0; i < all->count; i++) {
    cx_free((char *)all->items[i].name);
    cx_free((char *)all->items[i].text);
  }
  cx_free(all->items);
}

// ---- texts ------------------------------------------------------------------

static bool is_blank(char c)
{
  return c == ' ' || c == '\0';
}

// What YAML 1.1 reads as a bool, null, a merge or a default.
static bool is_word(const char *s)
{
  static const char *const words[] = { "yes", "no",   "true", "false", "on",
                                       "off", "null", "~",    "<<",    "=" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcasecmp(s, words[i]) == 0) return true;
  }
  return false;
}

// Perhaps a number, a time or a date.
static bool is_like_number(const char *s)
{
  const char *p = s + (*s == '+' || *s == '-');
  if (*p == '.') {
    p++;
    if (strcasecmp(p, "inf") == 0 || strcasecmp(p, "nan") == 0) return true;
  }
  if (*p < '0' || *p > '9') return false;
  return (p[0] == '0' && (p[1] == 'x' || p[1] == 'b')) ||
         p[strspn(p, "+-.0123456789_:eETtZz ")] == '\0';
}

// Whether it means itself without quotes.
static bool is_plain(const char *s)
{
  if (*s == '\0' || is_blank(*s) || strchr("#,[]{}&*!|>'\"%@`", *s) != NULL) {
    return false;
  }
  if (strchr("-?:", *s) != NULL && is_blank(s[1])) return false;
  if (strncmp(s, "---", 3) == 0 || strncmp(s, "...", 3) == 0) return false;
  for (const char *p = s; *p != '\0'; p++) {
    if (*p == ':' && is_blank(p[1])) return false;
    if (*p == ' ' && (p[1] == '#' || p[1] == '\0')) return false;
  }
  return !is_word(s) && !is_like_number(s);
}

// Of printable ASCII: the rest is written as escapes.
static bool is_printable(const char *s)
{
  for (; *s != '\0'; s++) {
    if (*s < 0x20 || *s > 0x7e) return false;
  }
  return true;
}

static uint32_t code_point(const unsigned char *s, size_t n)
{
  uint32_t code = n == 1 ? s[0] : s[0] & (0xffU >> (n + 1));
  for (size_t i = 1; i < n; i++) code = code << 6 | (s[i] & 0x3f);
  return code;
}

static void put_escaped(cx_text *out, const char *s)
{
  cx_text_char(out, '"');
  for (const unsigned char *p = (const unsigned char *)s; *p != '\0';) {
    size_t n = cx_text_utf8(p);
    uint32_t code = n == 0 ? '?' : code_point(p, n);
    if (code == '\n' || code == '\t' || code == '\r') {
      cx_text_append(out, code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r");
    } else if (code == '"' || code == '\\') {
      cx_text_format(out, "\\%c", (char)code);
    } else if (code >= 0x20 && code <= 0x7e) {
      cx_text_char(out, (char)code);
    } else {
      cx_text_format(out,
                     code < 0x100     ? "\\x%02X"
                     : code < 0x10000 ? "\\u%04X"
                                      : "\\U%08X",
                     code);
    }
    p += n == 0 ? 1 : n;
  }
  cx_text_char(out, '"');
}

static void put_text(cx_text *out, const char *s)
{
  if (!is_printable(s)) {
    put_escaped(out, s);
  } else if (is_plain(s)) {
    cx_text_append(out, s);
  } else {
    cx_text_char(out, '\'');
    for (; *s != '\0'; s++)
      cx_text_append(out, *s == '\'' ? "''" : (char[]){ *s, 0 });
    cx_text_char(out, '\'');
  }
}

// ---- values -----------------------------------------------------------------

// YAML 1.1 wants a point in a number that has an exponent.
static void put_real(cx_text *out, double value)
{
  if (!isfinite(value)) {
    cx_text_append(out, isnan(value) ? ".nan" : value < 0 ? "-.inf" : ".inf");
    return;
  }
  cx_text text = { 0 };
  cx_loggers_put_real(&text, value);
  const char *s = cx_text_str(&text), *e = strchr(s, 'e');
  if (e != NULL && strchr(s, '.') == NULL) {
    cx_text_append_n(out, s, (size_t)(e - s));
    cx_text_append(out, ".0");
    s = e;
  }
  cx_text_append(out, s);
  out->failed |= text.failed;
  cx_text_free(&text);
}

static void put_value(cx_text *out, const calx_hyperparameter *h)
{
  switch (h->kind) {
    case CALX_HYPERPARAMETER_BOOL:
      cx_text_append(out, h->number != 0 ? "true" : "false");
      break;
    case CALX_HYPERPARAMETER_INTEGER:
      cx_loggers_put_whole(out, h->number);
      break;
    case CALX_HYPERPARAMETER_TEXT:
      if (h->text == NULL) {
        cx_text_append(out, "null");
      } else {
        put_text(out, h->text);
      }
      break;
    default: put_real(out, h->number);
  }
}

static int compare(const void *a, const void *b)
{
  const calx_hyperparameter *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

void cx_loggers_put_yaml(cx_text *out, const cx_loggers_hyperparameters *all)
{
  if (all->count == 0) {
    cx_text_append(out, "{}\n");
    return;
  }
  const calx_hyperparameter **sorted = cx_calloc(all->count, sizeof *sorted);
  if (sorted == NULL) {
    out->failed = true;
    return;
  }
  for (size_t i = 0; i < all->count; i++) sorted[i] = &all->items[i];
  qsort(sorted, all->count, sizeof *sorted, compare);
  for (size_t i = 0; i < all->count; i++) {
    put_text(out, sorted[i]->name);
    cx_text_append(out, ": ");
    put_value(out, sorted[i]);
    cx_text_char(out, '\n');
  }
  cx_free(sorted);
}
