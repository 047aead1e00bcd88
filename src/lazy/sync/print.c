// lazy/sync/print: tensors as text, in PyTorch's form: four digits, scientific
// where the range asks for it, summarised above 1,000 elements, lines of 80
// columns.
//
// The rules are those of torch._tensor_str (PyTorch's documented print options:
// precision 4, threshold 1000, edgeitems 3, linewidth 80).
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "lazy/internal.h"

enum { EDGE = 3, LINE_WIDTH = 80, THRESHOLD = 1000, PRECISION = 4 };

typedef struct printer {
  const cx_graph_shape *shape;
  const unsigned char *data;
  size_t element;
  int64_t strides[CALX_MAX_RANK];  // in elements
  bool summarize;
  bool is_float, int_mode, sci_mode;
  int width;
  double least, most;  // of the finite values that are not 0, absolute
  bool any;
  cx_text *out;
} printer;

static int64_t stand(const printer *p, uint32_t dim, int64_t k)
{
  int64_t n = p->shape->dims[dim];
  return p->summarize && n > 2 * EDGE && k >= EDGE ? n - 2 * EDGE + k : k;
}

// How many entries of a dimension are shown.
static int64_t shown(const printer *p, uint32_t dim)
{
  int64_t n = p->shape->dims[dim];
  return p->summarize && n > 2 * EDGE ? 2 * EDGE : n;
}

typedef void visit_fn(printer *p, double v, int64_t i);

static void visit(printer *p, uint32_t dim, int64_t at, visit_fn *fn)
{
  if (dim == p->shape->rank) {
    const unsigned char *e = p->data + (size_t)at * p->element;
    fn(p, cx_load_double(p->shape->dtype, e), cx_load_int(p->shape->dtype, e));
    return;
  }
  for (int64_t k = 0; k < shown(p, dim); k++) {
    visit(p, dim + 1, at + stand(p, dim, k) * p->strides[dim], fn);
  }
}

// ---- numbers ----------------------------------------------------------------

static void widen(printer *p, int n)
{
  if (n > p->width) p->width = n;
}

static void look(printer *p, double v, int64_t i)
{
  if (!p->is_float) {
    char text[32];
    if (p->shape->dtype == CALX_BOOL)
      widen(p, i != 0 ? 4 : 5);
    else
      widen(p, snprintf(text, sizeof text, "%lld", (long long)i));
    return;
  }
  if (!isfinite(v) || v == 0.0) return;
  double a = fabs(v);
  if (!p->any || a < p->least) p->least = a;
  if (!p->any || a > p->most) p->most = a;
  p->any = true;
  if (v != ceil(v)) p->int_mode = false;
}

static void measure(printer *p, double v, int64_t i)
{
  (void)i;
  char text[400];
  if (!isfinite(v) || v == 0.0) return;
  if (p->sci_mode) {
    widen(p, snprintf(text, sizeof text, "%.*e", PRECISION, v));
  } else if (p->int_mode) {
    widen(p, snprintf(text, sizeof text, "%.0f", v) + 1);
  } else {
    widen(p, snprintf(text, sizeof text, "%.*f", PRECISION, v));
  }
}

static void choose_format(printer *p)
{
  p->width = 1;
  p->int_mode = true;
  visit(p, 0, 0, look);
  if (!p->is_float || !p->any) return;
  p->sci_mode = p->most / p->least > 1000.0 || p->most > 1.0e8 ||
                (!p->int_mode && p->least < 1.0e-4);
  visit(p, 0, 0, measure);
}

