// cli/doctor_names: the variables that calx reads, and what each may hold. The
// test cli_doctor compares them with the sources.
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "doctor_names.h"

#define NUMBER(name, least, most)          \
  {                                        \
    name, CX_CLI_NUMBER, least, most, NULL \
  }
#define SECONDS(name, least)             \
  {                                      \
    name, CX_CLI_SECONDS, least, 0, NULL \
  }
#define WORDS(name, words)          \
  {                                 \
    name, CX_CLI_WORDS, 0, 0, words \
  }
#define TEXT(name)               \
  {                              \
    name, CX_CLI_ANY, 0, 0, NULL \
  }

static const cx_cli_variable variables[] = {
  TEXT("CALX_CACHE_DIR"),
  { "CALX_CACHE_SIZE", CX_CLI_BYTES, 0, 0, NULL },
  NUMBER("CALX_CACHE_WAIT_S", 0, INT64_MAX),
  WORDS("CALX_COLLECTIVES", "blocking"),
  SECONDS("CALX_COLLECTIVE_TIMEOUT_S", 1),
  TEXT("CALX_CPU_CHECK"),
  WORDS("CALX_CPU_LANES", "4,8,16"),
  { "CALX_CPU_LIBRARY", CX_CLI_FILE, 0, 0, NULL },
  WORDS("CALX_CPU_REF", "0,1"),
  TEXT("CALX_CPU_STATS"),
  NUMBER("CALX_CPU_THREADS", 1, 4096),
  { "CALX_DEBUG", CX_CLI_WORD_LIST, 0, 0,
    "handles,indices,donation,nan,trap,anomaly" },
  TEXT("CALX_DEBUG_FILE"),
  NUMBER("CALX_DEBUG_LEVEL", 0, INT64_MAX),
  WORDS("CALX_DETERMINISTIC", "0,1"),
  TEXT("CALX_DUMP"),
  NUMBER("CALX_EAGER", 0, INT64_MAX),
  SECONDS("CALX_HEARTBEAT_S", 0),
  { "CALX_JIT", CX_CLI_FILE, 0, 0, NULL },
  TEXT("CALX_JOB"),
  SECONDS("CALX_JOIN_TIMEOUT_S", 1),
  TEXT("CALX_LAUNCH"),
  NUMBER("CALX_LOCAL_RANK", 0, 1 << 20),
  NUMBER("CALX_LOCAL_WORLD", 1, 1 << 20),
  NUMBER("CALX_MAX_STEPS_IN_FLIGHT", 1, INT64_MAX),
  TEXT("CALX_METRICS_FILE"),
  TEXT("CALX_METRICS_PERCENTILES"),
  NUMBER("CALX_METRICS_SAMPLES", 1, INT64_MAX),
  TEXT("CALX_MNIST_MIRROR"),
  WORDS("CALX_MPI", "mpich,openmpi"),
  NUMBER("CALX_NNODES", 1, 1 << 16),
  NUMBER("CALX_NODE_RANK", 0, 1 << 16),
  NUMBER("CALX_PENDING_LIMIT", 0, INT64_MAX),
  TEXT("CALX_PLUGIN"),
  { "CALX_PLUGIN_DIR", CX_CLI_FILE, 0, 0, NULL },
  NUMBER("CALX_PMI_FD", 0, 1 << 20),
  NUMBER("CALX_PORT", 0, 65535),
  NUMBER("CALX_PROCESSES", 1, 4096),
  TEXT("CALX_PROFILE"),
  NUMBER("CALX_PROGRAM_LIMIT", 1, INT64_MAX),
  TEXT("CALX_QUIET"),
  NUMBER("CALX_RANK", 0, 1 << 20),
  WORDS("CALX_RECOMPILE", "error"),
  TEXT("CALX_REPORT"),
  NUMBER("CALX_RESTART", 0, INT64_MAX),
  NUMBER("CALX_SEGMENT_FD", 0, 1 << 20),
  TEXT("CALX_SSH"),
  TEXT("CALX_STORE"),
  TEXT("CALX_TOKEN"),
  NUMBER("CALX_WORLD", 1, 1 << 20),
  NUMBER("CPU_NUM_DEVICES", 1, 4096),
  TEXT("MASTER_ADDR"),
  NUMBER("MASTER_PORT", 0, 65534),
  TEXT("PJRT_DEVICE"),
  TEXT("PJRT_NAMES_AND_LIBRARY_PATHS"),
  { "TPU_LIBRARY_PATH", CX_CLI_FILE, 0, 0, NULL },
};

