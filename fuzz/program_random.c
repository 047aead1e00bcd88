// fuzz/program_random: random programs on everything that can run them.
//
//   test_program_random [--count N] [--seed S] [--plugin PATH] [--keep-going]
//                       [--only compiled|saved|given|interpreted|plugin]
//                       [--print]
//
// Each program of fuzz/program_gen runs through the interpreter, which is what
// the others are held against; through the engine as it compiles by default,
// once more after saving and loading; with arguments that are given away for
// results to lie in; through the engine when it interprets everything; and,
// every other one, on a plugin, where one is named (CALX_TEST_PLUGIN_CPU:
// XLA's, when it is installed). At the first difference it looks for the
// shortest beginning of the program that differs and prints it with its
// arguments.
//
// Programs run in a child process. Where the plugin ends it, as XLA's does by a
// failed check of its own, another child goes on with the next program.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "hlo/attr.h"
#include "hlo/bytecode_write.h"
#include "hlo/number.h"
#include "hlo/parse.h"
#include "hlo/print.h"
#include "long.h"
#include "lower/compile.h"
#include "pjrt/pjrt.h"
#include "program_gen.h"
#include "ref/ref.h"

enum { THREADS = 2, SHOWN = 5, MOST = 256, MOST_ENDED = 20 };

typedef enum engine {
  COMPILED,
  LOADED,
  GIVEN,
  INTERPRETED,
  PLUGIN,
  N_ENGINES
} engine;
static const char *const engine_names[] = { "compiled", "saved and loaded",
                                            "with arguments given away",
                                            "CALX_CPU_REF=1", "the plugin" };

static const char *const engine_words[] = { "compiled", "saved", "given",
                                            "interpreted", "plugin" };

typedef struct driver {
  const char *only;  // an engine's word; NULL: all
  bool print;
  cpu_threads *pool;
  cpu_run_context *context;
  cx_pjrt_client *client;  // NULL: no plugin
} driver;

// Shared by the processes.
static struct progress {
  uint64_t seed;  // of the program that runs
  bool in_plugin;
  long ran[N_ENGINES];
  long bad;
} * progress;

static void crashed(int number)
{
  char line[80];
  const int n = snprintf(line, sizeof line, "crashed (signal %d) at seed %ld\n",
                         number, (long)progress->seed);
  if (write(STDERR_FILENO, line, (size_t)n) < 0) _exit(2);
  signal(number, SIG_DFL);
  raise(number);
}

static void need(calx_status *status)
{
  if (status == NULL) return;
  fprintf(stderr, "%s\n", calx_status_message(status));
  exit(2);
}

// ---- results ----

