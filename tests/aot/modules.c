// What the tests and examples compiled, compiled again for a TPU and for a GPU
// that are not there: what calx emits must be more than what one compiler
// happens to accept. Children do it, since a compiler may abort.
//
// Left out are programs with f64, which a TPU has not, very large ones, and for
// the TPU those that multiply or convolve 64-bit integers, listed by name. Of
// programs that differ from one before in extents and numbers alone one of
// SAMPLE is compiled, and of the others one of NEW_SAMPLE: chosen by their
// hashes, so the same in every run. CALX_AOT_ALL=1 or CALX_TEST_LONG=1 compiles
// all, and large models.
//
//   test_aot_modules [PART PARTS]   one of so many parts, from 0
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "novelty.h"
#include "pjrt/pjrt.h"

enum { LARGEST = 200000 };
enum { SAMPLE = 32, NEW_SAMPLE = 16 };
enum { HASH_AT = 6, HASH_LENGTH = 12 };  // in 00001-0123456789ab.mlir

typedef struct list {
  char **names;
  size_t count, capacity;
} list;

// ---- which programs ---------------------------------------------------------

static int by_hash(const void *a, const void *b)
{
  return strcmp(*(char *const *)a + HASH_AT, *(char *const *)b + HASH_AT);
}

static list distinct_programs(void)
{
  list all = { 0 };
  DIR *folder = opendir(CX_DUMP_FOLDER);
  if (folder == NULL) return all;
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    if (strlen(e->d_name) != HASH_AT + HASH_LENGTH + 5) continue;
    assert_true(
        cx_grow(&all.names, &all.capacity, all.count + 1, sizeof *all.names));
    all.names[all.count++] = cx_strdup(e->d_name);
  }
  closedir(folder);
  if (all.count != 0) qsort(all.names, all.count, sizeof *all.names, by_hash);
  size_t kept = 0;
  for (size_t i = 0; i < all.count; i++) {
    bool again = kept != 0 && strcmp(all.names[kept - 1] + HASH_AT,
                                     all.names[i] + HASH_AT) == 0;
    if (again)
      cx_free(all.names[i]);
    else
      all.names[kept++] = all.names[i];
  }
  all.count = kept;
  return all;
}

static char *text_of(const char *name, size_t *out_size)
{
  char path[4096], *text;
  snprintf(path, sizeof path, "%s/%s", CX_DUMP_FOLDER, name);
  calx_status *status = cx_file_read(path, 0, &text, out_size);
  if (status != NULL) fail_msg("%s", calx_status_message(status));
  return text;
}

// Whether an operand of this operation holds 64-bit integers: the types stand
// after the last " : (" of its line.
static bool has_wide(const char *text, const char *operation)
{
  for (const char *p = text; (p = strstr(p, operation)) != NULL;) {
    const char *end = p + strcspn(p, "\n"), *types = p;
    for (const char *q = p; (q = strstr(q, " : (")) != NULL && q < end; q++) {
      types = q;
    }
    const char *wide = strstr(types, "i64>");
    if (wide != NULL && wide < end) return true;
    p = end;
  }
  return false;
}

static bool all_are_wanted(void)
{
  return getenv("CALX_AOT_ALL") != NULL || getenv("CALX_TEST_LONG") != NULL;
}

// Chains of thousands of ops test the core, not the compilers, which take
// minutes and gigabytes for them. The steps of large models, and the random
// values that these begin with, are compiled only where all programs are.
static bool too_large(const char *text)
{
  if (strlen(text) <= LARGEST) return false;
  bool is_model = strstr(text, "stablehlo.convolution") != NULL ||
                  strstr(text, "stablehlo.dot_general") != NULL ||
                  strstr(text, "stablehlo.rng_bit_generator") != NULL;
  return !is_model || !all_are_wanted();
}

static bool left_out(const char *name, const char *text, bool is_tpu)
{
  if (too_large(text)) {
    print_message("left out, larger than %d bytes: %s\n", LARGEST, name);
    return true;
  }
  if (strstr(text, "f64>") != NULL) return true;
  bool wide = is_tpu && (has_wide(text, "stablehlo.dot_general\"(") ||
                         has_wide(text, "stablehlo.convolution\"("));
  if (wide) print_message("left out, 64-bit integers: %s\n", name);
  return wide;
}

// ---- a child compiles from `first` on, a byte for each ----------------------

typedef struct target {
  const char *path;
  cx_pjrt_plugin *plugin;  // opened in the child: its threads do not fork
  bool is_tpu;
  cx_pjrt_option options[2];
  size_t n_options;
} target;

// How many devices the program is for: the module says it where they are many.
static int replicas_of(const char *text)
{
  static const char attribute[] = "mhlo.num_replicas = ";
  const char *at = strstr(text, attribute);
  return at == NULL ? 1 : (int)strtol(at + sizeof attribute - 1, NULL, 10);
}

