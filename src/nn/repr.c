// nn/repr: modules as PyTorch prints them.
#include <stdio.h>
#include <string.h>

#include "lazy/lazy.h"
#include "nn/module.h"

static void write_module(cx_text *out, const calx_module *m, int indent);

static void begin_line(cx_text *out, int indent)
{
  cx_text_format(out, "\n%*s", indent, "");
}

static void write_children(cx_text *out, const calx_module *m, int indent)
{
  size_t skip = cx_nn_module_prefix(m);
  for (size_t i = 0; i < m->count; i++) {
    const cx_nn_module_entry *e = &m->entries[i];
    if (e->child == NULL || e->path == NULL) continue;
    begin_line(out, indent);
    cx_text_format(out, "(%s): ", e->path + skip);
    write_module(out, e->child, indent);
  }
}

// Equal neighbours are one line of a ModuleList: "(0-2): 3 x ReLU()".
static void write_list(cx_text *out, const calx_module *m, int indent)
{
  size_t first = 0, n = calx_module_child_count(m);
  cx_text one = { 0 }, other = { 0 };
  while (first < n) {
    cx_text_clear(&one);
    write_module(&one, calx_module_child_at(m, first), indent);
    size_t next = first + 1;
    for (; next < n; next++) {
      cx_text_clear(&other);
      write_module(&other, calx_module_child_at(m, next), indent);
      if (strcmp(cx_text_str(&one), cx_text_str(&other)) != 0) break;
    }
    begin_line(out, indent);
    if (next - first == 1)
      cx_text_format(out, "(%zu): ", first);
    else
      cx_text_format(out, "(%zu-%zu): %zu x ", first, next - 1, next - first);
    cx_text_append(out, cx_text_str(&one));
    first = next;
  }
  if (cx_text_failed(&one) || cx_text_failed(&other)) out->failed = true;
  cx_text_free(&one);
  cx_text_free(&other);
}

static void write_module(cx_text *out, const calx_module *m, int indent)
{
  bool has_text = m->layer != NULL && m->layer->repr != NULL;
  bool has_children = calx_module_child_count(m) != 0;
  cx_text_format(out, "%s(", m->kind);
  if (has_children && has_text) begin_line(out, indent + 2);
  if (has_text && m->state != NULL) m->layer->repr(m->state, out);
  if (has_children) {
    if (m->is_list)
      write_list(out, m, indent + 2);
    else
      write_children(out, m, indent + 2);
    begin_line(out, indent);
  }
  cx_text_char(out, ')');
}

char *calx_module_str(const calx_module *m)
{
  if (m == NULL) {
    cx_lazy_scope_pin(cx_invalid("module_str: the module is NULL"));
    return NULL;
  }
  cx_text text = { 0 };
  write_module(&text, m, 0);
  char *taken = cx_text_take(&text);
  if (taken == NULL) cx_lazy_scope_pin(cx_out_of_memory());
  return taken;
}

void calx_module_print(const calx_module *m)
{
  char *text = calx_module_str(m);
  if (text != NULL) puts(text);
  calx_string_free(text);
}
