// train/options_args: the trainer's options out of a program's command line.
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "base/text.h"
#include "train/internal.h"
#include "train/options_table.h"

// A command line that is read: argv[0] to argv[left] stay for the program.
typedef struct command_line {
  int argc, at, left;
  char **argv;
  const calx_trainer_args_options *args;
  cx_train_given given;
} command_line;

// "--trainer.max_epochs=5" in its parts.
typedef struct argument {
  char name[64];
  bool is_trainers;   // has the prefix
  const char *value;  // NULL: none behind a '='
} argument;

static bool is_own(const command_line *l, const char *name)
{
  const char *const *own = l->args->own_names;
  for (; own != NULL && *own != NULL; own++) {
    if (strcmp(*own, name) == 0) return true;
  }
  return false;
}

// False: it is no option with a name.
static bool split(const char *word, argument *out)
{
  static const char prefix[] = "trainer.";
  *out = (argument){ 0 };
  if (strncmp(word, "--", 2) != 0) return false;
  const char *name = word + 2;
  out->is_trainers = strncmp(name, prefix, sizeof prefix - 1) == 0;
  if (out->is_trainers) name += sizeof prefix - 1;
  const char *equals = strchr(name, '=');
  const size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
  if (n == 0) return false;
  if (equals != NULL) out->value = equals + 1;
  snprintf(out->name, sizeof out->name, "%.*s", (int)n, name);
  return true;
}

// ---- values -----------------------------------------------------------------

static bool is_value_of(const cx_train_option *option, const char *text)
{
  int64_t scratch[CX_TRAIN_OPTION_FIELDS];
  void *const fields[] = { &scratch[0], &scratch[1], &scratch[2] };
  return cx_train_kinds[option->kind].take(text, fields);
}

// Behind the '=', else the next word. A switch takes that only if it is a value
// of its own, so that `--fast_dev_run data.csv` leaves the file.
static calx_status *find_value(command_line *l, const argument *a,
                               const cx_train_option *option, const char **out)
{
  const bool is_switch = option != NULL && cx_train_is_switch(option->kind);
  *out = a->value;
  if (a->value != NULL) return NULL;
  const char *next = l->at + 1 < l->argc ? l->argv[l->at + 1] : NULL;
  const bool is_next = next != NULL && strncmp(next, "--", 2) != 0 &&
                       (!is_switch || is_value_of(option, next));
  *out = is_next ? next : "true";
  if (is_next) l->at++;
  if (is_next || is_switch) return NULL;
  return cx_invalid("--%s wants a value: --%s=VALUE", a->name, a->name);
}

static calx_status *take_file(command_line *l, const argument *a)
{
  const char *path;
  CALX_TRY(find_value(l, a, NULL, &path));
  return cx_train_given_file(&l->given, path, l->args->on_key, l->args->user);
}

// ---- words ------------------------------------------------------------------

static calx_status *refuse(const argument *a)
{
  const char *nearest = cx_train_nearest_option(a->name);
  if (nearest == NULL && !a->is_trainers) return NULL;
  if (nearest == NULL) nearest = cx_train_closest_option(a->name);
  return cx_invalid("the trainer has no option --%s%s; the nearest is --%s",
                    a->is_trainers ? "trainer." : "", a->name, nearest);
}

// One word with its value. `*out_left`: it is the program's.
static calx_status *take_word(command_line *l, bool *out_left)
{
  argument a;
  *out_left =
      !split(l->argv[l->at], &a) || (!a.is_trainers && is_own(l, a.name));
  if (*out_left) return NULL;
  if (!a.is_trainers && strcmp(a.name, "config") == 0) return take_file(l, &a);
  const cx_train_option *option = cx_train_find_option(a.name);
  if (option == NULL) {
    *out_left = true;
    return refuse(&a);
  }
  const char *value;
  CALX_TRY(find_value(l, &a, option, &value));
  return cx_train_given_set(&l->given, option, a.name, value);
}

static void leave(command_line *l)
{
  l->argv[l->left++] = l->argv[l->at];
}

// A word of which something is wrong stays, with all behind it.
static calx_status *take_words(command_line *l)
{
  calx_status *status = NULL;
  bool is_left = false;
  for (l->at = l->left = 1; l->at < l->argc && status == NULL; l->at++) {
    if (strcmp(l->argv[l->at], "--") == 0) break;
    const int word = l->at;
    status = take_word(l, &is_left);
    if (status != NULL) l->at = word;
    if (status != NULL) break;
    if (is_left) leave(l);
  }
  for (; l->at < l->argc; l->at++) leave(l);
  l->argv[l->left] = NULL;
  return status;
}

calx_status *calx_trainer_args_with(calx_trainer_options *options, int *argc,
                                    char **argv,
                                    const calx_trainer_args_options *given)
{
  calx_trainer_args_options args;
  CALX_TRY(cx_options_take("trainer_args", given, &args, sizeof args));
  if (options == NULL || argc == NULL || argv == NULL) {
    return cx_invalid("trainer_args: %s is NULL", options == NULL ? "options"
                                                  : argc == NULL  ? "argc"
                                                                  : "argv");
  }
  if (*argc < 1) return NULL;
  command_line l = { .argc = *argc, .argv = argv, .args = &args };
  CALX_TRY(cx_train_given_begin(options, &l.given));
  calx_status *status = take_words(&l);
  *argc = l.left;
  if (status != NULL) return status;
  return cx_train_given_end(&l.given, options);
}

calx_trainer *calx_trainer_from_args_with(int argc, char **argv,
                                          const calx_trainer_options *options)
{
  calx_trainer_options o;
  calx_status *status = cx_options_take("trainer", options, &o, sizeof o);
  if (status == NULL) {
    o.size = sizeof o;
    status = calx_trainer_args_with(&o, &argc, argv, NULL);
  }
  if (status == NULL && argc > 1) {
    status = cx_invalid("'%s' is no option of the trainer", argv[1]);
  }
  return status == NULL ? calx_trainer_new_with(&o) : cx_train_refused(status);
}

// ---- help -------------------------------------------------------------------

char *calx_trainer_args_help(void)
{
  enum { COLUMN = 32 };
  cx_text text = { 0 };
  cx_text_append(&text,
                 "Options of the trainer; --config=FILE reads them from YAML, "
                 "CALX_TRAINER_NAME\ngives one that is not written:\n");
  for (size_t i = 0; i < cx_train_n_options; i++) {
    const cx_train_option *o = &cx_train_options[i];
    if (o->help == NULL) continue;
    char word[64];
    snprintf(word, sizeof word,
             cx_train_is_switch(o->kind) ? "--%s[=%s]" : "--%s=%s", o->name,
             cx_train_kinds[o->kind].form);
    cx_text_format(&text, "  %-*s %s\n", COLUMN, word, o->help);
  }
  return cx_text_take(&text);
}
