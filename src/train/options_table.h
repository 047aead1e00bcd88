// train/options_table: the trainer's options as texts give them, on a command
// line, in a file, in the environment. A new option is a row of the table.
#ifndef CX_TRAIN_OPTIONS_TABLE_H
#define CX_TRAIN_OPTIONS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "calx/trainer_args.h"

enum { CX_TRAIN_OPTION_FIELDS = 3, CX_TRAIN_MOST_OPTIONS = 64 };

typedef enum cx_train_kind_id {
  CX_TRAIN_TEXT,
  CX_TRAIN_COUNT,   // an int64_t
  CX_TRAIN_NUMBER,  // one whose default is not 0: of 0 the field is INT64_MIN
  CX_TRAIN_NUMBER_OR_NONE,  // the same, of None -1
  CX_TRAIN_INT,
  CX_TRAIN_SEED,
  CX_TRAIN_DEVICES,   // an int, and a text instead of it
  CX_TRAIN_LIMIT,     // a double
  CX_TRAIN_INTERVAL,  // the same, and a text of a time instead of it
  CX_TRAIN_REAL,
  // Switches: without a value they are true.
  CX_TRAIN_FLAG,
  CX_TRAIN_NO_FLAG,  // the field is the opposite
  CX_TRAIN_FLAG_OR_WARN,
  CX_TRAIN_FLAG_OR_COUNT,  // an int64_t
  CX_TRAIN_LOGGER,         // a text, and a bool that there is none
  // What Lightning has, and calx does not need or does not have.
  CX_TRAIN_WITHOUT_EFFECT,
  CX_TRAIN_ABSENT,
} cx_train_kind_id;

// How a text becomes an option's value.
typedef struct cx_train_kind {
  // Sets the option's fields, which are 0 before. False: the text is none.
  bool (*take)(const char *text, void *const *fields);
  const char *wanted;  // "`max_epochs` should be WANTED. Got 'x'."
  const char *form;    // of a value, for the help
} cx_train_kind;
extern const cx_train_kind cx_train_kinds[];

static inline bool cx_train_is_switch(cx_train_kind_id kind)
{
  return kind >= CX_TRAIN_FLAG && kind <= CX_TRAIN_FLAG_OR_COUNT;
}

typedef struct cx_train_option {
  const char *name;      // Lightning's
  const char *also;      // another name of it; NULL: none
  const char *opposite;  // the name of its negation; NULL: none
  cx_train_kind_id kind;
  struct {
    size_t offset, size;  // of calx_trainer_options; 0: none
  } fields[CX_TRAIN_OPTION_FIELDS];
  const char *help;  // NULL: the help does not show it
} cx_train_option;

extern const cx_train_option cx_train_options[];
extern const size_t cx_train_n_options;

bool cx_train_is_none(const char *text);
// NULL: no option has this name.
const cx_train_option *cx_train_find_option(const char *name);
// The option's name that a misspelt one is likely to mean; NULL: none.
const char *cx_train_nearest_option(const char *name);
// The one that is the most like it, however little.
const char *cx_train_closest_option(const char *name);

// ---- options that are collected ---------------------------------------------

// Options on the way to a trainer, and which of them somebody gave.
typedef struct cx_train_given {
  calx_trainer_options options;
  size_t size;  // of the program's struct
  bool is_given[CX_TRAIN_MOST_OPTIONS];
} cx_train_given;

// What the program wrote. NULL: nothing.
calx_status *cx_train_given_begin(const calx_trainer_options *options,
                                  cx_train_given *out) CALX_MUST_USE;
// Sets an option by one of its names; the text is copied and lives as long as
// the process.
calx_status *cx_train_given_set(cx_train_given *g,
                                const cx_train_option *option, const char *name,
                                const char *text) CALX_MUST_USE;
// "WHO: SENTENCE" in place of the sentence. NULL stays NULL.
calx_status *cx_train_error_from(calx_status *status,
                                 const char *who) CALX_MUST_USE;
// CALX_TRAINER_NAME for each option that nobody gave.
calx_status *cx_train_given_environment(cx_train_given *g) CALX_MUST_USE;
// The trainer's part of a YAML file, from memory; `path` is for messages. What
// the program has there goes to a function, which may be NULL.
calx_status *cx_train_given_yaml(cx_train_given *g, const char *path,
                                 const char *data, size_t size,
                                 calx_trainer_key_fn *other,
                                 void *user) CALX_MUST_USE;
calx_status *cx_train_given_file(cx_train_given *g, const char *path,
                                 calx_trainer_key_fn *other,
                                 void *user) CALX_MUST_USE;
// Gives them to the program, with the environment's.
calx_status *cx_train_given_end(cx_train_given *g,
                                calx_trainer_options *out) CALX_MUST_USE;
#endif
