// lower/compile: a program's way: parse, verify, opt, and then either plan and
// compile or, with CALX_CPU_REF=1, interpret.
#include "lower/compile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hlo/parse.h"
#include "hlo/print.h"
#include "hlo/verify.h"
#include "lower/lower.h"
#include "opt/edit.h"
#include "opt/opt.h"

#define DEVICE_LIMIT (1 << 20)

bool cpu_lower_is_set(const char *name)
{
  const char *value = getenv(name);
  return value != NULL && strcmp(value, "1") == 0;
}

bool cpu_lower_is_blocking(void)
{
  const char *value = getenv("CALX_COLLECTIVES");
  return value != NULL && strcmp(value, "blocking") == 0;
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
    return cx_error(CALX_INVALID_ARGUMENT, "%s: wants 1 to %d, found %" PRId64,
                    name, DEVICE_LIMIT, n);
  }
  *out = (uint32_t)n;
  return NULL;
}

// All of the module: the interpreter runs those of any region too, of a sort's
// comparator or a reduction's body.
static calx_status *see_collectives(cpu_lower_compilation *l)
{
  cpu_run_program_info *info = &l->a.program->info;
  for (const cx_hlo_func *f = l->module->first; f != NULL; f = f->next) {
    for (const cx_hlo_op *op = cpu_opt_first(f->body.first); op != NULL;
         op = cpu_opt_next(op)) {
      if (!cpu_lower_is_collective(op)) continue;
      info->has_collectives = true;
      CALX_TRY(cpu_coll_check(op, info->n_replicas, info->n_partitions));
    }
  }
  return NULL;
}

static calx_status *compile(cpu_lower_compilation *l,
                            const cpu_lower_compile_options *options)
{
  cpu_run_program *p = l->a.program;
  cx_hlo_func *entry = cx_hlo_entry(l->module);
  if (entry == NULL || entry->body.first == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the program has no function @main, nor only one");
  }
  CALX_TRY(cpu_lower_check_signature(entry));
  CALX_TRY(cpu_lower_assemble_signature(&l->a, entry));
  CALX_TRY(count_devices(l->module, options->n_replicas, "mhlo.num_replicas",
                         &p->info.n_replicas));
  CALX_TRY(count_devices(l->module, options->n_partitions,
                         "mhlo.num_partitions", &p->info.n_partitions));
  CALX_TRY(see_collectives(l));
  return l->interpret ? cpu_lower_interpret(l, entry)
                      : cpu_lower_plan(l, entry);
}

static calx_status *run_passes(cpu_lower_compilation *l)
{
  cpu_opt_options opt = { .decompose_only = l->interpret,
                          .check = getenv("CALX_CPU_CHECK") != NULL };
  return cpu_opt_run(l->module, &opt);
}

static calx_status *make(const char *text, size_t size,
                         const cpu_lower_compile_options *options,
                         cpu_lower_compilation *l)
{
  CALX_TRY(cx_hlo_parse(text, size, "-", &l->module));
  CALX_TRY(cx_hlo_verify(l->module));
  CALX_TRY(run_passes(l));
  CALX_TRY(cpu_run_program_new(l->module->name, &l->a.program));
  l->a.program->info.fingerprint = cx_hash_bytes(text, size, 0);
  CALX_TRY(compile(l, options));
  if (l->a.failed) return cx_out_of_memory();
  return cpu_run_program_finish(l->a.program, options->pool);
}

calx_status *cpu_lower_compile(const char *text, size_t size,
                               const cpu_lower_compile_options *options,
                               cpu_run_program **out)
{
  *out = NULL;
  cpu_lower_compilation l = { .interpret = cpu_lower_is_set("CALX_CPU_REF"),
                              .pool = options->pool,
                              .deterministic =
                                  cpu_lower_is_set("CALX_DETERMINISTIC"),
                              .blocking = cpu_lower_is_blocking() };
  calx_status *status = make(text, size, options, &l);
  cx_hlo_module_free(l.module);
  cx_arena_free(&l.arena);
  if (status == NULL) status = cpu_lower_count(&l);
  if (status != NULL) {
    cpu_run_program_free(l.a.program);
    return status;
  }
  *out = l.a.program;
  return NULL;
}
