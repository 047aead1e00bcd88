// The command lines of the examples. Whatever is wrong ends the program with 2
// and a line that names the option, its value and what is wanted.
#ifndef EXAMPLES_ARGS_H
#define EXAMPLES_ARGS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The value of the option that getopt_long found last, a whole number.
static inline int64_t arg_count(char **argv, const char *name, int64_t least,
                                int64_t most)
{
  char *end;
  errno = 0;
  long long n = strtoll(optarg, &end, 10);
  if (errno == 0 && end != optarg && *end == '\0' && n >= least && n <= most) {
    return n;
  }
  fprintf(stderr,
          "%s: --%s wants a whole number from %lld to %lld, found '%s'\n",
          argv[0], name, (long long)least, (long long)most, optarg);
  exit(2);
}

static inline double arg_number(char **argv, const char *name, double most)
{
  char *end;
  double x = strtod(optarg, &end);
  if (end != optarg && *end == '\0' && x >= 0 && x <= most) return x;
  fprintf(stderr, "%s: --%s wants a number from 0 to %g, found '%s'\n", argv[0],
          name, most, optarg);
  exit(2);
}

// After the last option: nothing may be left.
static inline void arg_end(int argc, char **argv)
{
  if (optind == argc) return;
  fprintf(stderr, "%s: '%s' is no option; see %s --help\n", argv[0],
          argv[optind], argv[0]);
  exit(2);
}

// The options that examples share. An example sets what it begins with.
typedef struct arguments {
  const char *data, *weights, *save, *model, *prompt;
  int64_t epochs, batch_size, seed, steps, image_size, folds;
  double lr, target;
  bool fake_data, bf16, no_dropout;
} arguments;

static inline void args_take(char **argv, int option, arguments *a)
{
  switch (option) {
    case 'd': a->data = optarg; break;
    case 'w': a->weights = optarg; break;
    case 'f': a->save = optarg; break;
    case 'm': a->model = optarg; break;
    case 'o': a->prompt = optarg; break;
    case 'e': a->epochs = arg_count(argv, "epochs", 1, 1000000); break;
    case 'b': a->batch_size = arg_count(argv, "batch-size", 1, 1 << 20); break;
    case 's': a->seed = arg_count(argv, "seed", 0, INT64_MAX); break;
    case 'n': a->steps = arg_count(argv, "steps", 1, 1000000000); break;
    case 'i': a->image_size = arg_count(argv, "image-size", 32, 4096); break;
    case 'l': a->lr = arg_number(argv, "lr", 1e30); break;
    case 't': a->target = arg_number(argv, "target", 100); break;
    case 'c': a->folds = arg_count(argv, "folds", 1, 5); break;
    case 'x': a->bf16 = true; break;
    case 'p': a->no_dropout = true; break;
    default: a->fake_data = true;
  }
}

// Reads the options whose names the usage text holds as "[--name".
static inline void args_read(int argc, char **argv, const char *usage,
                             arguments *a)
{
  static const struct option known[] = {
    { "data", 1, 0, 'd' },       { "weights", 1, 0, 'w' },
    { "save", 1, 0, 'f' },       { "model", 1, 0, 'm' },
    { "epochs", 1, 0, 'e' },     { "batch-size", 1, 0, 'b' },
    { "seed", 1, 0, 's' },       { "steps", 1, 0, 'n' },
    { "image-size", 1, 0, 'i' }, { "lr", 1, 0, 'l' },
    { "target", 1, 0, 't' },     { "no_dropout", 0, 0, 'p' },
    { "folds", 1, 0, 'c' },      { "prompt", 1, 0, 'o' },
    { "fake_data", 0, 0, 'k' },  { "bf16", 0, 0, 'x' },
  };
  enum { KNOWN = sizeof known / sizeof *known };
  struct option names[KNOWN + 2] = { { "help", 0, 0, 'h' } };
  for (int k = 0, n = 1; k < KNOWN; k++) {
    char word[32];
    snprintf(word, sizeof word, "[--%s", known[k].name);
    const char *at = strstr(usage, word);
    if (at != NULL && strchr(" ]", at[strlen(word)]) != NULL) {
      names[n++] = known[k];
    }
  }
  for (int o; (o = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    if (o == 'h' || o == '?') puts(usage), exit(o == 'h' ? 0 : 2);
    args_take(argv, o, a);
  }
  arg_end(argc, argv);
}

#endif
