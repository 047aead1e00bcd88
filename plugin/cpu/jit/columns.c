// jit/columns: loops over rows of a few columns, as of points, states of a
// system or quaternions. A lane is a row, and the code of each column stands in
// the loop. So it is known which piece of a concatenation and which slice a
// column comes of, and what a column is computed from is computed once for all
// of them. The rows behind the last whole vector are computed one by one.
#include "jit/nest.h"

#define MOST_OPS 1000   // of all columns
#define MOST_STORES 64  // of a row
#define MOST_ROWS 2048  // of an iteration

// The last run of dimensions is the columns of the rows in the run before it.
typedef struct columns {
  cpu_jit_env *env;
  const cpu_jit_work *w;
  int n, dims;        // of the columns
  cpu_jit_nest rows;  // the other runs
} columns;

// ---- where they help ----

static bool joins_columns(const cx_hlo_op *op, int64_t n)
{
  if (op->kind != CX_HLO_OP_CONCATENATE) return false;
  const cx_hlo_type *t = cpu_jit_type(&op->results[0]);
  int64_t inner = 1;
  for (size_t d = (size_t)cx_hlo_op_int(op, CX_HLO_A_DIMENSION); d < t->rank;
       d++) {
    inner *= t->dims[d];
  }
  return inner == n;
}

static bool help(const cpu_jit_env *env, const cpu_jit_kernel *k,
                 const columns *s)
{
  const cpu_jit_work *w = s->w;
  if (s->n < 2 || s->n > CPU_JIT_COLUMNS ||
      s->rows.inner < env->target->lanes ||
      (size_t)s->n * k->n_ops > MOST_OPS || (size_t)s->n * w->n > MOST_STORES) {
    return false;
  }
  for (size_t i = 0; i < w->n; i++) {
    if (cx_hlo_elem_is_complex(cpu_jit_type(w->values[i])->elem)) return false;
  }
  // Else the columns are the lanes of a vector.
  bool wanted = s->n < env->target->lanes / 2;
  for (size_t i = 0; i < k->n_ops; i++) {
    wanted |= joins_columns(k->ops[i], s->n);
  }
  return wanted;
}

// ---- the loops ----

static void row(columns *s, const cpu_jit_loc *outer, cpu_jit_ix at)
{
  cpu_jit_env *env = s->env;
  const int last = s->rows.n - 1, level = env->n_levels - 1;
  cpu_jit_val v[MOST_STORES];
  cpu_jit_loc p = *outer;
  cpu_jit_loc_push(&p, s->rows.dims[last], s->rows.inner, at);
  cpu_jit_loc_push(&p, s->dims, s->n, cpu_jit_ix_const(env, 0));
  for (int c = 0; c < s->n; c++) {
    p.part[p.n - 1].ix = cpu_jit_ix_const(env, c);
    const cpu_jit_loc *here = cpu_jit_loc_of(env, &p);
    for (size_t i = 0; i < s->w->n; i++) {
      v[i * (size_t)s->n + (size_t)c] =
          cpu_jit_emit(env, s->w->values[i], here);
    }
  }
  if (cpu_jit_failed(env)) return;
  p.part[p.n - 1].ix = cpu_jit_ix_const(env, 0);
  for (size_t i = 0; i < s->w->n; i++) {
    cpu_jit_store_columns(env, cpu_jit_buffer(env, s->w->buffer + i),
                          v + i * (size_t)s->n, s->n, &p, level);
  }
}

static void rows(columns *s, const cpu_jit_loc *outer, LLVMValueRef lo,
                 LLVMValueRef hi)
{
  cpu_jit_loop loop;
  const cpu_jit_ix at = cpu_jit_vectors_begin(s->env, &loop, lo, hi, NULL);
  row(s, outer, at);
  cpu_jit_loop_end(s->env, &loop, NULL);
}

// The rows [lo, hi), which are known at this level.
static void all_rows(columns *s, const cpu_jit_loc *outer, LLVMValueRef lo,
                     LLVMValueRef hi, int level)
{
  cpu_jit_env *env = s->env;
  const int lanes = env->lanes;
  LLVMValueRef end = cpu_jit_whole_end(env, lo, hi, level);
  rows(s, outer, lo, end);
  if (!s->rows.open && s->rows.inner % lanes == 0) return;
  cpu_jit_forget(env);
  env->lanes = 1;
  rows(s, outer, end, hi);
  env->lanes = lanes;
  cpu_jit_forget(env);
}

static void iterations(columns *s, int64_t extent)
{
  cpu_jit_env *env = s->env;
  cpu_jit_loop loop;
  cpu_jit_loc outer;
  const cpu_jit_ix iv = cpu_jit_iterations_begin(env, &loop, extent);
  const cpu_jit_ix start = cpu_jit_iteration(env, &s->rows, iv, extent, &outer);
  LLVMValueRef hi = cpu_jit_i64(env, s->rows.inner);
  if (s->rows.blocks > 1) {
    const cpu_jit_ix end = cpu_jit_ix_offset(env, start, s->rows.block);
    hi = cpu_jit_least(env, end.base, hi, end.level);
  }
  all_rows(s, &outer, start.base, hi, env->n_levels - 1);
  cpu_jit_loop_end(env, &loop, NULL);
}

static columns columns_of(cpu_jit_env *env, const cpu_jit_work *w,
                          const cx_hlo_type *t, uint32_t cuts)
{
  columns s = { .env = env, .w = w };
  cpu_jit_nest *r = &s.rows;
  r->n = cpu_jit_runs(t, cuts, r->dims, r->sizes);
  if (r->n < 2 || r->sizes[r->n - 1] > CPU_JIT_COLUMNS) return s;
  r->n--;
  s.n = (int)r->sizes[r->n];
  s.dims = r->dims[r->n];
  r->inner = r->sizes[r->n - 1];
  r->open = r->n == 1;
  cpu_jit_nest_block(r, MOST_ROWS);
  return s;
}

bool cpu_jit_columns(cpu_jit_env *env, cpu_jit_kernel *k, int phase,
                     const cpu_jit_work *w, const cx_hlo_type *t, uint32_t cuts)
{
  if (w->update != NULL || w->whole != NULL || w->in_place) return false;
  columns s = columns_of(env, w, t, cuts);
  const int64_t elements = cx_hlo_type_elements(t);
  if (elements == 0 || !help(env, k, &s)) return false;
  const int64_t extent = cpu_jit_nest_extent(&s.rows);
  const double each = (double)elements / (double)extent;
  cpu_jit_function_begin(env, k, phase, extent, cpu_jit_grain(env, each),
                         env->target->lanes);
  env->columns = s.n;
  if (s.rows.open) {
    const cpu_jit_loc none = { .n = 0 };
    all_rows(&s, &none, env->lo, env->hi, 0);
  } else {
    iterations(&s, extent);
  }
  env->columns = 0;
  cpu_jit_function_end(env);
  return true;
}