static calx_status *compile(target *t, const char *text, size_t size)
{
  int replicas = replicas_of(text);
  cx_pjrt_compile_options options = { .num_replicas = replicas };
  const char *topology = "cuda";
  char devices[16];
  if (t->is_tpu) {  // as many chips as a slice of this kind has, at least
    topology = replicas <= 4 ? "v5e:2x2" : "v5e:2x4";
  } else {  // a GPU for each
    snprintf(devices, sizeof devices, "1x1x%d", replicas);
    t->options[1].string_value = devices;
  }
  return cx_pjrt_compile_for(t->plugin, topology, t->options, t->n_options,
                             text, size, &options, NULL, NULL, NULL);
}

static void child(target *t, const list *all, size_t first, int out)
{
  calx_status *opened = cx_pjrt_plugin_open(t->path, &t->plugin);
  if (opened != NULL) {
    fprintf(stderr, "%s\n", calx_status_message(opened));
    _exit(1);
  }
  for (size_t i = first; i < all->count; i++) {
    size_t size;
    char *text = text_of(all->names[i], &size);
    calx_status *status = compile(t, text, size);
    if (status != NULL) {
      fprintf(stderr, "REFUSED %s: %.600s\n", all->names[i],
              calx_status_message(status));
    }
    char answer = status == NULL ? 'k' : 'r';
    if (write(out, &answer, 1) != 1) _exit(1);
    cx_free(text);
  }
  _exit(0);
}

// Returns how many were compiled; reports the others.
static size_t compile_all(target *t, const list *all)
{
  size_t good = 0, next = 0;
  while (next < all->count) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
      close(ends[0]);
      child(t, all, next, ends[1]);
    }
    close(ends[1]);
    for (char c; read(ends[0], &c, 1) == 1; next++) good += c == 'k';
    close(ends[0]);
    int status;
    waitpid(pid, &status, 0);
    if (next < all->count) {
      print_message("CRASHED at %s: signal %d\n", all->names[next],
                    WIFSIGNALED(status) ? WTERMSIG(status) : 0);
      next++;
    }
  }
  return good;
}

static unsigned long long part = 0, parts = 1;  // what of the programs is ours

static unsigned long long hash_of(const char *name)
{
  return strtoull(name + HASH_AT, NULL, 16);
}

// The names of `all` whose programs are to be compiled; counts the others.
static list choose(const list *all, bool is_tpu, size_t *out_left_out,
                   size_t *out_sampled)
{
  list chosen = { .names = cx_alloc((all->count + 1) * sizeof(char *)) };
  seen_forms seen = { 0 };
  *out_left_out = *out_sampled = 0;
  for (size_t i = 0; i < all->count; i++) {
    size_t size;
    char *text = text_of(all->names[i], &size);
    if (left_out(all->names[i], text, is_tpu)) {
      ++*out_left_out;
      cx_free(text);
      continue;
    }
    const bool is_new = has_new_form(&seen, text, replicas_of(text));
    const unsigned long long hash = hash_of(all->names[i]);
    const unsigned every = is_new ? NEW_SAMPLE : SAMPLE;
    if (!all_are_wanted() && hash % every != 0) {
      ++*out_sampled;
    } else if (hash / SAMPLE / NEW_SAMPLE % parts == part) {
      chosen.names[chosen.count++] = all->names[i];
    }
    cx_free(text);
  }
  seen_forms_free(&seen);
  return chosen;
}

static void test_modules(void **state)
{
  (void)state;
  const char *path = getenv("CALX_PLUGIN");
  assert_non_null(path);
  target t = { .path = path, .is_tpu = strstr(path, "libtpu") != NULL };
  list all = distinct_programs();
  size_t n_left_out, n_sampled;
  list chosen = choose(&all, t.is_tpu, &n_left_out, &n_sampled);
  char *gpu = NULL;
  size_t gpu_size;
  if (!t.is_tpu) {
    assert_null(cx_file_read(CX_H200_TARGET, 0, &gpu, &gpu_size));
    t.options[0] = (cx_pjrt_option){ .name = "target_config",
                                     .type = CX_PJRT_STRING,
                                     .string_value = gpu };
    t.options[1] =
        (cx_pjrt_option){ .name = "topology", .type = CX_PJRT_STRING };
    t.n_options = 2;
  }
  size_t good = compile_all(&t, &chosen);
  print_message(
      "aot: part %llu of %llu of %zu distinct programs, of which %zu are left "
      "out, and %zu of which a fixed sample is compiled (CALX_AOT_ALL=1: all): "
      "%zu compiled "
      "for %s, %zu refused\n",
      part + 1, parts, all.count, n_left_out, n_sampled, good,
      t.is_tpu ? "v5e" : "an H200", chosen.count - good);
  assert_int_equal(good, chosen.count);
  // All other tests leave some 7,500 programs; a few would prove nothing.
  assert_true(all.count >= 5000);
  assert_true(chosen.count * parts >= all.count / 50);
  for (size_t i = 0; i < all.count; i++) cx_free(all.names[i]);
  cx_free(all.names);
  cx_free(chosen.names);
  cx_free(gpu);
}

int main(int argc, char **argv)
{
  if (argc == 3) {
    part = strtoull(argv[1], NULL, 10);
    parts = strtoull(argv[2], NULL, 10);
  }
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_modules) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