static void number(printer *p, int64_t at)
{
  const unsigned char *e = p->data + (size_t)at * p->element;
  char text[400];
  int n;
  if (p->shape->dtype == CALX_BOOL) {
    n = snprintf(text, sizeof text, "%s", *e != 0 ? "True" : "False");
  } else if (p->shape->dtype == CALX_U64) {
    n = snprintf(text, sizeof text, "%llu",
                 (unsigned long long)cx_load_int(CALX_U64, e));
  } else if (!p->is_float) {
    n = snprintf(text, sizeof text, "%lld",
                 (long long)cx_load_int(p->shape->dtype, e));
  } else {
    double v = cx_load_double(p->shape->dtype, e);
    if (isnan(v))
      n = snprintf(text, sizeof text, "nan");
    else if (isinf(v))
      n = snprintf(text, sizeof text, v < 0 ? "-inf" : "inf");
    else if (p->sci_mode)
      n = snprintf(text, sizeof text, "%.*e", PRECISION, v);
    else if (p->int_mode)
      n = snprintf(text, sizeof text, "%.0f.", v);
    else
      n = snprintf(text, sizeof text, "%.*f", PRECISION, v);
  }
  for (; n < p->width; n++) cx_text_char(p->out, ' ');
  cx_text_append(p->out, text);
}

// ---- lines ------------------------------------------------------------------

static void spaces(cx_text *out, int n)
{
  while (n-- > 0) cx_text_char(out, ' ');
}

static void vector(printer *p, uint32_t dim, int64_t at, int indent)
{
  int64_t n = shown(p, dim);
  bool dots = n != p->shape->dims[dim];
  int per_line = (LINE_WIDTH - indent) / (p->width + 2);
  if (per_line < 1) per_line = 1;
  cx_text_char(p->out, '[');
  int64_t cells = n + dots;
  for (int64_t c = 0; c < cells; c++) {
    if (c != 0 && c % per_line == 0) {
      cx_text_append(p->out, ",\n");
      spaces(p->out, indent + 1);
    } else if (c != 0) {
      cx_text_append(p->out, ", ");
    }
    if (dots && c == EDGE) {
      cx_text_append(p->out, " ...");
      continue;
    }
    int64_t k = dots && c > EDGE ? c - 1 : c;
    number(p, at + stand(p, dim, k) * p->strides[dim]);
  }
  cx_text_char(p->out, ']');
}

static void body(printer *p, uint32_t dim, int64_t at, int indent)
{
  uint32_t left = p->shape->rank - dim;
  if (left == 0) {
    number(p, at);
    return;
  }
  if (left == 1) {
    vector(p, dim, at, indent);
    return;
  }
  int64_t n = shown(p, dim);
  bool dots = n != p->shape->dims[dim];
  cx_text_char(p->out, '[');
  for (int64_t k = 0; k < n; k++) {
    if (k != 0 || (dots && k == EDGE)) {
      cx_text_char(p->out, ',');
      for (uint32_t i = 1; i < left; i++) cx_text_char(p->out, '\n');
      spaces(p->out, indent + 1);
    }
    if (dots && k == EDGE) {
      cx_text_append(p->out, "...,");
      for (uint32_t i = 1; i < left; i++) cx_text_char(p->out, '\n');
      spaces(p->out, indent + 1);
    }
    body(p, dim + 1, at + stand(p, dim, k) * p->strides[dim], indent + 1);
  }
  cx_text_char(p->out, ']');
}

// ---- suffixes ---------------------------------------------------------------

static const char *torch_name(calx_dtype d)
{
  switch (d) {
    case CALX_BOOL: return "torch.bool";
    case CALX_I8: return "torch.int8";
    case CALX_I16: return "torch.int16";
    case CALX_I32: return "torch.int32";
    case CALX_I64: return "torch.int64";
    case CALX_U8: return "torch.uint8";
    case CALX_U16: return "torch.uint16";
    case CALX_U32: return "torch.uint32";
    case CALX_U64: return "torch.uint64";
    case CALX_BF16: return "torch.bfloat16";
    case CALX_F16: return "torch.float16";
    case CALX_F64: return "torch.float64";
    default: return "torch.float32";
  }
}

static void suffix(cx_text *out, const char *text)
{
  const char *line = strrchr(cx_text_str(out), '\n');
  size_t start = line != NULL ? (size_t)(line - out->data) + 1 : 0;
  if (out->size - start + strlen(text) + 4 > LINE_WIDTH) {
    cx_text_append(out, ",\n       ");
  } else {
    cx_text_append(out, ", ");
  }
  cx_text_append(out, text);
}

