// fuzz/run_report: any bytes as the file of `calx report`, a run's numbers.
//
// What is read must bear everything that the command does with it: the advice
// and the page. What is refused must say why and leave nothing. Built with
// -fsanitize=fuzzer this is libFuzzer's entry; fuzz/idx_main.c runs it over a
// corpus without one.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cli/report.h"
#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

static void use(const cx_debug_run_data *run)
{
  cx_debug_advice advice[CX_DEBUG_ADVICE_ITEMS];
  cx_text page = { 0 };
  cx_debug_advise(run, advice);
  cx_cli_report_html(run, advice, "input", &page);
  check(!cx_text_failed(&page));
  cx_text_free(&page);
  cx_debug_advice_free(advice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static int fd = -1;
  static char path[32];
  if (fd < 0) {
    fd = memfd_create("input", MFD_CLOEXEC);
    check(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  check(ftruncate(fd, 0) == 0);
  check(pwrite(fd, data, size, 0) == (ssize_t)size);
  long blocks = cx_alloc_live();
  cx_debug_run_data run;
  calx_status *status = cx_cli_report_load(path, &run);
  if (status == NULL) {
    use(&run);
    cx_debug_run_free(&run);
  } else {
    check(*calx_status_message(status) != '\0');
    calx_status_free(status);
  }
  check(cx_alloc_live() == blocks);
  return 0;
}
