// kernel/conv_onednn: f32 convolutions (bf16 and f16 widened) on oneDNN.
//
// A StableHLO convolution may be any of oneDNN's three: forward; with a dilated
// input, the gradient by the input of a convolution of that stride; with a
// dilated kernel and batch and features exchanged, the gradient by the weights.
// conv_form.c finds which ones it can be. Each may run in several layouts: the
// operands as they are in memory, channels last, or what oneDNN prefers, with
// copies inside the kernel. oneDNN's `any` is not always the fastest, so
// candidates are timed when the program may take time for that; else
// conv_onednn_rules.c decides. oneDNN's reference implementations are never
// used.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernel/conv.h"
#include "kernel/conv_onednn.h"
#include "kernel/primitive.h"

// The tensors by oneDNN's names.
enum { SRC, WEIGHTS, DST, N_TENSORS };

typedef struct onednn_plan {
  const cpu_kernel_onednn *dnnl;
  cpu_kernel_conv_desc d;
  cpu_kernel_conv_form form;
  cpu_kernel_primitive conv;
  dnnl_memory_desc_t given[N_TENSORS], used[N_TENSORS];
  cpu_kernel_primitive reorder[N_TENSORS];  // in or out; p NULL: none
  // Operands that are widened or reversed first, and a result that is rounded.
  bool gathered[2], stored;
  cpu_kernel_view view[2];
  size_t gathered_at[2], stored_at;
  size_t used_at[N_TENSORS], scratch_at;
  // Equal parts of the images, whose results are added.
  int64_t parts;
  size_t part_bytes[N_TENSORS];  // from a part of the images to the next one
  size_t part_at, part_floats;   // the result of a part: in scratch; its size
} onednn_plan;

static void free_plan(void *user)
{
  onednn_plan *p = user;
  if (p->conv.p != NULL) (void)p->dnnl->primitive_destroy(p->conv.p);
  for (int t = 0; t < N_TENSORS; t++) {
    if (p->reorder[t].p != NULL) {
      (void)p->dnnl->primitive_destroy(p->reorder[t].p);
    }
  }
  cx_free(p);
}

// ---- making -----------------------------------------------------------------

// The tensors of images become those of a part.
static void divide_images(onednn_plan *p)
{
  p->parts = cpu_kernel_onednn_parts(&p->form);
  if (p->parts == 1) return;
  for (int t = 0; t < N_TENSORS; t++) {
    if (t == WEIGHTS) continue;
    cpu_kernel_conv_tensor *images = &p->form.tensors[t];
    images->size[0] /= p->parts;
    p->part_bytes[t] =
        (size_t)(images->size[0] * images->stride[0]) * sizeof(float);
  }
}

static bool describe_given(onednn_plan *p)
{
  for (int i = 0; i < N_TENSORS; i++) {
    const cpu_kernel_conv_tensor *t = &p->form.tensors[i];
    if (p->dnnl->memory_desc_init_by_strides(
            &p->given[i], t->n, t->size, dnnl_f32, t->stride) != dnnl_success) {
      return false;
    }
  }
  return true;
}

static bool describe_wanted(const onednn_plan *p, cpu_kernel_onednn_layout l,
                            dnnl_memory_desc_t wanted[N_TENSORS])
{
  static const dnnl_format_tag_t last[] = { dnnl_nwc, dnnl_nhwc, dnnl_ndhwc };
  for (int i = 0; i < N_TENSORS; i++) {
    const cpu_kernel_conv_tensor *t = &p->form.tensors[i];
    bool weights = i == WEIGHTS;
    if (l == CPU_KERNEL_ONEDNN_ALL_GIVEN ||
        (l == CPU_KERNEL_ONEDNN_AS_GIVEN && !weights)) {
      wanted[i] = p->given[i];
      continue;
    }
    dnnl_format_tag_t tag = l == CPU_KERNEL_ONEDNN_LAST && !weights
                                ? last[t->n - 3]
                                : dnnl_format_tag_any;
    if (p->dnnl->memory_desc_init_by_tag(&wanted[i], t->n, t->size, dnnl_f32,
                                         tag) != dnnl_success) {
      return false;
    }
  }
  return true;
}

