// kernel/attention_plan: checks descriptions of attention, and makes the
// kernel.
#include "kernel/attention_plan.h"

#include <string.h>

#include "base/alloc.h"
#include "kernel/half.h"

// Floats of a strip, so that two of them stay in a core's cache.
#define STRIP_FLOATS 65536
#define MOST_STRIP_ROWS 60  // a multiple of the product's tiles
#define LEAST_STRIP_ROWS 6

// ---- checking ---------------------------------------------------------------

static int64_t rows_of(const cpu_kernel_attention_desc *d, int t)
{
  return t == CPU_KERNEL_ATTENTION_K || t == CPU_KERNEL_ATTENTION_V ||
                 t == CPU_KERNEL_ATTENTION_DK || t == CPU_KERNEL_ATTENTION_DV
             ? d->keys
             : d->rows;
}

// Adds to the offset of a tensor's last element; false: it is too large.
static bool reach(int64_t size, int64_t stride, int64_t *io_last)
{
  if (stride < 0 || stride >= CPU_KERNEL_MOST ||
      (size > 1 && stride > CPU_KERNEL_MOST / (size - 1))) {
    return false;
  }
  *io_last += stride * (size - 1);
  return *io_last < CPU_KERNEL_MOST;
}

// The elements from the first to the last one; -1: too many.
static int64_t extent(const cpu_kernel_attention_desc *d, int t)
{
  const cpu_kernel_attention_layout *l = &d->layout[t];
  int64_t last = 0;
  bool ok = reach(rows_of(d, t), l->row, &last) &&
            reach(cpu_kernel_attention_columns(d, t), l->column, &last);
  for (int64_t i = 0; ok && i < d->n_batch; i++) {
    ok = reach(d->batch[i], l->batch[i], &last);
  }
  return ok ? last + 1 : -1;
}

// All sizes are above 0 and their product is bounded.
static bool is_sound(const cpu_kernel_attention_desc *d, int64_t *batches)
{
  if (d->type != CX_HLO_F32 || d->backward < 0 || d->backward > 1 ||
      d->masking < 0 || d->masking >= CPU_KERNEL_ATTENTION_MASKINGS ||
      d->n_batch < 0 || d->n_batch > CPU_KERNEL_ATTENTION_DIMS) {
    return false;
  }
  int64_t bound = 1, n = 0;
  const int64_t sizes[4] = { d->rows, d->keys, d->width, d->value_width };
  if (!cpu_kernel_count(d->n_batch, d->batch, &bound, batches) ||
      !cpu_kernel_count(4, sizes, &bound, &n) || *batches == 0 || n == 0) {
    return false;
  }
  return d->masking == CPU_KERNEL_ATTENTION_NO_MASK ||
         d->layout[CPU_KERNEL_ATTENTION_MASK].column == 1;
}

size_t cpu_kernel_attention_sizes(const cpu_kernel_desc *desc,
                                  size_t sizes[CPU_KERNEL_BUFFERS])
{
  cpu_kernel_attention_desc d;
  memcpy(&d, desc, sizeof d);
  int64_t batches = 0;
  if (d.kind != CPU_KERNEL_ATTENTION || !is_sound(&d, &batches)) return 0;
  size_t count = 0;
  for (int t = 0; t < CPU_KERNEL_ATTENTION_TENSORS; t++) {
    if (!cpu_kernel_attention_has(&d, t)) continue;
    const size_t each = t != CPU_KERNEL_ATTENTION_MASK
                            ? cx_hlo_elem_bytes((cx_hlo_elem)d.type)
                        : d.masking == CPU_KERNEL_ATTENTION_ADD ? 4
                                                                : 1;
    const int64_t n = extent(&d, t);
    if (n < 0) return 0;
    sizes[count++] = (size_t)n * each;
  }
  return count;
}

double cpu_kernel_attention_flops(const cpu_kernel_desc *desc)
{
  const cpu_kernel_attention_desc *d =
      (const cpu_kernel_attention_desc *)desc->words;
  int64_t batches = 0;
  if (!is_sound(d, &batches)) return 0;
  const double each = 2 * (double)batches * (double)d->rows * (double)d->keys;
  const double width = (double)d->width, value = (double)d->value_width;
  return d->backward != 0 ? each * (3 * width + 2 * value)
                          : each * (width + value);
}

