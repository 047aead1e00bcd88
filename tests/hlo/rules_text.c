#include <ctype.h>
#include <string.h>

#include "hlo/rules.h"
#include "hlo/types.h"

// ---- records ----

static char *trim(char *s)
{
  while (*s == ' ') s++;
  size_t n = strlen(s);
  while (n > 0 && s[n - 1] == ' ') n--;
  s[n] = '\0';
  return s;
}

// Cuts at the next " |"; the rest is in *rest.
static char *field(char **rest)
{
  char *s = *rest;
  char *bar = s[0] == '|' ? s : strstr(s, " |");
  if (bar == NULL) {
    *rest = s + strlen(s);
  } else {
    *rest = bar + (*bar == '|' ? 1 : 2);
    *bar = '\0';
  }
  return trim(s);
}

bool rule_next(rule *r)
{
  while (r->next != NULL && *r->next != '\0') {
    char *line = r->next;
    char *end = strchr(line, '\n');
    r->next = end == NULL ? NULL : end + 1;
    if (end != NULL) *end = '\0';
    r->line++;
    if (line[0] == '#' || line[0] == '\0') continue;
    r->params = field(&line);
    r->operation = field(&line);
    r->results = field(&line);
    r->verdict = field(&line);
    return true;
  }
  return false;
}

// ---- text ----

static bool is_in_word(char c)
{
  return isalnum((unsigned char)c) || c == '<' || c == '>';
}

// Where the element type begins that ends before `at`; NULL: there is none.
static const char *elem_before(const char *start, const char *at)
{
  const char *from = at;
  while (from > start && is_in_word(from[-1])) from--;
  for (; from < at; from++) {
    if (cx_hlo_elem_parse(from, (size_t)(at - from)) != CX_HLO_INVALID) {
      return from;
    }
  }
  return NULL;
}

// f32[2,3] becomes tensor<2x3xf32>; everything else stays.
static void expand_types(const char *s, cx_text *out)
{
  const char *done = s;
  for (const char *c = s; *c != '\0'; c++) {
    if (*c != '[' ||
        (!isdigit((unsigned char)c[1]) && c[1] != ']' && c[1] != '?')) {
      continue;
    }
    const char *elem = elem_before(done, c);
    if (elem == NULL) continue;
    cx_text_append_n(out, done, (size_t)(elem - done));
    cx_text_append(out, "tensor<");
    for (const char *d = c + 1; *d != ']'; d++) {
      cx_text_char(out, *d == ',' ? 'x' : *d);
    }
    if (c[1] != ']') cx_text_char(out, 'x');
    cx_text_append_n(out, elem, (size_t)(c - elem));
    cx_text_char(out, '>');
    done = strchr(c, ']') + 1;
  }
  cx_text_append(out, done);
}

// SUM(f32), GE(f32), ID(f32)
static void expand_regions(const char *s, cx_text *out)
{
  static const struct {
    const char *name;
    const char *body;  // * is the element type
  } bodies[] = {
    { "SUM(",
      "{ ^bb0(%l: *[], %r: *[]): %s = \"stablehlo.add\"(%l, %r) : (*[], *[]) "
      "-> *[] \"stablehlo.return\"(%s) : (*[]) -> () }" },
    { "GE(",
      "{ ^bb0(%l: *[], %r: *[]): %s = \"stablehlo.compare\"(%l, %r) "
      "<{comparison_direction = #stablehlo<comparison_direction GE>}> : (*[], "
      "*[]) -> i1[] \"stablehlo.return\"(%s) : (i1[]) -> () }" },
    { "ID(", "{ ^bb0(%l: *[]): \"stablehlo.return\"(%l) : (*[]) -> () }" },
  };
  while (*s != '\0') {
    size_t i = 0;
    const size_t n = sizeof bodies / sizeof *bodies;
    while (i < n && strncmp(s, bodies[i].name, strlen(bodies[i].name)) != 0) {
      i++;
    }
    if (i == n) {
      cx_text_char(out, *s++);
      continue;
    }
    const char *elem = s + strlen(bodies[i].name);
    const size_t size = strcspn(elem, ")");
    for (const char *b = bodies[i].body; *b != '\0'; b++) {
      cx_text_append_n(out, *b == '*' ? elem : b, *b == '*' ? size : 1);
    }
    s = elem + size + 1;
  }
}

// The types of the parameters, cut at the commas between them.
static size_t split_types(char *s, char **out, size_t most)
{
  size_t n = 0;
  int depth = 0;
  if (*s == '\0') return 0;
  out[n++] = s;
  for (; *s != '\0' && n < most; s++) {
    depth += strchr("[<", *s) != NULL;
    depth -= strchr("]>", *s) != NULL;
    if (*s != ',' || depth != 0) continue;
    *s = '\0';
    out[n++] = trim(s + 1);
  }
  return n;
}

// " : (types of %0, %1, …) -> (results)" for an operation's operands.
static void add_types(const rule *r, char *const *types, cx_text *out)
{
  const char *c = strchr(r->operation, '(') + 1;
  cx_text_append(out, " : (");
  for (bool first = true; *c != ')'; first = false) {
    const size_t digits = strcspn(c, "0123456789");
    if (!first) cx_text_append(out, ", ");
    cx_text_append(out, types[c[digits] - '0']);
    c += digits + 1;
    c += *c == ',';
  }
  cx_text_format(out, ") -> (%s)", r->results);
}

// (%0: type, …)
static void add_params(char *const *types, size_t n, cx_text *out)
{
  cx_text_append(out, "^bb0(");
  for (size_t i = 0; i < n; i++) {
    cx_text_format(out, "%s%%%zu: %s", i == 0 ? "" : ", ", i, types[i]);
  }
  cx_text_append(out, "):\n");
}

// %result:n =
static void add_results(const rule *r, cx_text *out)
{
  char results[512];
  char *each[8];
  if (r->results[0] == '\0') return;
  snprintf(results, sizeof results, "%s", r->results);
  cx_text_format(out, "%%result:%zu = ", split_types(results, each, 8));
}

void rule_module(const rule *r, cx_text *out)
{
  static const char other[] =
      "\"func.func\"() <{function_type = (f32[]) -> f32[], sym_name = "
      "\"double\"}> ({ ^bb0(%x: f32[]): %y = \"stablehlo.add\"(%x, %x) : "
      "(f32[], f32[]) -> f32[] \"func.return\"(%y) : (f32[]) -> () }) : () -> "
      "()\n";
  char params[512];
  char *types[16] = { NULL };
  snprintf(params, sizeof params, "%s", r->params);
  const size_t n = split_types(params, types, 16);
  const size_t name = strcspn(r->operation, "(");
  cx_text t = { 0 };
  cx_text_format(&t,
                 "\"builtin.module\"() ({\n\"func.func\"() "
                 "<{function_type = (%s) -> (), sym_name = \"main\"}> ({\n",
                 r->params);
  add_params(types, n, &t);
  add_results(r, &t);
  cx_text_format(&t, r->operation[0] == '"' ? "%.*s" : "\"stablehlo.%.*s\"",
                 (int)name, r->operation);
  cx_text_append(&t, r->operation + name);
  add_types(r, types, &t);
  cx_text_append(&t, "\n\"func.return\"() : () -> ()\n}) : () -> ()\n");
  cx_text_append(&t, other);
  cx_text_append(&t, "}) : () -> ()\n");
  cx_text regions = { 0 };
  expand_regions(cx_text_str(&t), &regions);
  expand_types(cx_text_str(&regions), out);
  cx_text_free(&regions);
  cx_text_free(&t);
}
