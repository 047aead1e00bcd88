// kernel/matmul: see matmul.h.
#include "kernel/matmul.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/alloc.h"
#include "kernel/gemm.h"
#include "kernel/primitive.h"
#include "kernel/tiles.h"

enum { A, B, C, N_TENSORS };

struct cpu_kernel_matmul {
  cpu_kernel_matmul_shape shape;
  bool tiles;  // tiles.h computes it, else oneDNN
  const cpu_kernel_onednn *dnnl;
  cpu_kernel_primitive product;
  dnnl_memory_desc_t md[N_TENSORS];
};

// ---- AMX --------------------------------------------------------------------

#if defined(__x86_64__)
// Bits of the processor's leaf 7, and of the state that the system keeps.
#define AMX_BF16 (1u << 22)
#define AMX_TILE (1u << 24)
#define AMX_STATES (3u << 17)
// A process has to ask for the memory of its tiles.
#define REQUEST_STATE 0x1023
#define TILE_DATA 18

static bool may_use_tiles(void)
{
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & AMX_BF16) == 0 ||
      (d & AMX_TILE) == 0 || !__builtin_cpu_supports("avx512bf16") ||
      cpu_kernel_vector_bytes() != 64) {
    return false;
  }
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & AMX_STATES) == AMX_STATES &&
         syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}
#endif

bool cpu_kernel_has_tiles(void)
{
#if defined(__x86_64__)
  enum { UNKNOWN, NO, YES };
  static _Atomic int known;  // threads that come at the same time find the same
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found == UNKNOWN) {
    found = may_use_tiles() ? YES : NO;
    atomic_store_explicit(&known, found, memory_order_relaxed);
  }
  return found == YES;
#else
  return false;
#endif
}

// Fewer rows do not pay for packing the right operand, unless that is small:
// oneDNN is faster with 64 to 256 rows of [768, 3072], by up to 1.6 times, and
// slower with 64 of [256, 256] and with 512 of most sizes (decision 045).
#define TILES_ROWS 512
#define TILES_FEW_ROWS 64
#define TILES_SMALL (1 << 16)  // elements of the right operand
#define TILES_COLUMNS 16

static bool suits_tiles(const cpu_kernel_matmul_shape *s)
{
  if (s->n < TILES_COLUMNS || !cpu_kernel_has_tiles()) return false;
  const bool small = s->k <= TILES_SMALL / s->n;
  return s->m >= (small ? TILES_FEW_ROWS : TILES_ROWS);
}

// ---- one product ------------------------------------------------------------

static bool describe(cpu_kernel_matmul *x, const cpu_kernel_matmul_shape *s)
{
  const dnnl_dims_t size[N_TENSORS] = { { s->m, s->k },
                                        { s->k, s->n },
                                        { s->m, s->n } };
  const dnnl_dims_t stride[N_TENSORS] = { { s->a_row, s->a_column },
                                          { s->b_row, s->b_column },
                                          { s->ldc, 1 } };
  for (int i = 0; i < N_TENSORS; i++) {
    const dnnl_data_type_t type = i == C && s->wide ? dnnl_f32 : dnnl_bf16;
    if (x->dnnl->memory_desc_init_by_strides(&x->md[i], 2, size[i], type,
                                             stride[i]) != dnnl_success) {
      return false;
    }
  }
  return true;
}

// Every implementation but the reference uses the instructions.
static bool make(cpu_kernel_matmul *x)
{
  const cpu_kernel_onednn *d = x->dnnl;
  dnnl_matmul_desc_t operation;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr = cpu_kernel_primitive_attr(d);
  bool made = attr != NULL &&
              d->matmul_desc_init(&operation, &x->md[A], &x->md[B], NULL,
                                  &x->md[C]) == dnnl_success &&
              d->primitive_desc_create(&pd, &operation, attr, d->engine,
                                       NULL) == dnnl_success;
  if (made) {
    x->product = (cpu_kernel_primitive){
      .n = N_TENSORS,
      .names = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
      .md = { &x->md[A], &x->md[B], &x->md[C] },
      .scratch = cpu_kernel_primitive_scratch(d, pd)
    };
    made = strstr(cpu_kernel_primitive_name(d, pd), "ref") == NULL &&
           d->primitive_create(&x->product.p, pd) == dnnl_success;
  }
  if (pd != NULL) (void)d->primitive_desc_destroy(pd);
  if (attr != NULL) (void)d->primitive_attr_destroy(attr);
  return made;
}

cpu_kernel_matmul *cpu_kernel_matmul_new(const cpu_kernel_matmul_shape *shape,
                                         cpu_threads *pool)
{
  const bool tiles = suits_tiles(shape);
  const cpu_kernel_onednn *d = tiles ? NULL : cpu_kernel_onednn_get();
  if (!tiles && d == NULL) return NULL;
  cpu_kernel_matmul *x = cx_calloc(1, sizeof *x);
  if (x == NULL) return NULL;
  *x = (cpu_kernel_matmul){ .shape = *shape, .tiles = tiles, .dnnl = d };
  if (tiles) return x;
  cpu_kernel_onednn_enter(d, pool);
  const bool made = describe(x, shape) && make(x);
  cpu_kernel_onednn_leave(d);
  if (made) return x;
  cpu_kernel_matmul_free(x);
  return NULL;
}

