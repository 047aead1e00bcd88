// train/yaml: see yaml.h.
#include "train/yaml.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "train/options_table.h"

enum {
  MOST_DEPTH = 32,
  MOST_NODES = 10000,
  MOST_VISITS = 10 * MOST_NODES,  // with what aliases repeat
  // libyaml compares each with all others.
  MOST_ANCHORS = 1000,
  MOST_DIRECTIVES = 100
};

// ---- errors -----------------------------------------------------------------

static calx_status *at_line(const cx_train_yaml *y, size_t line,
                            calx_status *status)
{
  char line_name[PATH_MAX];
  snprintf(line_name, sizeof line_name, "%s:%zu", y->path, line + 1);
  return cx_train_error_from(status, line_name);
}

calx_status *cx_train_yaml_at(const cx_train_yaml *y, const yaml_node_t *node,
                              calx_status *status)
{
  return at_line(y, node->start_mark.line, status);
}

static calx_status *too_many(int allowed)
{
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "more than the %d keys and values that are allowed", allowed);
}

static calx_status *too_deep(void)
{
  return cx_error(CALX_RESOURCE_EXHAUSTED, "more than %d levels", MOST_DEPTH);
}

static calx_status *parser_failed(const cx_train_yaml *y)
{
  const yaml_parser_t *p = &y->parser;
  if (p->error == YAML_MEMORY_ERROR) return cx_out_of_memory();
  const char *problem = p->problem != NULL ? p->problem : "no YAML";
  if (p->error == YAML_READER_ERROR) {
    return cx_invalid("%s: byte %zu: %s", y->path, p->problem_offset, problem);
  }
  return at_line(y, p->problem_mark.line, cx_invalid("%s", problem));
}

// ---- what libyaml would take long over --------------------------------------

typedef struct yaml_size {
  int depth, nodes, anchors;
} yaml_size;

static void count_event(const yaml_event_t *e, yaml_size *size)
{
  const yaml_char_t *anchor = NULL;
  switch (e->type) {
    case YAML_ALIAS_EVENT: size->nodes++; break;
    case YAML_SCALAR_EVENT:
      size->nodes++;
      anchor = e->data.scalar.anchor;
      break;
    case YAML_SEQUENCE_START_EVENT:
      size->depth++, size->nodes++;
      anchor = e->data.sequence_start.anchor;
      break;
    case YAML_MAPPING_START_EVENT:
      size->depth++, size->nodes++;
      anchor = e->data.mapping_start.anchor;
      break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: size->depth--; break;
    default: break;
  }
  size->anchors += anchor != NULL;
}

static calx_status *check_size(const yaml_size *size)
{
  if (size->depth > MOST_DEPTH) return too_deep();
  if (size->nodes > MOST_NODES) return too_many(MOST_NODES);
  if (size->anchors <= MOST_ANCHORS) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED, "more than %d anchors",
                  MOST_ANCHORS);
}

// All of the file, as far as it is small.
static calx_status *scan(cx_train_yaml *y)
{
  yaml_size size = { 0 };
  for (bool ends = false; !ends;) {
    yaml_event_t e;
    if (!yaml_parser_parse(&y->parser, &e)) return parser_failed(y);
    count_event(&e, &size);
    ends = e.type == YAML_STREAM_END_EVENT;
    const size_t line = e.start_mark.line;
    yaml_event_delete(&e);
    CALX_TRY(at_line(y, line, check_size(&size)));
  }
  return NULL;
}

static calx_status *check_directives(const char *path, const char *data,
                                     size_t size)
{
  int directives = 0;
  const char *end = data + size, *at = data;
  for (; (at = memmem(at, (size_t)(end - at), "%TAG", 4)) != NULL; at++) {
    if (++directives <= MOST_DIRECTIVES) continue;
    return cx_error(CALX_RESOURCE_EXHAUSTED, "%s: more than %d times %%TAG",
                    path, MOST_DIRECTIVES);
  }
  return NULL;
}

// ---- files ------------------------------------------------------------------

// A second document would be what nobody reads.
static calx_status *check_end(cx_train_yaml *y)
{
  yaml_document_t more;
  if (!yaml_parser_load(&y->parser, &more)) return parser_failed(y);
  const yaml_node_t *root = yaml_document_get_root_node(&more);
  calx_status *status = NULL;
  if (root != NULL) {
    status =
        cx_train_yaml_at(y, root, cx_invalid("the file has two documents"));
  }
  yaml_document_delete(&more);
  return status;
}

static calx_status *load(cx_train_yaml *y)
{
  if (!yaml_parser_load(&y->parser, &y->document)) return parser_failed(y);
  calx_status *status = check_end(y);
  if (status != NULL) yaml_document_delete(&y->document);
  return status;
}

