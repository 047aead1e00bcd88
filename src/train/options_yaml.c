// train/options_yaml: the trainer's options from a YAML file: plain, or as
// LightningCLI has it, in a mapping `trainer:`. Values are texts, as on a
// command line.
//
// The file may be hostile: its size, its depth, its anchors and the nodes that
// are looked at, of which aliases can make many of a few, are bounded.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "train/options_table.h"

enum {
  MOST_BYTES = 1 << 20,
  MOST_DEPTH = 32,
  MOST_NODES = 10000,
  MOST_ANCHORS = 1000  // libyaml compares each with all others
};

typedef struct yaml_file {
  const char *path;
  yaml_parser_t parser;
  yaml_document_t document;
  cx_train_given *given;
  calx_trainer_key_fn *other;
  void *user;
  int nodes, depth;
  // Keys that no function takes: the first one, and how many more.
  char left[64];
  int left_line, more_left;
} yaml_file;

typedef calx_status *pair_fn(yaml_file *f, const char *key, yaml_node_t *value,
                             void *user);

// ---- nodes ------------------------------------------------------------------

// "FILE:LINE: SENTENCE".
static calx_status *at_line(const yaml_file *f, size_t line,
                            calx_status *status)
{
  char place[PATH_MAX];
  snprintf(place, sizeof place, "%s:%zu", f->path, line + 1);
  return cx_train_said_by(status, place);
}

static calx_status *at_node(const yaml_file *f, const yaml_node_t *node,
                            calx_status *status)
{
  return at_line(f, node->start_mark.line, status);
}

static calx_status *node_at(yaml_file *f, int index, yaml_node_t **out)
{
  *out = yaml_document_get_node(&f->document, index);
  if (*out == NULL) return cx_invalid("%s: a node is missing", f->path);
  if (++f->nodes <= MOST_NODES) return NULL;
  return at_node(f, *out,
                 cx_error(CALX_RESOURCE_EXHAUSTED,
                          "more than the %d keys and values that are allowed",
                          MOST_NODES));
}

// A scalar's text, which may be on a line of an error: no control characters.
static calx_status *text_of(const yaml_file *f, const yaml_node_t *node,
                            const char **out)
{
  const char *text = (const char *)node->data.scalar.value;
  const size_t n = node->data.scalar.length;
  if (node->type != YAML_SCALAR_NODE) {
    return at_node(f, node, cx_invalid("a text is wanted, no list or mapping"));
  }
  for (size_t i = 0; i < n; i++) {
    if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') {
      return at_node(f, node, cx_invalid("a text has control characters"));
    }
  }
  const bool is_empty =
      n == 0 && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  *out = is_empty ? "null" : text;
  return NULL;
}

static bool is_merge(const char *key, const yaml_node_t *value)
{
  return strcmp(key, "<<") == 0 && value->type == YAML_MAPPING_NODE;
}

// Those that "<<: *other" brings come first, so that the mapping's own win.
static calx_status *each_pair(yaml_file *f, const yaml_node_t *mapping,
                              pair_fn *fn, void *user)
{
  if (f->depth == MOST_DEPTH) {
    return at_node(
        f, mapping,
        cx_error(CALX_RESOURCE_EXHAUSTED, "more than %d levels", MOST_DEPTH));
  }
  f->depth++;
  for (int merges = 1; merges >= 0; merges--) {
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
      yaml_node_t *key_node, *value;
      const char *key;
      CALX_TRY(node_at(f, pair->key, &key_node));
      CALX_TRY(node_at(f, pair->value, &value));
      CALX_TRY(text_of(f, key_node, &key));
      if (is_merge(key, value) != (merges == 1)) continue;
      CALX_TRY(merges == 1 ? each_pair(f, value, fn, user)
                           : fn(f, key, value, user));
    }
  }
  f->depth--;
  return NULL;
}

// ---- the trainer's ----------------------------------------------------------

