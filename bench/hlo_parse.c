// bench/hlo_parse: how fast programs are read.
//
//   hlo_parse FILE...
//
// Each file as it is, as the printer writes it, and as bytecode: megabytes a
// second of processor time, the median of several rounds. And how fast the
// bytecode is written.
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "hlo/bytecode_write.h"
#include "hlo/parse.h"
#include "hlo/print.h"
#include "measure.h"

enum { ROUNDS = 21 };

static void print_line(const char *name, const char *how, size_t size,
                       double ms)
{
  printf("%-32s %-8s %10zu bytes %9.3f ms %7.0f MB/s\n", name, how, size, ms,
         (double)size / 1e3 / ms);
}

// Leaves the last module.
static cx_hlo_module *measure(const char *name, const char *how,
                              const char *text, size_t size)
{
  static bench_series series;
  cx_hlo_module *m = NULL;
  series.count = 0;
  for (int i = 0; i < ROUNDS; i++) {
    cx_hlo_module_free(m);
    const double before = bench_cpu_ms();
    bench_need(cx_hlo_parse(text, size, name, &m));
    bench_add(&series, bench_cpu_ms() - before);
  }
  print_line(name, how, size, bench_median(&series));
  return m;
}

static void measure_writing(const char *name, const cx_hlo_module *m,
                            cx_text *out)
{
  static bench_series series;
  series.count = 0;
  for (int i = 0; i < ROUNDS; i++) {
    cx_text_clear(out);
    const double before = bench_cpu_ms();
    bench_need(cx_hlo_write_bytecode(m, out));
    bench_add(&series, bench_cpu_ms() - before);
  }
  print_line(name, "written", out->size, bench_median(&series));
}

int main(int argc, char **argv)
{
  static const char usage[] = "hlo_parse FILE...";
  if (argc < 2 || argv[1][0] == '-') {
    static const char *const names[] = { NULL };
    bench_check_options(argc, argv, names, usage);
    fprintf(stderr, "usage: %s\n", usage);
    return 2;
  }
  for (int i = 1; i < argc; i++) {
    char *text = NULL;
    size_t size = 0;
    bench_need(cx_file_read(argv[i], 0, &text, &size));
    cx_hlo_module *m = measure(argv[i], "as it is", text, size);
    cx_text printed = { 0 };
    cx_hlo_print(m, &printed);
    cx_hlo_module_free(m);
    m = measure(argv[i], "printed", cx_text_str(&printed), printed.size);
    cx_text bytes = { 0 };
    measure_writing(argv[i], m, &bytes);
    cx_hlo_module_free(m);
    cx_hlo_module_free(measure(argv[i], "bytecode", bytes.data, bytes.size));
    cx_text_free(&bytes);
    cx_text_free(&printed);
    cx_free(text);
  }
  return 0;
}
