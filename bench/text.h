// bench/text: a program of StableHLO text, with made-up arguments, on a client.
//
// The first line of a text that tools/make-models wrote tells the range of each
// argument's values:
//
//   // arguments: -0.5:0.5 0:10 1:1
//
// Floats lie in [least, most), integers and booleans are such numbers rounded
// down; complex numbers have both parts there. Without the line floats are in
// [0, 0.1) and integers in [0, 10).
#ifndef CX_BENCH_TEXT_H
#define CX_BENCH_TEXT_H

#include "hlo/module.h"
#include "pjrt/pjrt.h"

typedef struct bench_range {
  double least, most;
} bench_range;

typedef struct bench_text {
  char *text;
  size_t size;
  double parse_ms;
  cx_hlo_module *module;
  cx_pjrt_signature signature;
  cx_pjrt_shape *params, *results;
  bool *donated;
  int64_t *feeds;  // by parameter: the result that takes its memory; -1: none
  bench_range *ranges;
} bench_text;

// Ends the program over a file that is none.
void bench_text_read(const char *path, bench_text *out);
void bench_text_free(bench_text *p);

size_t bench_shape_elements(const cx_pjrt_shape *s);

// One program on one client. Arguments are the same on every client; a result
// that takes an argument's memory is the next step's argument.
typedef struct bench_run {
  const bench_text *program;
  cx_pjrt_client *client;
  cx_pjrt_executable *executable;
  cx_pjrt_buffer **args, **results;
  double compile_ms;
} bench_run;

calx_status *bench_run_open(const bench_text *p, cx_pjrt_client *client,
                            bench_run *out);
// Runs a step and waits for it; *out_ms is what both took. The results stay
// until bench_run_feed.
calx_status *bench_run_step(bench_run *r, double *out_ms);
void bench_run_feed(bench_run *r);
void bench_run_close(bench_run *r);

#endif