// ---- making -----------------------------------------------------------------

static float number(int64_t bits)
{
  return cpu_kernel_f32_from_bits((uint32_t)bits);
}

static int64_t round_up(int64_t n, int64_t to)
{
  return (n + to - 1) / to * to;
}

static void plan_scratch(cpu_kernel *kernel, cpu_kernel_attention_plan *p)
{
  const int64_t k = p->wide_keys, n = p->strip;
  const int64_t floats[CPU_KERNEL_ATTENTION_MATRICES] = {
    [CPU_KERNEL_ATTENTION_K_TURNED] = k * p->wide,
    [CPU_KERNEL_ATTENTION_V_DENSE] = k * p->wide_value,
    [CPU_KERNEL_ATTENTION_Q_ROWS] = n * p->wide,
    [CPU_KERNEL_ATTENTION_OUT_ROWS] = n * p->wide_value,
    [CPU_KERNEL_ATTENTION_SCORES] = n * k,
    [CPU_KERNEL_ATTENTION_ROW_SUMS] = 2 * n,
    [CPU_KERNEL_ATTENTION_K_DENSE] = k * p->wide,
    [CPU_KERNEL_ATTENTION_V_TURNED] = k * p->wide_value,
    [CPU_KERNEL_ATTENTION_GRADS] = n * k,
    [CPU_KERNEL_ATTENTION_DQ_ROWS] = n * p->wide,
    [CPU_KERNEL_ATTENTION_DK_DENSE] = k * p->wide,
    [CPU_KERNEL_ATTENTION_DV_DENSE] = k * p->wide_value,
  };
  const int used = p->d.backward != 0 ? CPU_KERNEL_ATTENTION_MATRICES
                                      : CPU_KERNEL_ATTENTION_K_DENSE + 1;
  int64_t total = 0;
  for (int i = 0; i < used; i++) {
    p->at[i] = (size_t)total;
    total += round_up(floats[i], CPU_KERNEL_ATTENTION_ROUND);
  }
  p->scratch_each = (size_t)total * sizeof(float);
  p->scratch_at =
      cpu_kernel_reserve(kernel, p->scratch_each * (size_t)kernel->threads);
}

static void plan_sizes(cpu_kernel_attention_plan *p, int threads)
{
  const cpu_kernel_attention_desc *d = &p->d;
  p->wide_keys = round_up(d->keys, CPU_KERNEL_ATTENTION_PANEL);
  p->wide = round_up(d->width, CPU_KERNEL_ATTENTION_ROUND);
  p->wide_value = round_up(d->value_width, CPU_KERNEL_ATTENTION_ROUND);
  int64_t rows = STRIP_FLOATS / p->wide_keys / LEAST_STRIP_ROWS;
  rows *= LEAST_STRIP_ROWS;
  p->strip = rows < LEAST_STRIP_ROWS  ? LEAST_STRIP_ROWS
             : rows > MOST_STRIP_ROWS ? MOST_STRIP_ROWS
                                      : rows;
  const int64_t strips = (d->rows + p->strip - 1) / p->strip;
  p->parts = 1;
  if (d->backward == 0 && p->batches < threads) {
    const int64_t wanted = (threads + p->batches - 1) / p->batches;
    p->parts = wanted < strips ? wanted : strips;
  }
  p->scale = number(d->scale);
  p->hidden = number(d->hidden);
  for (int i = 0; i < 4; i++) p->factor[i] = number(d->factor[i]);
}

calx_status *cpu_kernel_attention_new(cpu_kernel *kernel)
{
  cpu_kernel_attention_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, NULL, p, "attention");
  kernel->run_buffers = cpu_kernel_attention_run;
  memcpy(&p->d, &kernel->desc, sizeof p->d);
  kernel->n_buffers =
      (int)cpu_kernel_attention_sizes(&kernel->desc, kernel->bytes);
  if (kernel->n_buffers == 0 || !is_sound(&p->d, &p->batches)) {
    return cx_invalid("a description of an attention contradicts itself");
  }
  const int bytes = cpu_kernel_vector_bytes();
  p->loops = bytes == 64   ? &cpu_kernel_attention_64
             : bytes == 32 ? &cpu_kernel_attention_32
                           : &cpu_kernel_attention_16;
  plan_sizes(p, kernel->threads);
  plan_scratch(kernel, p);
  return NULL;
}
