// train/options_yaml: the trainer's options from a YAML file: plain, or as
// LightningCLI has it, in a mapping `trainer:`. Values are texts, as on a
// command line.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "train/options_table.h"
#include "train/yaml.h"

enum { MOST_BYTES = 1 << 20, LONGEST_KEY = 255 };

typedef struct yaml_options {
  cx_train_given *given;
  calx_trainer_key_fn *other;
  void *user;
  // Keys that no function takes: the first one, and how many more.
  char left[64];
  size_t left_line;
  int more_left;
} yaml_options;

// ---- the trainer's ----------------------------------------------------------

static calx_status *take_option(cx_train_yaml *y, yaml_options *o,
                                const cx_train_option *option, const char *key,
                                const yaml_node_t *value)
{
  cx_text list = { 0 };
  const char *text = NULL;
  calx_status *status = NULL;
  if (value->type == YAML_SEQUENCE_NODE) {
    status = cx_train_yaml_list(y, value, &list);
    text = cx_text_str(&list);
  } else {
    status = cx_train_yaml_text(y, value, &text);
  }
  if (status == NULL) {
    status = cx_train_yaml_at(y, value,
                              cx_train_given_set(o->given, option, key, text));
  }
  cx_text_free(&list);
  return status;
}

static calx_status *refuse(const cx_train_yaml *y, const char *key,
                           const yaml_node_t *value, const char *nearest)
{
  char shown[65];
  cx_text_plain(key, strlen(key), shown, sizeof shown);
  return cx_train_yaml_at(
      y, value,
      cx_invalid("the trainer has no option `%s`; the nearest is `%s`", shown,
                 nearest));
}

static calx_status *take_trainer(cx_train_yaml *y, const char *key,
                                 yaml_node_t *value, void *user)
{
  const cx_train_option *option = cx_train_find_option(key);
  if (option != NULL) return take_option(y, user, option, key, value);
  return refuse(y, key, value, cx_train_closest_option(key));
}

// ---- the program's ----------------------------------------------------------

// A mapping or list of the program's, by the names of its parts.
typedef struct yaml_group {
  yaml_options *options;
  const char *name;
} yaml_group;

static const char *kept(const char *text)
{
  return cx_site_intern(&(calx_site){ .file = text }).file;
}

static calx_status *give(cx_train_yaml *y, yaml_options *o, const char *key,
                         yaml_node_t *value);

static calx_status *give_part(cx_train_yaml *y, const char *key,
                              yaml_node_t *value, void *user)
{
  const yaml_group *group = user;
  cx_text name = { 0 };
  cx_text_format(&name, "%s.%s", group->name, key);
  calx_status *status = cx_text_failed(&name) ? cx_out_of_memory()
                                              : give(y, group->options,
                                                     cx_text_str(&name), value);
  cx_text_free(&name);
  return status;
}

static calx_status *give(cx_train_yaml *y, yaml_options *o, const char *key,
                         yaml_node_t *value)
{
  const char *text;
  if (strlen(key) > LONGEST_KEY) {
    return cx_train_yaml_at(
        y, value, cx_invalid("a key of more than %d bytes", LONGEST_KEY));
  }
  if (value->type != YAML_SCALAR_NODE) {
    yaml_group group = { o, key };
    return cx_train_yaml_each(y, value, give_part, &group);
  }
  CALX_TRY(cx_train_yaml_text(y, value, &text));
  return cx_train_yaml_at(y, value, o->other(o->user, kept(key), kept(text)));
}

static calx_status *take_other(cx_train_yaml *y, yaml_options *o,
                               const char *key, yaml_node_t *value)
{
  if (o->other != NULL) return give(y, o, key, value);
  if (o->left[0] != '\0') {
    o->more_left++;
    return NULL;
  }
  cx_text_plain(key, strlen(key), o->left, sizeof o->left);
  o->left_line = value->start_mark.line + 1;
  return NULL;
}

static void report_left(const cx_train_yaml *y, const yaml_options *o)
{
  if (o->left[0] == '\0') return;
  cx_log(
      "%s:%zu: `%s` is no option of the trainer, and the program takes none of "
      "its own (%d more)",
      y->path, o->left_line, o->left, o->more_left);
}

// ---- files ------------------------------------------------------------------

// What the top of the file has beside `trainer:`, where that is.
static calx_status *take_beside(cx_train_yaml *y, const char *key,
                                yaml_node_t *value, void *user)
{
  if (strcmp(key, "trainer") == 0) return NULL;
  if (strcmp(key, "seed_everything") == 0) {
    return take_option(y, user, cx_train_find_option(key), key, value);
  }
  return take_other(y, user, key, value);
}

static calx_status *take_plain(cx_train_yaml *y, const char *key,
                               yaml_node_t *value, void *user)
{
  const cx_train_option *option = cx_train_find_option(key);
  if (option != NULL) return take_option(y, user, option, key, value);
  const char *nearest = cx_train_nearest_option(key);
  return nearest != NULL ? refuse(y, key, value, nearest)
                         : take_other(y, user, key, value);
}

static calx_status *find_trainer(cx_train_yaml *y, const char *key,
                                 yaml_node_t *value, void *user)
{
  (void)y;
  if (strcmp(key, "trainer") == 0) *(yaml_node_t **)user = value;
  return NULL;
}

static calx_status *take_root(cx_train_yaml *y, yaml_options *o)
{
  const yaml_node_t *root = cx_train_yaml_root(y);
  yaml_node_t *trainer = NULL;
  const char *text;
  if (root == NULL) return NULL;
  if (root->type != YAML_MAPPING_NODE) {
    return cx_train_yaml_at(y, root,
                            cx_invalid("the file is no mapping of options"));
  }
  CALX_TRY(cx_train_yaml_each(y, root, find_trainer, &trainer));
  if (trainer == NULL) return cx_train_yaml_each(y, root, take_plain, o);
  CALX_TRY(cx_train_yaml_each(y, root, take_beside, o));
  if (trainer->type == YAML_MAPPING_NODE) {
    return cx_train_yaml_each(y, trainer, take_trainer, o);
  }
  CALX_TRY(cx_train_yaml_text(y, trainer, &text));
  if (cx_train_is_none(text)) return NULL;
  return cx_train_yaml_at(y, trainer,
                          cx_invalid("`trainer` is no mapping of options"));
}

calx_status *cx_train_given_yaml(cx_train_given *g, const char *path,
                                 const char *data, size_t size,
                                 calx_trainer_key_fn *other, void *user)
{
  cx_train_yaml y;
  yaml_options o = { .given = g, .other = other, .user = user };
  CALX_TRY(cx_train_yaml_open(&y, path, data, size));
  calx_status *status = take_root(&y, &o);
  if (status == NULL) report_left(&y, &o);
  cx_train_yaml_close(&y);
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