// "[1, 8]" of a list.
static calx_status *list_text(yaml_file *f, const yaml_node_t *list,
                              cx_text *out)
{
  const yaml_node_item_t *item = list->data.sequence.items.start;
  cx_text_char(out, '[');
  for (; item < list->data.sequence.items.top; item++) {
    yaml_node_t *node;
    const char *text;
    CALX_TRY(node_at(f, *item, &node));
    CALX_TRY(text_of(f, node, &text));
    if (out->size > 1) cx_text_append(out, ", ");
    cx_text_append(out, text);
  }
  cx_text_char(out, ']');
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

static calx_status *take_option(yaml_file *f, const cx_train_option *option,
                                const char *key, const yaml_node_t *value)
{
  if (value->type != YAML_SEQUENCE_NODE) {
    const char *text;
    CALX_TRY(text_of(f, value, &text));
    return at_node(f, value, cx_train_given_set(f->given, option, key, text));
  }
  cx_text text = { 0 };
  calx_status *status = list_text(f, value, &text);
  if (status == NULL) {
    status =
        at_node(f, value,
                cx_train_given_set(f->given, option, key, cx_text_str(&text)));
  }
  cx_text_free(&text);
  return status;
}

static calx_status *refuse(const yaml_file *f, const char *key,
                           const yaml_node_t *value, const char *nearest)
{
  return at_node(f, value,
                 cx_invalid("the trainer has no option `%.*s`; the nearest is "
                            "`%s`",
                            64, key, nearest));
}

static calx_status *take_trainer(yaml_file *f, const char *key,
                                 yaml_node_t *value, void *user)
{
  (void)user;
  const cx_train_option *option = cx_train_find_option(key);
  return option != NULL ? take_option(f, option, key, value)
                        : refuse(f, key, value, cx_train_closest_option(key));
}

// ---- the program's ----------------------------------------------------------

static calx_status *give(yaml_file *f, const char *key, yaml_node_t *value);

static const char *kept(const char *text)
{
  return cx_site_intern(&(calx_site){ .file = text }).file;
}

// "model.hidden" of the key that is in `model`, "data.0" of an element.
static calx_status *give_part(yaml_file *f, const char *key, yaml_node_t *value,
                              void *user)
{
  cx_text name = { 0 };
  cx_text_format(&name, "%s.%s", (const char *)user, key);
  calx_status *status = cx_text_failed(&name)
                            ? cx_out_of_memory()
                            : give(f, cx_text_str(&name), value);
  cx_text_free(&name);
  return status;
}

static calx_status *give_list(yaml_file *f, const char *key,
                              const yaml_node_t *list)
{
  char user[256], number[16];
  int i = 0;
  snprintf(user, sizeof user, "%s", key);
  if (++f->depth > MOST_DEPTH) {
    return at_node(
        f, list,
        cx_error(CALX_RESOURCE_EXHAUSTED, "more than %d levels", MOST_DEPTH));
  }
  const yaml_node_item_t *item = list->data.sequence.items.start;
  for (; item < list->data.sequence.items.top; item++, i++) {
    yaml_node_t *value;
    CALX_TRY(node_at(f, *item, &value));
    snprintf(number, sizeof number, "%d", i);
    CALX_TRY(give_part(f, number, value, user));
  }
  f->depth--;
  return NULL;
}

static calx_status *give(yaml_file *f, const char *key, yaml_node_t *value)
{
  char name[256];
  const char *text;
  if (strlen(key) >= sizeof name) {
    return at_node(
        f, value,
        cx_invalid("a key of more than %zu letters", sizeof name - 1));
  }
  if (value->type == YAML_SEQUENCE_NODE) return give_list(f, key, value);
  if (value->type == YAML_MAPPING_NODE) {
    snprintf(name, sizeof name, "%s", key);
    return each_pair(f, value, give_part, name);
  }
  CALX_TRY(text_of(f, value, &text));
  return f->other(f->user, kept(key), kept(text));
}

static calx_status *take_others(yaml_file *f, const char *key,
                                yaml_node_t *value)
{
  if (f->other != NULL) return give(f, key, value);
  if (f->left[0] == '\0') {
    snprintf(f->left, sizeof f->left, "%s", key);
    f->left_line = (int)value->start_mark.line + 1;
  } else {
    f->more_left++;
  }
  return NULL;
}

static void report_left(const yaml_file *f)
{
  if (f->left[0] == '\0') return;
  cx_log(
      "%s:%d: `%s` is no option of the trainer, and the program takes none "
      "of its own (%d more)",
      f->path, f->left_line, f->left, f->more_left);
}

// ---- files ------------------------------------------------------------------

// What the top of the file has beside `trainer:`, where that is.
static calx_status *take_beside(yaml_file *f, const char *key,
                                yaml_node_t *value, void *user)
{
  (void)user;
  if (strcmp(key, "trainer") == 0) return NULL;
  if (strcmp(key, "seed_everything") == 0) {
    return take_option(f, cx_train_find_option(key), key, value);
  }
  return take_others(f, key, value);
}

static calx_status *take_plain(yaml_file *f, const char *key,
                               yaml_node_t *value, void *user)
{
  (void)user;
  const cx_train_option *option = cx_train_find_option(key);
  if (option != NULL) return take_option(f, option, key, value);
  const char *nearest = cx_train_nearest_option(key);
  return nearest != NULL ? refuse(f, key, value, nearest)
                         : take_others(f, key, value);
}

static calx_status *find_trainer(yaml_file *f, const char *key,
                                 yaml_node_t *value, void *user)
{
  (void)f;
  if (strcmp(key, "trainer") == 0) *(yaml_node_t **)user = value;
  return NULL;
}

static calx_status *take_root(yaml_file *f)
{
  yaml_node_t *root = yaml_document_get_root_node(&f->document);
  yaml_node_t *trainer = NULL;
  if (root == NULL) return NULL;
  if (root->type != YAML_MAPPING_NODE) {
    return at_node(f, root, cx_invalid("the file is no mapping of options"));
  }
  CALX_TRY(each_pair(f, root, find_trainer, &trainer));
  if (trainer == NULL) return each_pair(f, root, take_plain, NULL);
  CALX_TRY(each_pair(f, root, take_beside, NULL));
  if (trainer->type == YAML_MAPPING_NODE) {
    return each_pair(f, trainer, take_trainer, NULL);
  }
  const char *text;
  CALX_TRY(text_of(f, trainer, &text));
  if (cx_train_is_none(text)) return NULL;
  return at_node(f, trainer, cx_invalid("`trainer` is no mapping of options"));
}

static calx_status *parser_failed(const yaml_file *f)
{
  const yaml_parser_t *p = &f->parser;
  if (p->error == YAML_MEMORY_ERROR) return cx_out_of_memory();
  const char *problem = p->problem != NULL ? p->problem : "no YAML";
  if (p->error == YAML_READER_ERROR) {
    return cx_invalid("%s: byte %zu: %s", f->path, p->problem_offset, problem);
  }
  return at_line(f, p->problem_mark.line, cx_invalid("%s", problem));
}

// A second document would be options that nobody reads.
static calx_status *check_end(yaml_file *f)
{
  yaml_document_t more;
  if (!yaml_parser_load(&f->parser, &more)) return parser_failed(f);
  const yaml_node_t *root = yaml_document_get_root_node(&more);
  calx_status *status =
      root != NULL ? at_node(f, root, cx_invalid("the file has two documents"))
                   : NULL;
  yaml_document_delete(&more);
  return status;
}

static calx_status *read_document(yaml_file *f)
{
  if (!yaml_parser_load(&f->parser, &f->document)) return parser_failed(f);
  calx_status *status = check_end(f);
  if (status == NULL) status = take_root(f);
  yaml_document_delete(&f->document);
  return status;
}

static calx_status *check_anchors(const char *path, const char *data,
                                  size_t size)
{
  int anchors = 0;
  for (size_t i = 0; i < size; i++) anchors += data[i] == '&';
  if (anchors <= MOST_ANCHORS) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "%s: more than the %d '&' that are allowed", path,
                  MOST_ANCHORS);
}

