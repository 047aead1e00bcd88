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

typedef struct tensor_printer tensor_printer;
struct tensor_printer {
  const cx_graph_shape *shape;
  const unsigned char *data;
  size_t element;
  calx_dtype dtype;  // of complex numbers that of the part that is printed
  tensor_printer
      *imag;  // prints the imaginary parts behind; NULL: real numbers
  int64_t strides[CALX_MAX_RANK];  // in elements
  bool summarize;
  bool is_float, int_mode, sci_mode;
  int width;
  double least, most;  // of the finite values that are not 0, absolute
  bool any;
  cx_text *out;
};

static bool has_gap(const tensor_printer *p, uint32_t dim)
{
  return p->summarize && p->shape->dims[dim] > 2 * EDGE;
}

// How many entries of a dimension are shown.
static int64_t shown(const tensor_printer *p, uint32_t dim)
{
  return has_gap(p, dim) ? 2 * EDGE : p->shape->dims[dim];
}

// The element where the k-th entry that is shown of a dimension begins.
static int64_t entry(const tensor_printer *p, uint32_t dim, int64_t at,
                     int64_t k)
{
  if (has_gap(p, dim) && k >= EDGE) k += p->shape->dims[dim] - 2 * EDGE;
  return at + k * p->strides[dim];
}

typedef void element_fn(tensor_printer *p, const unsigned char *element);

static void for_each_shown(tensor_printer *p, uint32_t dim, int64_t at,
                           element_fn *fn)
{
  if (dim == p->shape->rank) {
    fn(p, p->data + (size_t)at * p->element);
    return;
  }
  for (int64_t k = 0; k < shown(p, dim); k++) {
    for_each_shown(p, dim + 1, entry(p, dim, at, k), fn);
  }
}

// ---- numbers ----------------------------------------------------------------

enum { MOST_DIGITS = 400 };

static int format_real(const tensor_printer *p, double v, char out[MOST_DIGITS])
{
  if (isnan(v)) return snprintf(out, MOST_DIGITS, "nan");
  if (isinf(v)) return snprintf(out, MOST_DIGITS, v < 0 ? "-inf" : "inf");
  const char *format = p->sci_mode ? "%.*e" : p->int_mode ? "%.*f." : "%.*f";
  return snprintf(out, MOST_DIGITS, format,
                  p->int_mode && !p->sci_mode ? 0 : PRECISION, v);
}

// Returns the length.
static int format_number(const tensor_printer *p, const unsigned char *element,
                         char out[MOST_DIGITS])
{
  calx_dtype dtype = p->dtype;
  if (p->is_float) return format_real(p, cx_load_double(dtype, element), out);
  long long i = (long long)cx_load_int(dtype, element);
  if (dtype == CALX_BOOL) {
    return snprintf(out, MOST_DIGITS, "%s", i != 0 ? "True" : "False");
  }
  return snprintf(out, MOST_DIGITS, dtype == CALX_U64 ? "%llu" : "%lld", i);
}

static void measure(tensor_printer *p, const unsigned char *element)
{
  char text[MOST_DIGITS];
  if (p->is_float) {
    double v = cx_load_double(p->dtype, element);
    if (!isfinite(v) || v == 0.0) return;
  }
  int n = format_number(p, element, text);
  if (n > p->width) p->width = n;
}

static void find_range(tensor_printer *p, const unsigned char *element)
{
  double v = cx_load_double(p->dtype, element), a = fabs(v);
  if (!isfinite(v) || v == 0.0) return;
  if (!p->any || a < p->least) p->least = a;
  if (!p->any || a > p->most) p->most = a;
  p->any = true;
  if (v != ceil(v)) p->int_mode = false;
}

static void choose_format(tensor_printer *p)
{
  p->width = 1;
  p->int_mode = true;
  if (p->is_float) for_each_shown(p, 0, 0, find_range);
  if (p->any) {
    p->sci_mode = p->most / p->least > 1000.0 || p->most > 1.0e8 ||
                  (!p->int_mode && p->least < 1.0e-4);
  }
  for_each_shown(p, 0, 0, measure);
  if (p->imag != NULL) choose_format(p->imag);
}

