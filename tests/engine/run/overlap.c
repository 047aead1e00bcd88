// Collectives that are begun and ended: what a program's bytes say of them is
// checked.
#include "lower/compile.h"
#include "run/layout.h"
#include "support/support.h"

// ---- programs ----

#define SUM(to, from)                                                   \
  to " = \"stablehlo.all_reduce\"(" from                                \
     ") <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n"    \
     "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"                        \
     "%z = stablehlo.add %x, %y : tensor<f32>\n"                        \
     "stablehlo.return %z : tensor<f32> }) : (tensor<256x256xf32>) -> " \
     "tensor<256x256xf32>\n"
#define PRODUCT(to, a, b)                 \
  to " = stablehlo.dot_general " a ", " b \
     ", contracting_dims = [1] x [0] : "  \
     "(tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>\n"

static const char text[] =
    "func.func @main(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> "
    "(tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>) {\n" SUM(
        "%s", "%a") PRODUCT("%p", "%a", "%b") SUM("%t", "%p")
        PRODUCT("%q", "%p", "%b") PRODUCT("%r", "%q", "%b")
    "return %s, %t, %r : tensor<256x256xf32>, tensor<256x256xf32>, "
    "tensor<256x256xf32> }";

static cpu_threads *pool;

typedef enum damage {
  NONE,
  END_FIRST,     // before anything is begun
  END_TWICE,     // one twice, the other never
  END_FAR,       // a number that nobody has
  BEGIN_NUMBER,  // not the next one
  NEVER_ENDED,
  END_SLOTS,
  BEGIN_INDEX,
  BEGIN_SLOTS,
  INSIDE,  // of another block than the entry's
  DAMAGES
} damage;

static cpu_run_step *find(cpu_run_program *p, cpu_run_step_kind kind,
                          size_t nth)
{
  for (size_t i = 0; i < p->n_steps; i++) {
    if (p->steps[i].kind == kind && nth-- == 0) return &p->steps[i];
  }
  fail_msg("no step %d", (int)kind);
  return NULL;
}

static void hurt(cpu_run_program *p, damage how)
{
  cpu_run_step *first = find(p, CPU_RUN_STEP_BEGIN, 0);
  switch (how) {
    case END_FIRST: {
      cpu_run_step *other = find(p, CPU_RUN_STEP_END, 0), was = *other;
      *other = *first;
      *first = was;
      break;
    }
    case END_TWICE:
      find(p, CPU_RUN_STEP_END, 1)->n = find(p, CPU_RUN_STEP_END, 0)->n;
      break;
    case END_FAR: find(p, CPU_RUN_STEP_END, 1)->n = UINT32_MAX; break;
    case BEGIN_NUMBER: first->n = 1; break;
    case NEVER_ENDED: p->blocks[0].n -= 2; break;
    case END_SLOTS: find(p, CPU_RUN_STEP_END, 0)->n_slots = 1; break;
    case BEGIN_INDEX: first->index = 77; break;
    case BEGIN_SLOTS: first->n_slots--; break;
    case INSIDE:
      p->blocks[1] = p->blocks[0];
      p->blocks[0].n = 0;
      p->n_blocks = 2;
      break;
    default: break;
  }
}

static void damaged(void **unused)
{
  (void)unused;
  for (damage how = NONE; how < DAMAGES; how++) {
    cpu_lower_compile_options options = { .n_replicas = 2, .threads = pool };
    cpu_run_program *p = NULL;
    CHECK_STATUS_OK(cpu_lower_compile(text, sizeof text - 1, &options, &p));
    assert_int_equal(cpu_run_program_info_of(p)->n_overlapped, 2);
    hurt(p, how);
    cx_text bytes = { 0 };
    CHECK_STATUS_OK(cpu_run_program_save(p, &bytes));
    cpu_run_program_free(p);
    calx_status *status =
        cpu_run_program_load(bytes.data, bytes.size, pool, &p);
    if (how == NONE) {
      CHECK_STATUS_OK(status);
      assert_int_equal(cpu_run_program_info_of(p)->n_overlapped, 2);
    } else {
      if (status == NULL) fail_msg("damage %d was not seen", (int)how);
      CHECK_STATUS(CALX_DATA_LOSS, status, "program");
    }
    cpu_run_program_free(p);
    cx_text_free(&bytes);
  }
}

int main(void)
{
  CHECK_STATUS_OK(cpu_threads_new(1, &pool));
  setenv("CALX_DETERMINISTIC", "1", 1);
  const struct CMUnitTest tests[] = { cmocka_unit_test(damaged) };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cpu_threads_free(pool);
  return failed;
}
