/**
 * calx/trainer_args.h: the trainer's options from a program's command line, a
 * YAML file and the environment, under Lightning's names.
 *
 *   int main(int argc, char **argv)
 *   {
 *     calx_trainer_options options = CALX_TRAINER_OPTIONS(.max_epochs = 3);
 *     calx_status *status = calx_trainer_args(&options, &argc, argv);
 *     // argv has what is left: the program's own arguments
 *     calx_trainer *trainer = calx_trainer_new_with(&options);
 *
 *   ./train --devices=8 --precision=16 --batch_size=32
 *
 * An option is what the command line says, from left to right, in which
 * --config stands for what its file says; else what the program wrote; else
 * what the variable CALX_TRAINER_NAME says, as CALX_TRAINER_MAX_EPOCHS; else
 * Lightning's default. A number that the program leaves 0 it did not write.
 *
 * In all forms an option has Lightning's name or the one of its field
 * (enable_progress_bar, no_progress_bar), and a value as Lightning takes it
 * there: true and false, yes and no, 1 and 0; None and null for the default;
 * "[5]" for a list; of batches 1 for one, 1.0 for all, 0.5 for a half.
 *
 * @threads one thread at a time, before the first trainer
 * @source lightning.pytorch.cli.LightningCLI, and PL_TRAINER_*
 */
#ifndef CALX_TRAINER_ARGS_H
#define CALX_TRAINER_ARGS_H

#include "calx/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Gets a key that is the program's own, as "model.hidden" or "data.files.0",
 *  and its text; both live as long as the process. What it returns ends the
 *  reading. */
typedef calx_status *calx_trainer_key_fn(void *user, const char *key,
                                         const char *text);

/** Zero means default. */
typedef struct CALX_OPTIONS calx_trainer_args_options {
  CALX_NAMED size_t size;
  /* names of the program's own options, up to a NULL, which are left although
     they are the trainer's or like one: { "seed", "device", NULL } */
  CALX_NAMED const char *const *own_names;
  /* gets what a file of --config has beside the trainer's options */
  CALX_NAMED calx_trainer_key_fn *on_key;
  CALX_NAMED void *user; /* of on_key */
} calx_trainer_args_options;

/**
 * Takes the trainer's options out of a command line: --max_epochs=5,
 * --max_epochs 5, --fast_dev_run, --trainer.max_epochs=5 and --config=FILE, up
 * to "--". What is left keeps its order.
 * @param options  what the program wrote, and the result. Its new texts live as
 *        long as the process
 * @param argc, argv  those of main(); argv[*argc] is NULL after it
 * @errors INVALID_ARGUMENT a value that is none, --trainer.NAME of no option, a
 *         name that is nearly an option's; those of
 *         calx_trainer_options_from_yaml(). `options` is as it was, and so is
 *         what was not read of the command line
 */
CALX_API calx_status *calx_trainer_args_with(
    calx_trainer_options *options, int *argc, char **argv,
    const calx_trainer_args_options *args) CALX_MUST_USE;
/**
 * A trainer of what the program wrote and what its command line says, for
 * programs without options of their own. Never NULL: calx_trainer_error()
 * @param argc, argv  those of main(); changed as by calx_trainer_args()
 * @param options  what the program wrote
 * @errors of the trainer: those of calx_trainer_args(); INVALID_ARGUMENT a word
 *         that is no option of the trainer
 * @source Trainer.from_argparse_args of Lightning 1.x
 */
CALX_API calx_trainer *calx_trainer_from_args_with(
    int argc, char **argv, const calx_trainer_options *options);
/** The options as lines for a program's --help. The caller frees it with
 *  calx_string_free(); NULL without memory. */
CALX_API char *calx_trainer_args_help(void);

/**
 * The options that a YAML file has, at its top or in a mapping `trainer:`;
 * then the top has seed_everything alone. The other keys are the program's.
 * @param on_key  gets those; may be NULL: the file's are then named in a line
 * @param user    of on_key
 * @errors NOT_FOUND no such file; INVALID_ARGUMENT no YAML, with its line, a
 *         value that is none, no option of that name; RESOURCE_EXHAUSTED above
 *         1 MB, 32 levels or 10000 keys; those of on_key. `options` is as it
 *         was
 */
CALX_API calx_status *calx_trainer_options_from_yaml(
    calx_trainer_options *options, const char *path,
    calx_trainer_key_fn *on_key, void *user) CALX_MUST_USE;

#ifdef __cplusplus
}
#else
/** A struct of options, in which a 0 that is written is one. */
#define CALX_TRAINER_OPTIONS(...)                                           \
  (*CALX_WRITE_(calx_trainer_options, .size = sizeof(calx_trainer_options), \
                __VA_ARGS__))
#define CALX_TRAINER_ARGS_(options, argc, argv, ...) \
  (CALX_TRAINER_SITE_ calx_trainer_args_with(        \
      options, argc, argv, &(calx_trainer_args_options){ __VA_ARGS__ }))
#define calx_trainer_args(options, argc, ...)    \
  CALX_TRAINER_ARGS_(options, argc, __VA_ARGS__, \
                     .size = sizeof(calx_trainer_args_options))
#define CALX_TRAINER_FROM_ARGS_(argc, argv, ...)   \
  (CALX_TRAINER_SITE_ calx_trainer_from_args_with( \
      argc, argv, CALX_WRITE_(calx_trainer_options, __VA_ARGS__)))
#define calx_trainer_from_args(argc, ...)    \
  CALX_TRAINER_FROM_ARGS_(argc, __VA_ARGS__, \
                          .size = sizeof(calx_trainer_options))
#endif
#endif