static calx_status *parse(cx_train_yaml *y, const char *data, size_t size,
                          calx_status *(*fn)(cx_train_yaml *y))
{
  if (!yaml_parser_initialize(&y->parser)) return cx_out_of_memory();
  yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&y->parser, (const unsigned char *)data, size);
  calx_status *status = fn(y);
  yaml_parser_delete(&y->parser);
  return status;
}

calx_status *cx_train_yaml_open(cx_train_yaml *y, const char *path,
                                const char *data, size_t size)
{
  *y = (cx_train_yaml){ .path = path };
  CALX_TRY(check_directives(path, data, size));
  CALX_TRY(parse(y, data, size, scan));
  return parse(y, data, size, load);
}

void cx_train_yaml_close(cx_train_yaml *y)
{
  yaml_document_delete(&y->document);
}

yaml_node_t *cx_train_yaml_root(cx_train_yaml *y)
{
  return yaml_document_get_root_node(&y->document);
}

// ---- nodes ------------------------------------------------------------------

static calx_status *node_at(cx_train_yaml *y, int index, yaml_node_t **out)
{
  *out = yaml_document_get_node(&y->document, index);
  if (*out == NULL) return cx_invalid("%s: a node is missing", y->path);
  if (++y->visits <= MOST_VISITS) return NULL;
  return cx_train_yaml_at(y, *out, too_many(MOST_VISITS));
}

// U+0080 to U+009F, which are bytes C2 80 to C2 9F, control terminals too. A
// text ends with a 0.
static bool is_shown(const unsigned char *p)
{
  const bool is_c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
  const bool is_c0 =
      (p[0] < ' ' && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f;
  return !is_c0 && !is_c1;
}

calx_status *cx_train_yaml_text(const cx_train_yaml *y, const yaml_node_t *node,
                                const char **out)
{
  if (node->type != YAML_SCALAR_NODE) {
    return cx_train_yaml_at(y, node,
                            cx_invalid("a text is wanted, no list or mapping"));
  }
  const char *text = (const char *)node->data.scalar.value;
  const size_t n = node->data.scalar.length;
  for (size_t i = 0; i < n; i++) {
    if (is_shown((const unsigned char *)text + i)) continue;
    return cx_train_yaml_at(y, node,
                            cx_invalid("a text has control characters"));
  }
  const bool is_nothing =
      n == 0 && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  *out = is_nothing ? "null" : text;
  return NULL;
}

calx_status *cx_train_yaml_list(cx_train_yaml *y, const yaml_node_t *list,
                                cx_text *out)
{
  const yaml_node_item_t *item = list->data.sequence.items.start;
  cx_text_char(out, '[');
  for (; item < list->data.sequence.items.top; item++) {
    yaml_node_t *node;
    const char *text;
    CALX_TRY(node_at(y, *item, &node));
    CALX_TRY(cx_train_yaml_text(y, node, &text));
    if (out->size > 1) cx_text_append(out, ", ");
    cx_text_append(out, text);
  }
  cx_text_char(out, ']');
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

static calx_status *each_pair(cx_train_yaml *y, const yaml_node_t *mapping,
                              bool merges, cx_train_yaml_fn *fn, void *user)
{
  const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
  for (; pair < mapping->data.mapping.pairs.top; pair++) {
    yaml_node_t *key_node, *value;
    const char *key;
    CALX_TRY(node_at(y, pair->key, &key_node));
    CALX_TRY(node_at(y, pair->value, &value));
    CALX_TRY(cx_train_yaml_text(y, key_node, &key));
    const bool is_merge =
        strcmp(key, "<<") == 0 && value->type == YAML_MAPPING_NODE;
    if (is_merge != merges) continue;
    CALX_TRY(is_merge ? cx_train_yaml_each(y, value, fn, user)
                      : fn(y, key, value, user));
  }
  return NULL;
}

static calx_status *each_item(cx_train_yaml *y, const yaml_node_t *list,
                              cx_train_yaml_fn *fn, void *user)
{
  const yaml_node_item_t *first = list->data.sequence.items.start;
  for (const yaml_node_item_t *item = first;
       item < list->data.sequence.items.top; item++) {
    yaml_node_t *value;
    char number[16];
    CALX_TRY(node_at(y, *item, &value));
    snprintf(number, sizeof number, "%d", (int)(item - first));
    CALX_TRY(fn(y, number, value, user));
  }
  return NULL;
}

calx_status *cx_train_yaml_each(cx_train_yaml *y, const yaml_node_t *node,
                                cx_train_yaml_fn *fn, void *user)
{
  if (y->depth == MOST_DEPTH) return cx_train_yaml_at(y, node, too_deep());
  y->depth++;
  if (node->type == YAML_SEQUENCE_NODE) {
    CALX_TRY(each_item(y, node, fn, user));
  } else {
    CALX_TRY(each_pair(y, node, true, fn, user));
    CALX_TRY(each_pair(y, node, false, fn, user));
  }
  y->depth--;
  return NULL;
}