static size_t bytes_of(const cx_hlo_type *t)
{
  return (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
}

typedef struct results {
  void *data[MOST];
  size_t n;
} results;

static void results_make(const cx_gen_program *p, results *out)
{
  out->n = p->n_results;
  for (size_t i = 0; i < out->n; i++) {
    const size_t size = (bytes_of(&p->results[i].type) + 64) / 64 * 64;
    out->data[i] = aligned_alloc(64, size);
    if (out->data[i] == NULL) abort();
    memset(out->data[i], 0xA5, size);
  }
}

static void results_free(results *r)
{
  for (size_t i = 0; i < r->n; i++) free(r->data[i]);
}

static double number_at(cx_hlo_elem e, const void *p)
{
  return cx_hlo_elem_is_float(e) ? cx_hlo_load_real(e, p)
                                 : (double)cx_hlo_load_int(e, p);
}

static bool agree(const cx_gen_result *r, const unsigned char *a,
                  const unsigned char *b)
{
  const size_t size = cx_hlo_elem_bytes(r->type.elem);
  if (memcmp(a, b, size) == 0) return true;
  if (!cx_hlo_elem_is_float(r->type.elem)) return false;
  const double x = number_at(r->type.elem, a), y = number_at(r->type.elem, b);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return x == y || fabs(x - y) <= 2 * r->error;
}

// How many elements differ; prints some.
static size_t differences(const cx_gen_program *p, const results *want,
                          const results *got, bool show, size_t *out_value)
{
  size_t n = 0;
  for (size_t i = 0; i < want->n; i++) {
    const cx_gen_result *r = &p->results[i];
    const size_t size = cx_hlo_elem_bytes(r->type.elem);
    const int64_t elements = cx_hlo_type_elements(&r->type);
    for (int64_t k = 0; k < elements; k++) {
      const unsigned char *a =
          (unsigned char *)want->data[i] + (size_t)k * size;
      const unsigned char *b = (unsigned char *)got->data[i] + (size_t)k * size;
      if (agree(r, a, b)) continue;
      if (n++ == 0) *out_value = r->value;
      if (!show || n > SHOWN) continue;
      printf(
          "  result %zu %s element %lld: %.17g, interpreter %.17g, apart by "
          "at most %g\n",
          i, cx_hlo_shape(&r->type).s, (long long)k, number_at(r->type.elem, b),
          number_at(r->type.elem, a), r->error);
    }
  }
  return n;
}

// ---- engines ----

static calx_status *run_ref(const cx_gen_program *p, results *out)
{
  cpu_ref_tensor args[MOST], to[MOST];
  for (size_t i = 0; i < p->n_params; i++) {
    args[i] = (cpu_ref_tensor){ p->params[i], p->args[i] };
  }
  for (size_t i = 0; i < p->n_results; i++) {
    to[i] = (cpu_ref_tensor){ p->results[i].type, out->data[i] };
  }
  const cpu_ref_context context = { 0 };
  return cpu_ref_run(p->module, cx_hlo_entry(p->module), args, to, &context);
}

static calx_status *reload(driver *d, cpu_run_program **program)
{
  cx_text bytes = { 0 };
  calx_status *status = cpu_run_program_save(*program, &bytes);
  cpu_run_program *again = NULL;
  if (status == NULL) {
    status = cpu_run_program_load(bytes.data, bytes.size, d->pool, &again);
  }
  cx_text_free(&bytes);
  cpu_run_program_free(*program);
  *program = again;
  return status;
}

// Runs it with copies of the arguments, of which some become results.
static calx_status *run_given(driver *d, const cpu_run_program *program,
                              const cx_gen_program *p, results *out)
{
  const cpu_run_program_info *info = cpu_run_program_info_of(program);
  void *args[MOST], *to[MOST];
  for (size_t i = 0; i < p->n_params; i++) {
    const size_t size = (bytes_of(&p->params[i]) + 64) / 64 * 64;
    args[i] = aligned_alloc(64, size);
    if (args[i] == NULL) abort();
    memcpy(args[i], p->args[i], bytes_of(&p->params[i]));
  }
  for (size_t i = 0; i < p->n_results; i++) {
    to[i] = info->alias[i] < 0 ? out->data[i] : args[info->alias[i]];
  }
  calx_status *status =
      cpu_run_program_run(program, d->context, NULL, args, to);
  for (size_t i = 0; i < p->n_results; i++) {
    if (to[i] == out->data[i]) continue;
    memcpy(out->data[i], to[i], bytes_of(&p->results[i].type));
  }
  for (size_t i = 0; i < p->n_params; i++) free(args[i]);
  return status;
}

// The program with all parameters given away.
static void print_given(const cx_gen_program *p, cx_text *out)
{
  cx_hlo_func *f = cx_hlo_entry(p->module);
  cx_hlo_named donor = { cx_hlo_str_copy(p->module, "jax.buffer_donor", 16),
                         cx_hlo_attr_bool(p->module, true) };
  cx_hlo_named_list lists[MOST];
  for (size_t i = 0; i < p->n_params; i++) {
    lists[i] = (cx_hlo_named_list){ &donor, 1 };
  }
  f->param_attrs = p->n_params == 0 ? NULL : lists;
  cx_hlo_print(p->module, out);
  f->param_attrs = NULL;
}

static calx_status *run_lowered(driver *d, engine e, const cx_gen_program *p,
                                const cx_text *text, results *out)
{
  const cpu_lower_compile_options options = { .n_replicas = 1,
                                              .n_partitions = 1,
                                              .threads = d->pool };
  cpu_run_program *program = NULL;
  if (e == INTERPRETED) setenv("CALX_CPU_REF", "1", 1);
  calx_status *status =
      cpu_lower_compile(text->data, text->size, &options, &program);
  unsetenv("CALX_CPU_REF");
  if (status == NULL && e == LOADED) status = reload(d, &program);
  if (status == NULL) {
    status = e == GIVEN ? run_given(d, program, p, out)
                        : cpu_run_program_run(program, d->context, NULL,
                                              p->args, out->data);
  }
  cpu_run_program_free(program);
  return status;
}

static bool shape_of(const cx_hlo_type *t, cx_pjrt_shape *out)
{
  return cx_pjrt_shape_make(cx_hlo_elem_dtype(t->elem), t->dims, t->rank, out);
}

static calx_status *run_buffers(driver *d, cx_pjrt_executable *e,
                                const cx_pjrt_shape *shapes,
                                const cx_gen_program *p, results *out)
{
  cx_pjrt_buffer *args[MOST] = { NULL }, *made[MOST] = { NULL };
  calx_status *status = NULL;
  for (size_t i = 0; i < p->n_params && status == NULL; i++) {
    status = cx_pjrt_buffer_from_host(d->client, 0, &shapes[i], p->args[i],
                                      CX_PJRT_COPY, NULL, NULL, &args[i]);
  }
  if (status == NULL) {
    status = cx_pjrt_execute(e, 0, args, p->n_params, made, NULL);
  }
  for (size_t i = 0; i < p->n_results && status == NULL; i++) {
    status = cx_pjrt_buffer_to_host(made[i], out->data[i],
                                    bytes_of(&p->results[i].type));
  }
  for (size_t i = 0; i < p->n_params; i++) cx_pjrt_buffer_release(args[i]);
  for (size_t i = 0; i < p->n_results; i++) cx_pjrt_buffer_release(made[i]);
  return status;
}

static calx_status *run_plugin(driver *d, const cx_gen_program *p,
                               const cx_text *text, results *out)
{
  cx_pjrt_shape params[MOST], to[MOST];
  for (size_t i = 0; i < p->n_params; i++) shape_of(&p->params[i], &params[i]);
  for (size_t i = 0; i < p->n_results; i++) {
    shape_of(&p->results[i].type, &to[i]);
  }
  const cx_pjrt_signature signature = { .params = params,
                                        .n_params = p->n_params,
                                        .results = to,
                                        .n_results = p->n_results };
  const cx_pjrt_compile_options options = { .num_replicas = 1 };
  cx_pjrt_executable *e = NULL;
  CALX_TRY(cx_pjrt_compile(d->client, text->data, text->size, &options,
                           &signature, &e));
  calx_status *status = run_buffers(d, e, params, p, out);
  cx_pjrt_executable_release(e);
  return status;
}

// ---- one program ----

// What XLA does otherwise is not in programs that its plugin is to run.
static bool portable(uint64_t seed)
{
  return seed % 2 == 0;
}

static bool wanted(const driver *d, engine e, uint64_t seed)
{
  if (d->only != NULL && strcmp(d->only, engine_words[e]) != 0) return false;
  return e != PLUGIN || (d->client != NULL && portable(seed));
}

static bool takes_bytecode(engine e, uint64_t seed)
{
  return e == INTERPRETED || (e == PLUGIN && seed % 4 == 0);
}

// The program as bytecode, through text and back: what is read from it is
// written to the same bytes. (Its text may lack what says a default.)
static calx_status *write_bytecode(const cx_gen_program *p, cx_text *out)
{
  cx_text text = { 0 }, again = { 0 };
  cx_hlo_module *from_text = NULL, *back = NULL;
  cx_hlo_print(p->module, &text);
  calx_status *status = cx_hlo_parse(text.data, text.size, "text", &from_text);
  if (status == NULL) status = cx_hlo_write_bytecode(from_text, out);
  if (status == NULL) {
    status = cx_hlo_parse(out->data, out->size, "bytecode", &back);
  }
  if (status == NULL) status = cx_hlo_write_bytecode(back, &again);
  if (status == NULL && (again.size != out->size ||
                         memcmp(again.data, out->data, again.size) != 0)) {
    status = cx_invalid("bytecode reads back as another program");
  }
  cx_hlo_module_free(from_text);
  cx_hlo_module_free(back);
  cx_text_free(&text);
  cx_text_free(&again);
  return status;
}

// The program in the form that the engine is to take.
static calx_status *write_program(engine e, const cx_gen_program *p,
                                  cx_text *out)
{
  if (takes_bytecode(e, progress->seed)) return write_bytecode(p, out);
  if (e == GIVEN) {
    print_given(p, out);
  } else {
    cx_hlo_print(p->module, out);
  }
  return NULL;
}

// Whether the engine agrees with the interpreter; *out_value: where it first
// does not.
static bool try_engine(driver *d, engine e, const cx_gen_program *p, bool show,
                       size_t *out_value)
{
  results want, got;
  cx_text text = { 0 };
  results_make(p, &want);
  results_make(p, &got);
  calx_status *status = write_program(e, p, &text);
  if (status == NULL) status = run_ref(p, &want);
  if (status == NULL) {
    progress->in_plugin = e == PLUGIN;
    status = e == PLUGIN ? run_plugin(d, p, &text, &got)
                         : run_lowered(d, e, p, &text, &got);
    progress->in_plugin = false;
  }
  bool right = status == NULL;
  if (right) {
    right = differences(p, &want, &got, show, out_value) == 0;
  } else {
    // Each value depends on those before it: the last one shows it.
    *out_value = p->results[p->n_results - 1].value;
    if (show) printf("  %s\n", calx_status_message(status));
  }
  calx_status_free(status);
  cx_text_free(&text);
  results_free(&want);
  results_free(&got);
  return right;
}

static void print_program(const cx_gen_program *p)
{
  cx_text text = { 0 };
  cx_hlo_print(p->module, &text);
  printf("%s\n", cx_text_str(&text));
  cx_text_clear(&text);
  for (size_t i = 0; i < p->n_params; i++) {
    const cx_hlo_type *t = &p->params[i];
    const size_t size = cx_hlo_elem_bytes(t->elem);
    cx_text_format(&text, "argument %d %s:", (int)i, cx_hlo_shape(t).s);
    for (int64_t k = 0; k < cx_hlo_type_elements(t); k++) {
      cx_text_char(&text, ' ');
      cx_hlo_print_element(&text, t->elem,
                           (unsigned char *)p->args[i] + (size_t)k * size);
    }
    cx_text_char(&text, '\n');
  }
  printf("%s", cx_text_str(&text));
  cx_text_free(&text);
}

// Whether the engine differs on this form of the program; prints it then.
static bool shows(driver *d, engine e, const cx_gen_options *options,
                  size_t *out_value)
{
  cx_gen_program p;
  need(cx_gen_program_new(options, &p));
  const bool right = try_engine(d, e, &p, false, out_value);
  if (!right && !options->all) {
    size_t value = 0;
    try_engine(d, e, &p, true, &value);
    printf("with %zu operations:\n", p.n_ops);
    print_program(&p);
  }
  cx_gen_program_free(&p);
  return !right;
}

// The shortest beginning whose values differ, and of that the one value. What
// differs only while others are not asked for is shown whole.
static void shrink(driver *d, engine e, uint64_t seed, size_t n_ops)
{
  size_t value = 0;
  cx_gen_options options = { .seed = seed,
                             .only = -1,
                             .portable = portable(seed) };
  for (size_t n = 1; n <= n_ops; n++) {
    options.n_ops = n;
    options.all = true;
    options.only = -1;
    if (!shows(d, e, &options, &value)) continue;
    options.all = false;
    options.only = (int64_t)value;
    if (shows(d, e, &options, &value)) return;
  }
  options.n_ops = n_ops;
  options.all = false;
  for (options.only = 0; options.only < MOST; options.only++) {
    if (shows(d, e, &options, &value)) return;
  }
  options.only = -1;
  shows(d, e, &options, &value);
}

static bool run_seed(driver *d, uint64_t seed)
{
  const cx_gen_options options = { .seed = seed,
                                   .only = -1,
                                   .portable = portable(seed) };
  cx_gen_program p;
  progress->seed = seed;
  need(cx_gen_program_new(&options, &p));
  if (d->print) print_program(&p);
  bool right = true;
  for (engine e = 0; e < N_ENGINES && right; e++) {
    if (!wanted(d, e, seed)) continue;
    size_t value = 0;
    if (try_engine(d, e, &p, false, &value)) {
      progress->ran[e]++;
      continue;
    }
    right = false;
    printf("seed %llu: %s differs from the interpreter\n",
           (unsigned long long)seed, engine_names[e]);
    try_engine(d, e, &p, true, &value);
    fflush(stdout);
    shrink(d, e, seed, p.n_ops);
    fflush(stdout);
  }
  cx_gen_program_free(&p);
  return right;
}

// ---- all ----

static void open_plugin(driver *d, const char *path)
{
  if (path == NULL) return;
  cx_pjrt_plugin *plugin = NULL;
  need(cx_pjrt_plugin_open(path, &plugin));
  need(cx_pjrt_client_open(plugin, NULL, &d->client));
}

typedef struct task {
  uint64_t seed, end;  // the programs [seed, end)
  const char *plugin;  // NULL: none
  bool keep_going;
} task;

static task read_arguments(int argc, char **argv, driver *d)
{
  long count = fuzz_times(100000, 500);
  task t = { .seed = 1, .plugin = getenv("CALX_TEST_PLUGIN_CPU") };
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--keep-going") == 0) {
      t.keep_going = true;
      continue;
    }
    if (strcmp(argv[i], "--print") == 0) {
      d->print = true;
      continue;
    }
    if (strcmp(argv[i], "--count") == 0) count = strtol(value, NULL, 10);
    if (strcmp(argv[i], "--seed") == 0) t.seed = strtoull(value, NULL, 10);
    if (strcmp(argv[i], "--plugin") == 0) t.plugin = value;
    if (strcmp(argv[i], "--only") == 0) d->only = value;
    i++;
  }
  t.end = t.seed + (uint64_t)count;
  return t;
}

