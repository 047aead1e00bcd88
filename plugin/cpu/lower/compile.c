// lower/compile: parses and verifies a program, runs the passes of opt, and
// then lowers it to steps or, with CALX_CPU_REF=1, to one step of the
// interpreter.
#include "lower/compile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "hlo/parse.h"
#include "hlo/print.h"
#include "hlo/verify.h"
#include "lower/lower.h"
#include "opt/edit.h"
#include "opt/opt.h"
#include "opt/passes.h"
#include "opt/shardy.h"
#include "spmd/spmd.h"

// Nanoseconds of a compilation after which no more kernels are measured.
#define MOST_MEASURED 1500000000

#define DEVICE_LIMIT (1 << 20)

bool cpu_lower_env_is(const char *name, const char *value)
{
  const char *text = cx_env_text(name);
  return text != NULL && strcmp(text, value) == 0;
}

static int64_t module_int(const cx_hlo_module *m, const char *name)
{
  for (size_t i = 0; i < m->attrs.n; i++) {
    const cx_hlo_attr *attr = m->attrs.items[i].attr;
    if (cx_hlo_str_equal(m->attrs.items[i].name, name) && attr != NULL &&
        attr->kind == CX_HLO_ATTR_INT) {
      return attr->as.integer;
    }
  }
  return 1;
}

static calx_status *count_devices(const cx_hlo_module *m, uint32_t asked,
                                  const char *name, uint32_t *out)
{
  int64_t n = asked != 0 ? (int64_t)asked : module_int(m, name);
  if (n < 1 || n > DEVICE_LIMIT) {
    return cx_invalid("%s: wants 1 to %d, found %" PRId64, name, DEVICE_LIMIT,
                      n);
  }
  *out = (uint32_t)n;
  return NULL;
}

// Checks those of all regions: the interpreter runs them also in a comparator
// of a sort or a body of a reduction.
static calx_status *check_collectives(cpu_lower_state *c)
{
  cpu_run_program_info *info = &c->a.program->info;
  for (const cx_hlo_func *f = c->module->first; f != NULL; f = f->next) {
    for (const cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
         op = cpu_opt_next(op)) {
      if (!cpu_opt_is_collective(op)) continue;
      info->has_collectives = true;
      CALX_TRY(cpu_coll_check(op, info->n_replicas, info->n_partitions));
    }
  }
  return NULL;
}

static calx_status *lower(cpu_lower_state *c,
                          const cpu_lower_compile_options *options)
{
  cpu_run_program *p = c->a.program;
  cx_hlo_func *entry = cx_hlo_entry(c->module);
  if (entry == NULL || entry->body.first == NULL) {
    return cx_error(
        CALX_INVALID_ARGUMENT,
        "the program has no function @main; only a single function may "
        "have another name");
  }
  CALX_TRY(cpu_lower_check_signature(entry));
  CALX_TRY(cpu_lower_assemble_signature(&c->a, entry));
  CALX_TRY(count_devices(c->module, options->n_replicas, "mhlo.num_replicas",
                         &p->info.n_replicas));
  CALX_TRY(count_devices(c->module, options->n_partitions,
                         "mhlo.num_partitions", &p->info.n_partitions));
  CALX_TRY(check_collectives(c));
  return c->interpret ? cpu_lower_interpret(c, entry)
                      : cpu_lower_run_passes(c, entry);
}

static calx_status *optimize(cpu_lower_state *c)
{
  cpu_opt_options opt = { .decompose_only = c->interpret,
                          .check = getenv("CALX_CPU_CHECK") != NULL };
  return cpu_opt_run(c->module, &opt);
}

// The sharding that is written for GSPMD, if its text begins so.
static const cx_hlo_attr *gspmd_sharding(const cx_hlo_named *items, size_t n,
                                         const char *start)
{
  const cx_hlo_attr *attr = cx_hlo_named_attr(items, n, "mhlo.sharding");
  const size_t size = strlen(start);
  const bool found = attr != NULL && attr->kind == CX_HLO_ATTR_STRING &&
                     attr->as.text.n >= size &&
                     memcmp(attr->as.text.s, start, size) == 0;
  return found ? attr : NULL;
}

// Whether a sharding for GSPMD gives a custom call to one device.
static bool has_single_call(const cx_hlo_module *m)
{
  for (const cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    for (const cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
         op = cpu_opt_next(op)) {
      if (op->kind == CX_HLO_OP_CUSTOM_CALL &&
          gspmd_sharding(op->extra, op->n_extra, "{maximal") != NULL) {
        return true;
      }
    }
  }
  return false;
}

// Refuses tensors that GSPMD would split: nothing here does.
static calx_status *check_whole(const char *what,
                                const cx_hlo_named_list *lists, size_t n)
{
  for (size_t i = 0; lists != NULL && i < n; i++) {
    const cx_hlo_attr *split =
        gspmd_sharding(lists[i].items, lists[i].n, "{devices=");
    if (split == NULL) continue;
    const int shown = split->as.text.n > 80 ? 80 : (int)split->as.text.n;
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s %zu of @main is split by mhlo.sharding = \"%.*s\", "
                    "GSPMD's; the engine follows Shardy's sdy.sharding only "
                    "(JAX: jax_use_shardy_partitioner=True)",
                    what, i, shown, split->as.text.s);
  }
  return NULL;
}

