// ref/window: reduce_window and select_and_scatter.
#include <string.h>

#include "ref/contract.h"

typedef struct window_grid {
  size_t rank;
  int64_t size[CPU_REF_RANK], stride[CPU_REF_RANK], base[CPU_REF_RANK],
      dilation[CPU_REF_RANK], low[CPU_REF_RANK];
  int64_t step[CPU_REF_RANK];  // of the operand
  const int64_t *dims;         // its sizes
} window_grid;

static void window_grid_of(const cx_hlo_op *op, const cx_hlo_type *x,
                           window_grid *out)
{
  const bool dilated = op->kind == CX_HLO_OP_REDUCE_WINDOW;
  out->rank = x->rank;
  out->dims = x->dims;
  cpu_ref_strides(x, out->step);
  for (size_t i = 0; i < x->rank; i++) {
    out->size[i] = cpu_ref_list_at(op, CX_HLO_A_WINDOW_DIMENSIONS, i);
    out->stride[i] = cpu_ref_list_at(op, CX_HLO_A_WINDOW_STRIDES, i);
    out->base[i] =
        dilated ? cpu_ref_list_at(op, CX_HLO_A_BASE_DILATIONS, i) : 1;
    out->dilation[i] =
        dilated ? cpu_ref_list_at(op, CX_HLO_A_WINDOW_DILATIONS, i) : 1;
    out->low[i] = cpu_ref_padding_at(op, i, 0);
  }
}

// The operand's element at position w of window o; -1: padding or a hole.
static int64_t element_of(const window_grid *g, const int64_t *o,
                          const int64_t *w)
{
  int64_t x = 0;
  for (size_t i = 0; i < g->rank; i++) {
    const int64_t at = o[i] * g->stride[i] + w[i] * g->dilation[i] - g->low[i];
    if (at < 0 || at % g->base[i] != 0 || at / g->base[i] >= g->dims[i]) {
      return -1;
    }
    x += at / g->base[i] * g->step[i];
  }
  return x;
}

// Goes to the next position of a window. A window may be larger than any
// memory, where all but its middle is padding, so the walk can be interrupted.
static calx_status *next_position(const cpu_ref_machine *m,
                                  const window_grid *g, int64_t *w,
                                  size_t *walked, bool *more)
{
  *more = cpu_ref_next(g->rank, g->size, w);
  return ++*walked % 65536 == 0 ? cpu_ref_interrupted(m) : NULL;
}

// ---- reduce_window with a body of one operation ----

static calx_status *reduce_single(const cpu_ref_call *c, const window_grid *g,
                                  uint32_t result)
{
  const cpu_ref_tensor *in = &c->in[result], *out = &c->out[result];
  const cpu_ref_tensor *first = &c->in[c->op->n_results + result];
  const cx_hlo_op_kind kind = cpu_ref_single(c->op->regions[0].first, result);
  const cx_hlo_elem e = out->type.elem, from = in->type.elem;
  const cpu_ref_class class = cpu_ref_class_of(e);
  int64_t o[CPU_REF_RANK] = { 0 };
  int64_t w[CPU_REF_RANK] = { 0 };
  cpu_ref_number init = { 0 };
  cpu_ref_load_numbers(class, from, first->data, 1, &init);
  const size_t n = cpu_ref_count(out);
  size_t walked = 0;
  for (size_t at = 0; at < n; at++) {
    cpu_ref_number acc = init;
    bool more = true;
    while (more) {
      const int64_t x = element_of(g, o, w);
      cpu_ref_number v = init;
      if (x >= 0) {
        cpu_ref_load_numbers(class, from, cpu_ref_at(in, (size_t)x), 1, &v);
      }
      cpu_ref_compute(kind, e, &acc, &v, &acc, 1);
      CALX_TRY(next_position(c->machine, g, w, &walked, &more));
    }
    cpu_ref_store_number_at(e, out->data, at, &acc);
    cpu_ref_next(g->rank, out->type.dims, o);
  }
  return NULL;
}

// ---- with any body, on many windows at once ----

typedef struct window_walk {
  const window_grid *g;
  const cpu_ref_tensor *in;
  int64_t at[CPU_REF_RANK];  // the position in each window
} window_walk;