static bool is_good(const onednn_plan *p, const char *name)
{
  if (strstr(name, "ref") != NULL) return false;
  const cpu_kernel_conv_form *f = &p->form;
  bool depthwise = f->groups > 1 && f->weights.size[2] == 1;
  return !depthwise || strstr(name, "gemm") == NULL;
}

static bool init_operation(const onednn_plan *p, dnnl_alg_kind_t algorithm,
                           const dnnl_memory_desc_t w[N_TENSORS],
                           cpu_kernel_conv_kind kind,
                           dnnl_convolution_desc_t *out)
{
  const cpu_kernel_conv_form *f = &p->form;
  const cpu_kernel_onednn *d = p->dnnl;
  dnnl_dims_t dilation;
  for (int i = 0; i < f->n; i++) dilation[i] = f->dilation[i] - 1;
  dnnl_status_t s;
  if (kind == CPU_KERNEL_CONV_FORWARD) {
    s = d->dilated_convolution_forward_desc_init(
        out, dnnl_forward_training, algorithm, &w[SRC], &w[WEIGHTS], NULL,
        &w[DST], f->stride, dilation, f->low, f->high);
  } else if (kind == CPU_KERNEL_CONV_INPUT) {
    s = d->dilated_convolution_backward_data_desc_init(
        out, algorithm, &w[SRC], &w[WEIGHTS], &w[DST], f->stride, dilation,
        f->low, f->high);
  } else {
    s = d->dilated_convolution_backward_weights_desc_init(
        out, algorithm, &w[SRC], &w[WEIGHTS], NULL, &w[DST], f->stride,
        dilation, f->low, f->high);
  }
  return s == dnnl_success;
}