// Of the trainer's flags, of the tests, of the benchmarks.
static const char *const prefixes[] = {
  "CALX_TRAINER_", "CALX_TEST_",  "CALX_BENCH_",
  "CALX_AOT_ALL",  "CALX_SHARED", "CALX_REQUIRE_ENGINES"
};

const cx_cli_variable *cx_cli_variable_at(size_t i)
{
  return i < sizeof variables / sizeof *variables ? &variables[i] : NULL;
}

bool cx_cli_variable_is_known(const char *name)
{
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    if (strcmp(variables[i].name, name) == 0) return true;
  }
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
  }
  return false;
}

// ---- names that look alike --------------------------------------------------

enum { MOST_NAME = 64 };

static size_t least_of(size_t a, size_t b)
{
  return a < b ? a : b;
}

// Edits that make one of the other: a letter more, less, other, or two in the
// other order; MOST_NAME for long names.
static size_t distance(const char *a, const char *b)
{
  size_t n = strlen(a), m = strlen(b);
  size_t rows[3][MOST_NAME + 1];  // of a's prefixes, by their size % 3
  if (n > MOST_NAME || m > MOST_NAME) return MOST_NAME;
  for (size_t j = 0; j <= m; j++) rows[0][j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t *now = rows[i % 3];
    const size_t *last = rows[(i - 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
      now[j] = least_of(last[j - 1] + same, least_of(last[j], now[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = least_of(now[j], rows[(i - 2) % 3][j - 2] + 1);
      }
    }
  }
  return rows[n % 3][m];
}

const char *cx_cli_variable_nearest(const char *name)
{
  const char *nearest = NULL;
  // A third of the letters, without the prefix that all have.
  size_t size = strlen(name);
  size_t best = (size > 5 ? size - 5 : 1) / 3 + 1;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    size_t d = distance(name, variables[i].name);
    if (d > 0 && d < best) {
      best = d;
      nearest = variables[i].name;
    }
  }
  return nearest;
}

// ---- values -----------------------------------------------------------------

// Whether the word is one of a list with commas between.
static bool is_among(const char *list, const char *word, size_t n)
{
  for (const char *p = list; *p != '\0';) {
    size_t size = strcspn(p, ",");
    if (size == n && strncmp(p, word, n) == 0) return true;
    p += size + (p[size] == ',');
  }
  return false;
}

// Names with commas between, or numbers.
static bool is_word_list(const char *value, const char *words)
{
  for (const char *p = value; *p != '\0';) {
    size_t n = strcspn(p, ",");
    bool number = strspn(p, "0123456789") >= n;
    if (!number && !is_among(words, p, n)) return false;
    p += n + (p[n] == ',');
  }
  return true;
}

// "500M", "2G".
static bool is_bytes(const char *value)
{
  size_t n = strspn(value, "0123456789");
  return n > 0 && (value[n] == '\0' ||
                   (strchr("KMG", value[n]) != NULL && value[n + 1] == '\0'));
}

static bool is_seconds(const char *value, double least)
{
  char *end;
  double seconds = strtod(value, &end);
  bool enough = seconds > 0 || (least == 0 && seconds == 0);
  return end != value && *end == '\0' && enough && seconds < 1e9;
}

bool cx_cli_variable_takes(const cx_cli_variable *v, const char *value)
{
  int64_t number;
  switch (v->kind) {
    case CX_CLI_NUMBER: return cx_read_int(value, v->least, v->most, &number);
    case CX_CLI_SECONDS: return is_seconds(value, (double)v->least);
    case CX_CLI_BYTES: return is_bytes(value);
    case CX_CLI_WORDS: return is_among(v->words, value, strlen(value));
    case CX_CLI_WORD_LIST: return is_word_list(value, v->words);
    default: return true;
  }
}