calx_status *cx_train_given_yaml(cx_train_given *g, const char *path,
                                 const char *data, size_t size,
                                 calx_trainer_key_fn *other, void *user)
{
  yaml_file f = { .path = path, .given = g, .other = other, .user = user };
  CALX_TRY(check_anchors(path, data, size));
  if (!yaml_parser_initialize(&f.parser)) return cx_out_of_memory();
  yaml_parser_set_input_string(&f.parser, (const unsigned char *)data, size);
  calx_status *status = read_document(&f);
  yaml_parser_delete(&f.parser);
  if (status == NULL) report_left(&f);
  return status;
}

calx_status *cx_train_given_file(cx_train_given *g, const char *path,
                                 calx_trainer_key_fn *other, void *user)
{
  char *data;
  size_t size;
  CALX_TRY(cx_file_read(path, MOST_BYTES, &data, &size));
  calx_status *status = cx_train_given_yaml(g, path, data, size, other, user);
  cx_free(data);
  return status;
}

calx_status *calx_trainer_options_from_yaml(calx_trainer_options *options,
                                            const char *path,
                                            calx_trainer_key_fn *on_key,
                                            void *user)
{
  cx_train_given given;
  if (options == NULL || path == NULL) {
    return cx_invalid("trainer_options_from_yaml: %s is NULL",
                      options == NULL ? "options" : "path");
  }
  CALX_TRY(cx_train_given_begin(options, &given));
  CALX_TRY(cx_train_given_file(&given, path, on_key, user));
  return cx_train_given_end(&given, options);
}
