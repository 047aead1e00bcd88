// The command lines of the trainer's examples: the trainer's options, then the
// example's own, which are those of args.h.
#ifndef EXAMPLES_TRAINER_OPTIONS_H
#define EXAMPLES_TRAINER_OPTIONS_H

#include <calx/calx.h>

#include "args.h"

static inline void trainer_options_read(int argc, char **argv,
                                        const char *usage,
                                        calx_trainer_options *options,
                                        arguments *a)
{
  calx_status *status = calx_trainer_args(options, &argc, argv);
  if (status != NULL) {
    calx_status_print(stderr, status);
    exit(2);
  }
  if (argc > 1 && strcmp(argv[1], "--help") == 0) {
    fputs(calx_trainer_args_help(), stdout);
  }
  args_read(argc, argv, usage, a);
}

// What the program returns: 21 where all went well and the result is not there.
static inline int trainer_exit_code(const calx_trainer *trainer,
                                    calx_status *status, bool is_reached)
{
  const int code = calx_trainer_exit_code(trainer);
  calx_status_print(stderr, status);
  if (status != NULL) return code != 0 ? code : 1;
  return is_reached ? 0 : 21;
}

#endif