// A program with shardings becomes that of one of n devices.
static calx_status *partition(cpu_lower_state *c, uint32_t n,
                              const cpu_lower_compile_options *options)
{
  cx_hlo_module *m = c->module;
  bool changed = false;
  const cx_hlo_func *entry = cx_hlo_entry(m);
  if (entry == NULL) return NULL;
  if (!cx_spmd_has_mesh(m)) {
    if (n == 1) return NULL;
    CALX_TRY(check_whole("argument", entry->param_attrs, entry->n_params));
    CALX_TRY(check_whole("result", entry->result_attrs, entry->n_results));
    if (!has_single_call(m)) {
      // JAX asks for the shardings of a program of many partitions.
      if (options->shardings != NULL) {
        cx_spmd_write_whole(entry->n_params + entry->n_results,
                            options->shardings);
      }
      return NULL;
    }
  }
  if (options->n_replicas > 1) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "a program with shardings and %u replicas; one replica is "
                    "supported",
                    options->n_replicas);
  }
  CALX_TRY(cpu_opt_inline(m, &changed));
  cx_text unwanted = { 0 };
  calx_status *status = cx_spmd_partition(
      m, n, options->shardings == NULL ? &unwanted : options->shardings);
  cx_text_free(&unwanted);
  CALX_TRY(status);
  return cx_annotate(cx_hlo_verify(m), "after pass spmd");
}

// The program as StableHLO, in its last form before it becomes steps.
static calx_status *read(const char *text, size_t size,
                         const cpu_lower_compile_options *options,
                         cpu_lower_state *c)
{
  uint32_t n_partitions = 0;
  CALX_TRY(cx_hlo_parse(text, size, "-", &c->module));
  CALX_TRY(count_devices(c->module, options->n_partitions,
                         "mhlo.num_partitions", &n_partitions));
  if (n_partitions == 1) cpu_opt_shardy_drop(c->module);
  CALX_TRY(cx_hlo_verify(c->module));
  CALX_TRY(partition(c, n_partitions, options));
  return optimize(c);
}

static calx_status *make(const char *text, size_t size,
                         const cpu_lower_compile_options *options,
                         cpu_lower_state *c)
{
  CALX_TRY(read(text, size, options, c));
  CALX_TRY(cpu_run_program_new(c->module->name, &c->a.program));
  c->a.program->info.fingerprint = cx_hash_bytes(text, size, 0);
  CALX_TRY(lower(c, options));
  if (c->a.failed) return cx_out_of_memory();
  return cpu_run_program_finish(c->a.program, options->threads);
}

// Appends "name compiled library interpreted" to the file CALX_CPU_STATS.
static calx_status *write_stats(const cpu_run_program_info *info)
{
  const char *path = cx_env_text("CALX_CPU_STATS");
  if (path == NULL) return NULL;
  FILE *file = fopen(path, "a");
  if (file == NULL) {
    return cx_invalid("CALX_CPU_STATS: the file '%s' cannot be written", path);
  }
  fprintf(file, "%s %zu %zu %zu\n", info->name[0] == '\0' ? "-" : info->name,
          info->n_compiled, info->n_library, info->n_interpreted);
  fclose(file);
  return NULL;
}

calx_status *cpu_lower_compile(const char *text, size_t size,
                               const cpu_lower_compile_options *options,
                               cpu_run_program **out)
{
  *out = NULL;
  cpu_lower_state c = {
    .interpret = cpu_lower_env_is("CALX_CPU_REF", "1"),
    .threads = options->threads,
    .deterministic = cpu_lower_env_is("CALX_DETERMINISTIC", "1"),
    .most_measured =
        options->most_measured != 0 ? options->most_measured : MOST_MEASURED,
    .blocking = cpu_lower_env_is("CALX_COLLECTIVES", "blocking")
  };
  calx_status *status = make(text, size, options, &c);
  cx_hlo_module_free(c.module);
  cx_arena_free(&c.arena);
  if (status == NULL) status = write_stats(&c.a.program->info);
  if (status != NULL) {
    cpu_run_program_free(c.a.program);
    return status;
  }
  *out = c.a.program;
  return NULL;
}

calx_status *cpu_lower_optimized(const char *text, size_t size,
                                 const cpu_lower_compile_options *options,
                                 cx_text *out)
{
  cpu_lower_state c = { .interpret = cpu_lower_env_is("CALX_CPU_REF", "1") };
  cx_text shardings = { 0 };
  cpu_lower_compile_options with = *options;
  with.shardings = &shardings;
  calx_status *status = read(text, size, &with, &c);
  if (status == NULL) status = cx_spmd_attach(c.module, &shardings);
  if (status == NULL) cx_hlo_print(c.module, out);
  cx_text_free(&shardings);
  cx_hlo_module_free(c.module);
  if (status == NULL && cx_text_failed(out)) return cx_out_of_memory();
  return status;
}