void cpu_kernel_matmul_free(cpu_kernel_matmul *m)
{
  if (m == NULL) return;
  if (m->product.p != NULL) (void)m->dnnl->primitive_destroy(m->product.p);
  cx_free(m);
}

size_t cpu_kernel_matmul_scratch(const cpu_kernel_matmul *m)
{
  if (m->tiles) return cpu_kernel_tiles_scratch(&m->shape);
  return (m->product.scratch + 63) / 64 * 64;
}

calx_status *cpu_kernel_matmul_ready(const cpu_kernel_matmul *m,
                                     const char *name, cpu_threads *pool)
{
  return m->tiles ? NULL : cpu_kernel_primitive_ready(m->dnnl, name, pool);
}

bool cpu_kernel_matmul_run(const cpu_kernel_matmul *m, cpu_threads *pool,
                           const void *a, const void *b, void *c, void *scratch)
{
  if (m->tiles) {
    cpu_kernel_tiles_run(&m->shape, pool, a, b, c, scratch);
    return true;
  }
  // oneDNN takes its operands by pointers without const.
  void *const at[N_TENSORS] = { (void *)(uintptr_t)a, (void *)(uintptr_t)b, c };
  cpu_kernel_onednn_enter(m->dnnl, pool);
  const dnnl_status_t s =
      cpu_kernel_primitive_run(m->dnnl, &m->product, at, scratch);
  cpu_kernel_onednn_leave(m->dnnl);
  return s == dnnl_success;
}

// ---- the faster way ---------------------------------------------------------

// Rows, columns and inner elements of the product that is timed, and how often.
#define TIMED 256
#define RUNS 4
#define ALIGN 64

static bool has_instructions(void)
{
#if defined(__x86_64__)
  __builtin_cpu_init();
  return cpu_kernel_vector_bytes() == 64 &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

static int64_t now_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct native_trial {
  const cpu_kernel_matmul *matmul;
  unsigned char *a, *b, *c, *scratch;
} native_trial;

// False: oneDNN has failed.
static bool run_trial(const native_trial *t, bool widened)
{
  if (!widened) {
    return cpu_kernel_matmul_run(t->matmul, NULL, t->a, t->b, t->c, t->scratch);
  }
  const cpu_kernel_gemm g = { .m = TIMED,
                              .n = TIMED,
                              .k = TIMED,
                              .a = t->a,
                              .b = t->b,
                              .a_row = TIMED,
                              .a_column = 1,
                              .b_row = TIMED,
                              .b_column = 1,
                              .c = t->c,
                              .ldc = TIMED };
  cpu_kernel_gemm_run(CPU_KERNEL_F32, &g, t->scratch);
  return true;
}

// The way with the shorter least time, in alternating runs.
static int64_t faster(const native_trial *t)
{
  int64_t least[2] = { INT64_MAX, INT64_MAX };
  for (int i = 0; i < 2 * RUNS; i++) {
    const int64_t start = now_ns();
    if (!run_trial(t, i % 2 == 1)) return CPU_KERNEL_BF16_WIDENED;
    const int64_t took = now_ns() - start;
    if (took < least[i % 2]) least[i % 2] = took;
  }
  return least[0] < least[1] ? CPU_KERNEL_BF16_NATIVE : CPU_KERNEL_BF16_WIDENED;
}

// Undecided: memory is short.
static int64_t measure(void)
{
  static const cpu_kernel_matmul_shape shape = { .m = TIMED,
                                                 .n = TIMED,
                                                 .k = TIMED,
                                                 .a_row = TIMED,
                                                 .a_column = 1,
                                                 .b_row = TIMED,
                                                 .b_column = 1,
                                                 .ldc = TIMED,
                                                 .wide = true };
  const size_t bytes = (size_t)TIMED * TIMED * sizeof(float);
  cpu_kernel_matmul *matmul = cpu_kernel_matmul_new(&shape, NULL);
  if (matmul == NULL) return CPU_KERNEL_BF16_WIDENED;
  size_t scratch = cpu_kernel_gemm_panels(CPU_KERNEL_F32, TIMED, TIMED, TIMED);
  const size_t native = cpu_kernel_matmul_scratch(matmul);
  if (native > scratch) scratch = native;
  unsigned char *memory = cx_calloc(1, 3 * bytes + scratch + ALIGN);
  int64_t choice = CPU_KERNEL_BF16_UNDECIDED;
  if (memory != NULL) {
    unsigned char *at = memory + (ALIGN - (uintptr_t)memory % ALIGN) % ALIGN;
    const native_trial t = { matmul, at, at + bytes, at + 2 * bytes,
                             at + 3 * bytes };
    choice = faster(&t);
  }
  cx_free(memory);
  cpu_kernel_matmul_free(matmul);
  return choice;
}

int64_t cpu_kernel_bf16_choose(bool may_measure)
{
  if (!has_instructions()) return CPU_KERNEL_BF16_WIDENED;
  if (!may_measure) return CPU_KERNEL_BF16_NATIVE;
  static _Atomic int64_t found;
  int64_t known = atomic_load(&found);
  if (known != CPU_KERNEL_BF16_UNDECIDED) return known;
  const int64_t choice = measure();
  // Of threads that come at the same time the first decides.
  return atomic_compare_exchange_strong(&found, &known, choice) ? choice
                                                                : known;
}