static bool load_position(const cpu_ref_fold *f, void *user, size_t at,
                          size_t k, size_t j)
{
  window_walk *walk = user;
  const window_grid *g = walk->g;
  int64_t o[CPU_REF_RANK];
  if (j == 0) memset(walk->at, 0, sizeof walk->at);
  if (j != 0 && !cpu_ref_next(g->rank, g->size, walk->at)) return false;
  size_t rest = at;
  for (size_t i = g->rank; i-- > 0;) {
    const size_t size = (size_t)f->out->type.dims[i];
    o[i] = (int64_t)(rest % size);
    rest /= size;
  }
  for (size_t lane = 0; lane < k; lane++) {
    const int64_t x = element_of(g, o, walk->at);
    for (size_t i = 0; i < f->n; i++) {
      const cx_hlo_elem to = cpu_ref_body_elem(&f->body, i);
      const size_t bytes = cx_hlo_elem_bytes(to);
      unsigned char *p = f->elements + i * CPU_REF_LANES_BYTES;
      f->args[f->n + i] = p;
      p += lane * bytes;
      if (x < 0) {
        memcpy(p, f->inits + 16 * i, bytes);
      } else {
        cpu_ref_convert(walk->in[i].type.elem,
                        cpu_ref_at(&walk->in[i], (size_t)x), to, p, 1);
      }
    }
    cpu_ref_next(g->rank, f->out->type.dims, o);
  }
  return true;
}

calx_status *cpu_ref_reduce_window(const cpu_ref_call *c)
{
  window_grid g;
  window_grid_of(c->op, &c->in->type, &g);
  if (cpu_ref_all_single(c->op)) {
    for (uint32_t i = 0; i < c->op->n_results; i++) {
      CALX_TRY(reduce_single(c, &g, i));
    }
    return NULL;
  }
  cpu_ref_fold f;
  window_walk walk = { .g = &g, .in = c->in };
  calx_status *status = cpu_ref_fold_open(c, &f);
  if (status == NULL) status = cpu_ref_fold_run(&f, load_position, &walk);
  cpu_ref_fold_close(&f);
  return status;
}

// ---- select_and_scatter ----

// The element of window o that `select` chooses: the current one stays while
// select(current, next) holds. -1: the window is all padding.
static calx_status *select_one(cpu_ref_body *select, const window_grid *g,
                               const cpu_ref_tensor *x, const int64_t *o,
                               int64_t *out)
{
  int64_t w[CPU_REF_RANK] = { 0 };
  size_t walked = 0;
  bool more = true;
  *out = -1;
  while (more) {
    const int64_t next = element_of(g, o, w);
    unsigned char stays = next < 0;
    if (next >= 0 && *out >= 0) {
      const void *args[2] = { cpu_ref_at(x, (size_t)*out),
                              cpu_ref_at(x, (size_t)next) };
      void *to = &stays;
      CALX_TRY(cpu_ref_body_run(select, args, &to, 1));
    }
    if (!stays) *out = next;
    CALX_TRY(next_position(select->machine, g, w, &walked, &more));
  }
  return NULL;
}

static calx_status *scatter_one(cpu_ref_body *scatter,
                                const cpu_ref_tensor *out, int64_t to,
                                const cpu_ref_tensor *source, size_t from)
{
  unsigned char value[16];
  unsigned char sum[16];
  const cx_hlo_elem e = out->type.elem;
  void *p = cpu_ref_at(out, (size_t)to);
  cpu_ref_convert(source->type.elem, cpu_ref_at(source, from), e, value, 1);
  const void *args[2] = { p, value };
  void *result = sum;
  CALX_TRY(cpu_ref_body_run(scatter, args, &result, 1));
  memcpy(p, sum, cx_hlo_elem_bytes(e));
  return NULL;
}

static calx_status *scatter_windows(cpu_ref_body *select, cpu_ref_body *scatter,
                                    const window_grid *g,
                                    const cpu_ref_tensor *in,
                                    const cpu_ref_tensor *out)
{
  int64_t o[CPU_REF_RANK] = { 0 };
  const size_t n = cpu_ref_count(&in[1]);
  for (size_t i = 0; i < n; i++) {
    int64_t to = -1;
    if (i % 256 == 255) CALX_TRY(cpu_ref_interrupted(select->machine));
    CALX_TRY(select_one(select, g, &in[0], o, &to));
    if (to >= 0) CALX_TRY(scatter_one(scatter, out, to, &in[1], i));
    cpu_ref_next(g->rank, in[1].type.dims, o);
  }
  return NULL;
}

calx_status *cpu_ref_select_and_scatter(const cpu_ref_call *c)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  window_grid g;
  window_grid_of(c->op, &in[0].type, &g);
  const size_t n = cpu_ref_count(out);
  const size_t bytes = cx_hlo_elem_bytes(out->type.elem);
  if (n == 0) return NULL;
  cpu_ref_convert(in[2].type.elem, in[2].data, out->type.elem, out->data, 1);
  cpu_ref_fill(bytes, (char *)out->data + bytes, n - 1, out->data);
  cpu_ref_body select = { 0 }, scatter = { 0 };
  calx_status *status = cpu_ref_body_open(c, &c->op->regions[0], 1, &select);
  if (status == NULL) {
    status = cpu_ref_body_open(c, &c->op->regions[1], 1, &scatter);
  }
  if (status == NULL) {
    status = scatter_windows(&select, &scatter, &g, in, out);
  }
  cpu_ref_body_close(&select);
  cpu_ref_body_close(&scatter);
  return status;
}
