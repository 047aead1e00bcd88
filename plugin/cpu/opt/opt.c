// opt: the list of passes.
//
// First what makes a program of few kinds of operations, once; then what makes
// it small, in rounds until nothing changes or the rounds are used up (each is
// linear, and what a late round would still find is worth little).
#include "opt/opt.h"

#include "hlo/verify.h"
#include "opt/passes.h"

#define MOST_ROUNDS 4

typedef struct pass {
  const char *name;
  cx_opt_pass_fn *run;
  bool simple;  // for the interpreter, too
} pass;

static const pass once[] = {
  { "inline", cx_opt_inline, true },
  { "chlo", cx_opt_chlo, true },
  { "decompose", cx_opt_decompose, false },
};

static const pass rounds[] = {
  { "algebra", cx_opt_algebra, false }, { "shapes", cx_opt_shapes, false },
  { "fold", cx_opt_fold, false },       { "move", cx_opt_move, false },
  { "loops", cx_opt_loops, false },     { "cse", cx_opt_cse, false },
  { "dce", cx_opt_dce, false },
};

static calx_status *run_pass(cx_hlo_module *m, const pass *p,
                             const cx_opt_options *options, bool *changed)
{
  if (options->decompose_only && !p->simple) return NULL;
  bool here = false;
  calx_status *status = p->run(m, &here);
  if (status == NULL && here && options->check) {
    status = cx_hlo_verify(m);
    if (status != NULL) return cx_annotate(status, "after pass %s", p->name);
  }
  *changed = *changed || here;
  return status;
}

calx_status *cx_opt_run(cx_hlo_module *m, const cx_opt_options *options)
{
  bool changed = false;
  for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
    CALX_TRY(run_pass(m, &once[i], options, &changed));
  }
  for (int round = 0; round < MOST_ROUNDS; round++) {
    changed = false;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
      CALX_TRY(run_pass(m, &rounds[i], options, &changed));
    }
    if (!changed) break;
  }
  return NULL;
}