static void size_suffix(cx_text *out, const cx_graph_shape *s)
{
  cx_text text = { 0 };
  cx_text_append(&text, "size=(");
  for (uint32_t i = 0; i < s->rank; i++) {
    cx_text_format(&text, "%s%lld", i != 0 ? ", " : "", (long long)s->dims[i]);
  }
  cx_text_append(&text, s->rank == 1 ? ",)" : ")");
  suffix(out, cx_text_str(&text));
  cx_text_free(&text);
}

// "log_softmax" is PyTorch's LogSoftmaxBackward0.
static void grad_suffix(cx_text *out, const calx_tensor *t)
{
  if ((t->flags & CX_LAZY_T_REQUIRES_GRAD) != 0) {
    suffix(out, "requires_grad=True");
    return;
  }
  if (!cx_lazy_tensor_requires_grad(t) ||
      (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_GRAD) == 0) {
    return;
  }
  cx_text text = { 0 };
  cx_text_append(&text, "grad_fn=<");
  bool upper = true;
  for (const char *p = t->node->op->name; *p != '\0'; p++) {
    if (*p != '_') {
      cx_text_char(&text, upper ? (char)toupper((unsigned char)*p) : *p);
    }
    upper = *p == '_';
  }
  cx_text_append(&text, "Backward0>");
  suffix(out, cx_text_str(&text));
  cx_text_free(&text);
}

static void suffixes(cx_text *out, const calx_tensor *t)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  bool empty = cx_graph_shape_numel(s) == 0;
  char text[64];
  if (t->host == NULL) {
    snprintf(text, sizeof text, "device='%s'", t->device->name);
    suffix(out, text);
  }
  if (empty && s->rank != 1) size_suffix(out, s);
  bool plain = s->dtype == CALX_F32 ||
               (!empty && (s->dtype == CALX_I64 || s->dtype == CALX_BOOL));
  if (!plain) {
    snprintf(text, sizeof text, "dtype=%s", torch_name(s->dtype));
    suffix(out, text);
  }
  grad_suffix(out, t);
}

// ---- public -----------------------------------------------------------------

static void format_tensor(const calx_tensor *t, const unsigned char *data,
                          cx_text *out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  printer p = { .shape = s,
                .data = data,
                .element = calx_dtype_size(s->dtype),
                .is_float = cx_dtype_is_float(s->dtype),
                .out = out };
  int64_t stride = 1;
  for (uint32_t i = s->rank; i-- > 0;) {
    p.strides[i] = stride;
    stride *= s->dims[i];
  }
  cx_text_append(out, "tensor(");
  if (stride == 0) {
    cx_text_append(out, "[]");
  } else {
    p.summarize = stride > THRESHOLD;
    choose_format(&p);
    body(&p, 0, 0, 7);
  }
  suffixes(out, t);
  cx_text_char(out, ')');
}

char *calx_tensor_str(calx_tensor *t)
{
  if (t == NULL) {
    cx_lazy_scope_pin(
        cx_error(CALX_INVALID_ARGUMENT, "print: the tensor is NULL"));
    return NULL;
  }
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  size_t bytes = (size_t)cx_graph_shape_numel(s) * calx_dtype_size(s->dtype);
  unsigned char *data = cx_alloc(bytes);
  calx_status *status =
      data == NULL ? cx_out_of_memory() : calx_tensor_read(t, data, bytes);
  cx_text text = { 0 };
  char *result = NULL;
  if (status == NULL) {
    format_tensor(t, data, &text);
    result = cx_text_take(&text);
    if (result == NULL) status = cx_out_of_memory();
  }
  cx_free(data);
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    cx_lazy_report_failed_read();
  }
  return result;
}

void calx_string_free(char *text)
{
  cx_free(text);
}

void calx_print(calx_tensor *t)
{
  char *text = calx_tensor_str(t);
  if (text != NULL) puts(text);
  cx_free(text);
}
