// The numbers and words of the examples' command lines. Whatever is wrong ends
// the program with 2 and a line that names the option, its value and what is
// wanted.
#ifndef EXAMPLES_ARGS_H
#define EXAMPLES_ARGS_H

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

#endif