// In the child: the programs from the task's first one on.
static void run_task(driver *d, const task *t)
{
  signal(SIGSEGV, crashed);
  signal(SIGFPE, crashed);
  signal(SIGABRT, crashed);
  need(cpu_threads_new(THREADS, &d->pool));
  need(cpu_run_context_new(d->pool, &d->context));
  open_plugin(d, t->plugin);
  for (uint64_t s = t->seed; s < t->end; s++) {
    if (progress->bad != 0 && !t->keep_going) break;
    progress->bad += !run_seed(d, s);
  }
  cx_pjrt_client_close(d->client);
  cpu_run_context_free(d->context);
  cpu_threads_free(d->pool);
}

int main(int argc, char **argv)
{
  driver d = { 0 };
  task t = read_arguments(argc, argv, &d);
  const uint64_t first = t.seed;
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) return 2;
  int status = 0, ended = 0;
  for (;;) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      run_task(&d, &t);
      fflush(stdout);
      _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    if (!WIFSIGNALED(status) || !progress->in_plugin) break;
    printf("seed %llu: the plugin ends the process\n",
           (unsigned long long)progress->seed);
    if (++ended > MOST_ENDED) break;
    progress->in_plugin = false;
    t.seed = progress->seed + 1;
  }
  for (engine e = 0; e < N_ENGINES; e++) {
    printf("%s: %ld programs agree\n", engine_names[e], progress->ran[e]);
  }
  printf("%ld of %llu programs differ%s; %d ended the plugin's process\n",
         progress->bad, (unsigned long long)(t.end - first),
         t.plugin == NULL ? "; no plugin to compare with" : "", ended);
  return status == 0 && progress->bad == 0 ? 0 : 1;
}
