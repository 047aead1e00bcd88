// cli/doctor_report: the text to paste into an issue: versions, the machine,
// what the checks found out, and the variables that matter, without secrets.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "calx/device.h"
#include "doctor.h"

extern char **environ;

#ifdef __clang__  // its version begins with its name
#define COMPILER "by"
#else
#define COMPILER "gcc"
#endif

// ---- the machine ------------------------------------------------------------

// The rest of the first line that begins so, without blanks and quotes around
// it; empty: there is none.
static void line_of(const char *text, const char *begin, char *out, size_t size)
{
  out[0] = '\0';
  for (const char *p = text; *p != '\0';) {
    size_t n = strcspn(p, "\n");
    if (strncmp(p, begin, strlen(begin)) == 0) {
      const char *value = p + strlen(begin);
      const char *end = p + n;
      value += strspn(value, " \t:=\"");
      while (end > value && strchr(" \t\"", end[-1]) != NULL) end--;
      if (end > value) cx_text_plain(value, (size_t)(end - value), out, size);
      return;
    }
    p += n + (p[n] == '\n');
  }
}

static void print_versions(const cx_cli_doctor_state *d)
{
  struct utsname system = { 0 };
  cx_text text = { 0 };
  char name[128] = "", libc[64] = "";
  confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc);
  printf("calx: %s (" COMPILER " %s, %s)\n", calx_version(), __VERSION__, libc);
  if (uname(&system) == 0) {
    printf("kernel: %s %s %s\n", system.sysname, system.release,
           system.machine);
  }
  if (cx_cli_doctor_read(d, "/etc/os-release", &text)) {
    line_of(cx_text_str(&text), "PRETTY_NAME", name, sizeof name);
  }
  printf("distribution: %s\n", name[0] != '\0' ? name : "not known");
  cx_text_free(&text);
}

// The vector instructions that the engine chooses by.
static void print_flags(const char *text)
{
  static const char *const wanted[] = {
    "avx",      "avx2",        "fma",         "f16c",     "avx512f", "avx512bw",
    "avx512vl", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"
  };
  char flags[8192];
  line_of(text, "flags", flags, sizeof flags);
  for (char *word = strtok(flags, " "); word != NULL;
       word = strtok(NULL, " ")) {
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
      if (strcmp(word, wanted[i]) == 0) printf(" %s", word);
    }
  }
}

static void print_processor(const cx_cli_doctor_state *d)
{
  cx_text text = { 0 };
  char name[128] = "";
  if (cx_cli_doctor_read(d, "/proc/cpuinfo", &text)) {
    line_of(cx_text_str(&text), "model name", name, sizeof name);
  }
  printf("processor: %s, %ld cores, %ld on line;",
         name[0] != '\0' ? name : "not known", sysconf(_SC_NPROCESSORS_CONF),
         sysconf(_SC_NPROCESSORS_ONLN));
  print_flags(cx_text_str(&text));
  putchar('\n');
  cx_text_free(&text);
}

// ---- variables --------------------------------------------------------------

static bool is_relevant(const char *name)
{
  static const char *const begins[] = {
    "CALX_",      "PJRT_",        "TPU_",
    "XLA_",       "XRT_",         "PT_XLA_",
    "LIBTPU",     "CLOUD_TPU",    "COLAB_TPU",
    "CPU_NUM",    "GPU_NUM",      "CUDA_",
    "NVIDIA_",    "MASTER_",      "RANK",
    "WORLD_SIZE", "LOCAL_RANK",   "LOCAL_WORLD_SIZE",
    "GROUP_RANK", "LD_",          "OMP_",
    "UCX_",       "NCCL_",        "SLURM_PROCID",
    "SLURM_STEP", "SLURM_NODEID", "OMPI_COMM_",
    "PMI_",       "PMIX_RANK",    "ALLOW_MULTIPLE_LIBTPU",
    "TF_CPP_",    "MALLOC_"
  };
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
  }
  return false;
}

static bool is_secret(const char *name)
{
  static const char *const parts[] = { "TOKEN", "SECRET",     "PASS",
                                       "KEY",   "CREDENTIAL", "AUTH" };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (strstr(name, parts[i]) != NULL) return true;
  }
  return false;
}

// Without what stands before the '@' of an address: user and password.
static void append_value(cx_text *out, const char *value)
{
  for (const char *p; (p = strstr(value, "://")) != NULL;) {
    cx_text_append_n(out, value, (size_t)(p + 3 - value));
    value = p + 3;
    size_t host = strcspn(value, "/ ,");
    for (size_t i = host; i-- > 0;) {
      if (value[i] != '@') continue;
      cx_text_append(out, "…");
      value += i;
      break;
    }
  }
  cx_text_append(out, value);
}

static void print_variable(const char *variable)
{
  char name[128], plain[1024];
  size_t n = strcspn(variable, "=");
  if (variable[n] == '\0' || n >= sizeof name) return;
  cx_text_plain(variable, n, name, sizeof name);
  if (!is_relevant(name)) return;
  if (is_secret(name)) {
    printf("  %s is set\n", name);
    return;
  }
  cx_text value = { 0 };
  append_value(&value, variable + n + 1);
  cx_text_plain(cx_text_str(&value), value.size, plain, sizeof plain);
  printf("  %s=%s\n", name, plain);
  cx_text_free(&value);
}

static int compare(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_variables(void)
{
  size_t n = 0;
  for (char **v = environ; v != NULL && *v != NULL; v++) n++;
  char **sorted = cx_calloc(n + 1, sizeof *sorted);
  if (sorted == NULL) return;
  if (n > 0) memcpy(sorted, environ, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, compare);
  puts("environment:");
  for (size_t i = 0; i < n; i++) print_variable(sorted[i]);
  cx_free(sorted);
}

void cx_cli_doctor_report(cx_cli_doctor_state *d)
{
  puts("\n---- report, for an issue ----");
  print_versions(d);
  print_processor(d);
  fputs(cx_text_str(&d->facts), stdout);
  print_variables();
  printf("findings: %d wrong\n", d->wrong);
  puts("---- end of the report ----");
}