static void print_number(tensor_printer *p, int64_t at)
{
  char text[MOST_DIGITS];
  int n = format_number(p, p->data + (size_t)at * p->element, text);
  for (; n < p->width; n++) cx_text_char(p->out, ' ');
  cx_text_append(p->out, text);
  if (p->imag == NULL) return;
  format_number(p->imag, p->imag->data + (size_t)at * p->element, text);
  if (text[0] != '-') cx_text_char(p->out, '+');
  cx_text_format(p->out, "%sj", text);
}

// ---- lines ------------------------------------------------------------------

// Begins a line after `lines` newlines.
static void new_line(cx_text *out, uint32_t lines, int indent)
{
  while (lines-- > 0) cx_text_char(out, '\n');
  while (indent-- > 0) cx_text_char(out, ' ');
}

static void print_vector(tensor_printer *p, uint32_t dim, int64_t at,
                         int indent)
{
  bool gap = has_gap(p, dim);
  int width = p->width + 2 + (p->imag != NULL ? p->imag->width + 1 : 0);
  int per_line = (LINE_WIDTH - indent) / width;
  if (per_line < 1) per_line = 1;
  cx_text_char(p->out, '[');
  int64_t cells = shown(p, dim) + gap;
  for (int64_t c = 0; c < cells; c++) {
    if (c != 0 && c % per_line == 0) {
      cx_text_char(p->out, ',');
      new_line(p->out, 1, indent + 1);
    } else if (c != 0) {
      cx_text_append(p->out, ", ");
    }
    if (gap && c == EDGE) {
      cx_text_append(p->out, " ...");
    } else {
      print_number(p, entry(p, dim, at, gap && c > EDGE ? c - 1 : c));
    }
  }
  cx_text_char(p->out, ']');
}

static void print_body(tensor_printer *p, uint32_t dim, int64_t at, int indent)
{
  uint32_t left = p->shape->rank - dim;
  if (left == 0) {
    print_number(p, at);
    return;
  }
  if (left == 1) {
    print_vector(p, dim, at, indent);
    return;
  }
  cx_text_char(p->out, '[');
  for (int64_t k = 0; k < shown(p, dim); k++) {
    if (k != 0) {
      cx_text_char(p->out, ',');
      new_line(p->out, left - 1, indent + 1);
    }
    if (has_gap(p, dim) && k == EDGE) {
      cx_text_append(p->out, "...,");
      new_line(p->out, left - 1, indent + 1);
    }
    print_body(p, dim + 1, entry(p, dim, at, k), indent + 1);
  }
  cx_text_char(p->out, ']');
}

// ---- suffixes ---------------------------------------------------------------

// "torch.float32".
static void format_dtype(calx_dtype d, char *out, size_t size)
{
  const char *kind = d == CALX_BF16            ? "bfloat"
                     : cx_dtype_is_complex(d)  ? "complex"
                     : cx_dtype_is_float(d)    ? "float"
                     : cx_dtype_is_unsigned(d) ? "uint"
                                               : "int";
  if (d == CALX_BOOL) {
    snprintf(out, size, "torch.bool");
  } else {
    snprintf(out, size, "torch.%s%zu", kind, 8 * calx_dtype_size(d));
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
  bool plain = s->dtype == CALX_F32 || s->dtype == CALX_C64 ||
               (!empty && (s->dtype == CALX_I64 || s->dtype == CALX_BOOL));
  if (!plain) {
    char name[32];
    format_dtype(s->dtype, name, sizeof name);
    snprintf(text, sizeof text, "dtype=%s", name);
    suffix(out, text);
  }
  grad_suffix(out, t);
}

// ---- public -----------------------------------------------------------------

static void format_tensor(const calx_tensor *t, const unsigned char *data,
                          cx_text *out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  tensor_printer p = { .shape = s,
                       .data = data,
                       .element = calx_dtype_size(s->dtype),
                       .dtype = cx_dtype_part(s->dtype),
                       .is_float = cx_dtype_is_inexact(s->dtype),
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
    tensor_printer imag = p;
    imag.data += calx_dtype_size(p.dtype);
    if (p.dtype != s->dtype) p.imag = &imag;
    choose_format(&p);
    print_body(&p, 0, 0, 7);
  }
  suffixes(out, t);
  cx_text_char(out, ')');
}

char *calx_tensor_str(calx_tensor *t)
{
  if (t == NULL) {
    cx_lazy_scope_pin(cx_invalid("print: the tensor is NULL"));
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