// The arguments of the convolution, in the layouts that it uses.
static void set_arguments(onednn_plan *p, dnnl_primitive_desc_t made)
{
  static const struct {
    dnnl_query_t query[N_TENSORS];
    int name[N_TENSORS];
  } arguments[CPU_KERNEL_CONV_FORMS] = {
    { { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
      { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST } },
    { { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md },
      { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST } },
    { { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md },
      { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST } },
  };
  p->conv.scratch = cpu_kernel_primitive_scratch(p->dnnl, made);
  p->conv.n = N_TENSORS;
  for (int t = 0; t < N_TENSORS; t++) {
    p->used[t] = *p->dnnl->primitive_desc_query_md(
        made, arguments[p->form.kind].query[t], 0);
    p->conv.md[t] = &p->used[t];
    p->conv.names[t] = arguments[p->form.kind].name[t];
  }
}

// Makes the convolution's primitive.
static bool make_conv(onednn_plan *p, cpu_kernel_onednn_layout l,
                      dnnl_primitive_attr_t attr, char *name, size_t name_bytes)
{
  const cpu_kernel_onednn *d = p->dnnl;
  const cpu_kernel_conv_kind kind = p->form.kind;
  const dnnl_alg_kind_t algorithm = l == CPU_KERNEL_ONEDNN_WINOGRAD
                                        ? dnnl_convolution_winograd
                                        : dnnl_convolution_direct;
  dnnl_memory_desc_t wanted[N_TENSORS];
  dnnl_convolution_desc_t forward, operation;
  dnnl_primitive_desc_t hint = NULL, pd = NULL;
  bool made =
      describe_wanted(p, l, wanted) &&
      init_operation(p, algorithm, wanted, CPU_KERNEL_CONV_FORWARD, &forward) &&
      d->primitive_desc_create(&hint, &forward, attr, d->engine, NULL) ==
          dnnl_success;
  if (made && kind != CPU_KERNEL_CONV_FORWARD) {
    made = init_operation(p, algorithm, wanted, kind, &operation) &&
           d->primitive_desc_create(&pd, &operation, attr, d->engine, hint) ==
               dnnl_success;
  }
  dnnl_primitive_desc_t it = pd != NULL ? pd : hint;
  const char *implementation = "ref";
  if (made) {
    implementation = cpu_kernel_primitive_name(d, it);
    made = is_good(p, implementation) &&
           d->primitive_create(&p->conv.p, it) == dnnl_success;
  }
  if (made) {
    snprintf(name, name_bytes, "%s", implementation);
    set_arguments(p, it);
  }
  if (pd != NULL) (void)d->primitive_desc_destroy(pd);
  if (hint != NULL) (void)d->primitive_desc_destroy(hint);
  return made;
}

static bool make_reorder(onednn_plan *p, int t, bool is_result,
                         dnnl_primitive_attr_t attr)
{
  const cpu_kernel_onednn *d = p->dnnl;
  if (d->memory_desc_equal(&p->given[t], &p->used[t])) return true;
  cpu_kernel_primitive *x = &p->reorder[t];
  const dnnl_memory_desc_t *from = is_result ? &p->used[t] : &p->given[t];
  const dnnl_memory_desc_t *to = is_result ? &p->given[t] : &p->used[t];
  dnnl_primitive_desc_t pd = NULL;
  if (d->reorder_primitive_desc_create(&pd, from, d->engine, to, d->engine,
                                       attr) != dnnl_success) {
    return false;
  }
  *x = (cpu_kernel_primitive){ .n = 2,
                               .names = { DNNL_ARG_FROM, DNNL_ARG_TO },
                               .md = { from, to },
                               .scratch = cpu_kernel_primitive_scratch(d, pd) };
  bool made = d->primitive_create(&x->p, pd) == dnnl_success;
  (void)d->primitive_desc_destroy(pd);
  return made;
}

// An operand is converted to f32 in its own order, with the kernel's taps
// reversed if the form says so.
static void plan_gathers(onednn_plan *p)
{
  const cpu_kernel_conv_desc *d = &p->d;
  for (int i = 0; i < 2; i++) {
    const bool turned = i == 1 && p->form.turned;
    p->gathered[i] = d->types[i] != CX_HLO_F32 || turned;
    if (!p->gathered[i]) continue;
    p->view[i].type = (cx_hlo_elem)d->types[i];
    cpu_kernel_conv_view_in_order(d, i, turned ? &p->form : NULL, &p->view[i]);
  }
  p->stored = d->types[2] != CX_HLO_F32;
}

static void plan_scratch(cpu_kernel *kernel, onednn_plan *p)
{
  const cpu_kernel_onednn *d = p->dnnl;
  const int *role = cpu_kernel_conv_roles[p->form.kind];
  kernel->scratch = 0;
  for (int i = 0; i < 2; i++) {
    if (!p->gathered[i]) continue;
    const int t = role[i];
    p->gathered_at[i] = cpu_kernel_reserve(
        kernel, d->memory_desc_get_size(&p->given[t]) +
                    (size_t)(p->parts - 1) * p->part_bytes[t]);
  }
  if (p->stored) {
    p->stored_at =
        cpu_kernel_reserve(kernel, d->memory_desc_get_size(&p->given[role[2]]));
  }
  size_t scratch = p->conv.scratch;
  for (int t = 0; t < N_TENSORS; t++) {
    if (p->reorder[t].p == NULL) continue;
    p->used_at[t] =
        cpu_kernel_reserve(kernel, d->memory_desc_get_size(&p->used[t]));
    if (p->reorder[t].scratch > scratch) scratch = p->reorder[t].scratch;
  }
  p->scratch_at = cpu_kernel_reserve(kernel, scratch);
  if (p->parts == 1) return;
  const size_t bytes = d->memory_desc_get_size(&p->used[WEIGHTS]);
  p->part_floats = bytes / sizeof(float);
  p->part_at = cpu_kernel_reserve(kernel, bytes);
}

// oneDNN's threads wait for each other, and one may have to be woken. So what
// takes some 20 us, copies of tensors included, stays on one thread.
#define SPREAD_FLOPS 2e6
#define SPREAD_BYTES 262144

// NULL: the caller alone.
static cpu_threads *threads_for(const cpu_kernel *kernel, cpu_threads *pool)
{
  size_t bytes = 0;
  for (int i = 0; i < N_TENSORS; i++) bytes += kernel->bytes[i];
  const bool is_long = cpu_kernel_conv_flops(&kernel->conv) >= SPREAD_FLOPS ||
                       bytes >= SPREAD_BYTES;
  return is_long ? pool : NULL;
}

// ---- running ----------------------------------------------------------------

// One part of the images, whose operands are copied to `used` where oneDNN
// wants another layout.
static dnnl_status_t run_part(const onednn_plan *p, int64_t part,
                              void *const given[N_TENSORS],
                              void *used[N_TENSORS], void *pad)
{
  const int result = cpu_kernel_conv_roles[p->form.kind][2];
  dnnl_status_t s = dnnl_success;
  for (int t = 0; t < N_TENSORS && s == dnnl_success; t++) {
    if (t == result) continue;
    unsigned char *from = given[t];
    from += (size_t)part * p->part_bytes[t];
    if (p->reorder[t].p == NULL) {
      used[t] = from;
    } else {
      void *const at[2] = { from, used[t] };
      s = cpu_kernel_primitive_run(p->dnnl, &p->reorder[t], at, pad);
    }
  }
  if (s != dnnl_success) return s;
  return cpu_kernel_primitive_run(p->dnnl, &p->conv, used, pad);
}

static void add_part(const onednn_plan *p, float *to, const float *part)
{
  for (size_t i = 0; i < p->part_floats; i++) to[i] += part[i];
}

static dnnl_status_t run_conv(const onednn_plan *p,
                              void *const given[N_TENSORS],
                              unsigned char *scratch)
{
  const int result = cpu_kernel_conv_roles[p->form.kind][2];
  void *used[N_TENSORS], *pad = scratch + p->scratch_at;
  for (int t = 0; t < N_TENSORS; t++) {
    const bool same = p->reorder[t].p == NULL;
    used[t] = same ? given[t] : scratch + p->used_at[t];
  }
  void *const whole = used[result];
  dnnl_status_t s = run_part(p, 0, given, used, pad);
  for (int64_t part = 1; part < p->parts && s == dnnl_success; part++) {
    used[result] = scratch + p->part_at;
    s = run_part(p, part, given, used, pad);
    if (s == dnnl_success) add_part(p, whole, used[result]);
  }
  if (s != dnnl_success || p->reorder[result].p == NULL) return s;
  void *const at[2] = { whole, given[result] };
  return cpu_kernel_primitive_run(p->dnnl, &p->reorder[result], at, pad);
}

static calx_status *run_onednn(const cpu_kernel *kernel, cpu_threads *pool,
                               const void *lhs, const void *rhs, void *out,
                               unsigned char *scratch)
{
  const onednn_plan *p = kernel->plan;
  cpu_threads *threads = threads_for(kernel, pool);
  if (threads != NULL) {
    CALX_TRY(cpu_kernel_primitive_ready(p->dnnl, kernel->name, threads));
  }
  // oneDNN takes its operands by pointers without const.
  uintptr_t operands[2] = { (uintptr_t)lhs, (uintptr_t)rhs };
  const int *role = cpu_kernel_conv_roles[p->form.kind];
  void *given[N_TENSORS];
  for (int i = 0; i < 2; i++) {
    given[role[i]] = (void *)operands[i];
    if (!p->gathered[i]) continue;
    given[role[i]] = scratch + p->gathered_at[i];
    cpu_kernel_view_gather(&p->view[i], (const void *)operands[i],
                           CPU_KERNEL_F32, given[role[i]], pool);
  }
  given[role[2]] = p->stored ? scratch + p->stored_at : out;
  cpu_kernel_onednn_enter(p->dnnl, threads);
  dnnl_status_t s = run_conv(p, given, scratch);
  cpu_kernel_onednn_leave(p->dnnl);
  if (s != dnnl_success) {
    return cx_error(CALX_INTERNAL, "oneDNN failed with %d in %s", (int)s,
                    kernel->name);
  }
  if (p->stored) {
    const cx_hlo_elem type = (cx_hlo_elem)p->d.types[2];
    cpu_kernel_math_store(CPU_KERNEL_F32, given[role[2]], NULL, type, out,
                          (int64_t)(kernel->bytes[2] / cx_hlo_elem_bytes(type)),
                          pool);
  }
  return NULL;
}

// ---- candidates ------------------------------------------------------------

static bool make_candidate(cpu_kernel *kernel, cpu_threads *pool, int candidate,
                           onednn_plan *p)
{
  memset(p, 0, sizeof *p);
  p->dnnl = cpu_kernel_onednn_get();
  p->d = kernel->conv;
  const cpu_kernel_onednn_layout l =
      (cpu_kernel_onednn_layout)(candidate % CPU_KERNEL_ONEDNN_LAYOUTS);
  if (!cpu_kernel_conv_form_of(
          &p->d, (cpu_kernel_conv_kind)(candidate / CPU_KERNEL_ONEDNN_LAYOUTS),
          &p->form)) {
    return false;
  }
  divide_images(p);
  static const char *const layouts[CPU_KERNEL_ONEDNN_LAYOUTS] = {
    "given", "last", "any", "winograd", "plain"
  };
  static const char *const forms[3] = { "convolution", "input gradient",
                                        "weight gradient" };
  char name[40];
  cpu_kernel_onednn_enter(p->dnnl, threads_for(kernel, pool));
  const dnnl_primitive_attr_t attr = cpu_kernel_primitive_attr(p->dnnl);
  const int result = cpu_kernel_conv_roles[p->form.kind][2];
  bool made = attr != NULL && describe_given(p) &&
              make_conv(p, l, attr, name, sizeof name);
  for (int t = 0; t < N_TENSORS && made; t++) {
    made = make_reorder(p, t, t == result, attr);
  }
  if (attr != NULL) (void)p->dnnl->primitive_attr_destroy(attr);
  cpu_kernel_onednn_leave(p->dnnl);
  if (!made) return false;
  plan_gathers(p);
  plan_scratch(kernel, p);
  snprintf(kernel->name, sizeof kernel->name, "%s %s %s", forms[p->form.kind],
           name, layouts[l]);
  return true;
}

calx_status *cpu_kernel_conv_onednn_new(cpu_kernel *kernel, cpu_threads *pool,
                                        bool *out_taken)
{
  *out_taken = false;
  const cpu_kernel_conv_desc *d = &kernel->conv;
  if (!cpu_kernel_onednn_has_types(d) || cpu_kernel_onednn_get() == NULL)
    return NULL;
  int order[CPU_KERNEL_ONEDNN_CANDIDATES], n = CPU_KERNEL_ONEDNN_CANDIDATES;
  cpu_kernel_onednn_order(d, order);
  if (d->choice >= CPU_KERNEL_CONV_CHOICE_ONEDNN &&
      d->choice <
          CPU_KERNEL_CONV_CHOICE_ONEDNN + CPU_KERNEL_ONEDNN_CANDIDATES) {
    order[0] = (int)(d->choice - CPU_KERNEL_CONV_CHOICE_ONEDNN);
    n = 1;
  }
  for (int i = 0; i < n && !*out_taken; i++) {
    onednn_plan *p = cx_alloc(sizeof *p);
    if (p == NULL) return cx_out_of_memory();
    if (!make_candidate(kernel, pool, order[i], p)) {
      free_plan(p);
      continue;
    }
    kernel->plan = p;
    kernel->free_plan = free_plan;
    kernel->run = run_onednn;
    *out_taken = true;
  }
  if (!*out_taken) kernel->scratch = 0;
  return NULL;
}
