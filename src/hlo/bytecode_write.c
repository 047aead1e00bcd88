// hlo/bytecode: writes the sections of a file.
#include "hlo/bytecode_write.h"

#include <string.h>

#include "hlo/bytecode_writer.h"

static void put_strings(cx_hlo_bytecode_writer *w)
{
  const cx_hlo_pool *pool = &w->strings;
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, pool->n);
  for (size_t i = pool->n; i-- > 0;) {
    cx_hlo_write_number(w, pool->items[i].size + 1);
  }
  for (size_t i = 0; i < pool->n; i++) {
    cx_text_append_n(&w->out, pool->bytes.data + pool->items[i].at,
                     pool->items[i].size);
    cx_text_char(&w->out, '\0');
  }
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_STRINGS);
}

// The string that an item of a pool is.
static size_t item_string(cx_hlo_bytecode_writer *w, const cx_hlo_pool *pool,
                          size_t i)
{
  const struct cx_hlo_pool_item *item = &pool->items[i];
  return cx_hlo_write_string(
      w, (cx_hlo_str){ pool->bytes.data + item->at, item->size });
}

// How many items from `first` on belong to the same dialect.
static size_t run_length(const cx_hlo_pool *pool, size_t first, unsigned shift)
{
  size_t i = first;
  while (i < pool->n &&
         pool->items[i].tag >> shift == pool->items[first].tag >> shift) {
    i++;
  }
  return i - first;
}

// dialects ::= count name* names of operations; none has a version.
static void put_dialects(cx_hlo_bytecode_writer *w)
{
  const cx_hlo_pool *names = &w->op_names;
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, w->dialects.n);
  for (size_t i = 0; i < w->dialects.n; i++) {
    cx_hlo_write_number(w, item_string(w, &w->dialects, i) << 1);
  }
  cx_hlo_write_number(w, names->n);
  for (size_t i = 0; i < names->n;) {
    const uint32_t dialect = names->items[i].tag;
    const size_t n = run_length(names, i, 0);
    cx_hlo_write_number(w, dialect);
    cx_hlo_write_number(w, n);
    for (const size_t end = i + n; i < end; i++) {
      cx_hlo_write_number(
          w, item_string(w, names, i) << 1 | (dialect <= CX_HLO_WRITES_VHLO));
    }
  }
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_DIALECTS);
}

static void put_entries(cx_hlo_bytecode_writer *w)
{
  const size_t mark = w->out.size;
  cx_text_append_n(&w->out, w->attrs.bytes.data, w->attrs.bytes.size);
  cx_text_append_n(&w->out, w->types.bytes.data, w->types.bytes.size);
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_ENTRIES);
}

static void put_sizes_of(cx_hlo_bytecode_writer *w, const cx_hlo_pool *pool)
{
  for (size_t i = 0; i < pool->n;) {
    const size_t n = run_length(pool, i, 1);
    cx_hlo_write_number(w, pool->items[i].tag >> 1);
    cx_hlo_write_number(w, n);
    for (const size_t end = i + n; i < end; i++) {
      cx_hlo_write_number(
          w, (uint64_t)pool->items[i].size << 1 | (pool->items[i].tag & 1));
    }
  }
}

static void put_sizes(cx_hlo_bytecode_writer *w)
{
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, w->attrs.n);
  cx_hlo_write_number(w, w->types.n);
  put_sizes_of(w, &w->attrs);
  put_sizes_of(w, &w->types);
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_SIZES);
}

static void put_properties(cx_hlo_bytecode_writer *w)
{
  const cx_hlo_pool *pool = &w->properties;
  const size_t mark = w->out.size;
  cx_hlo_write_number(w, pool->n);
  for (size_t i = 0; i < pool->n; i++) {
    cx_hlo_write_number(w, pool->items[i].size);
    cx_text_append_n(&w->out, pool->bytes.data + pool->items[i].at,
                     pool->items[i].size);
  }
  cx_hlo_write_section(w, mark, CX_HLO_SECTION_PROPERTIES);
}

// The names of dialects and operations are the last strings.
static void put_file(cx_hlo_bytecode_writer *w, const cx_hlo_module *m)
{
  static const char producer[] = "calx";
  cx_hlo_write_dialect(w, "builtin", 7);
  cx_hlo_write_dialect(w, "vhlo", 4);
  cx_hlo_write_program(w, m);
  cx_hlo_write_section(w, 0, CX_HLO_SECTION_PROGRAM);
  const size_t program = w->out.size;
  cx_text_append_n(&w->out, CX_HLO_BYTECODE_MAGIC, CX_HLO_BYTECODE_MAGIC_SIZE);
  cx_hlo_write_number(w, CX_HLO_BYTECODE_NEWEST);
  cx_text_append_n(&w->out, producer, sizeof producer);
  put_dialects(w);
  put_strings(w);
  put_entries(w);
  put_sizes(w);
  put_properties(w);
  cx_text head = { 0 };  // what was written behind the program comes first
  if (cx_text_failed(&w->out)) return;
  cx_text_append_n(&head, w->out.data + program, w->out.size - program);
  cx_text_append_n(&head, w->out.data, program);
  cx_text_free(&w->out);
  w->out = head;
}

static void free_writer(cx_hlo_bytecode_writer *w)
{
  cx_hlo_pool *const pools[] = { &w->strings, &w->dialects, &w->op_names,
                                 &w->attrs,   &w->types,    &w->properties };
  for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
    cx_hlo_pool_free(pools[i]);
  }
  cx_free(w->vhlo_values);
  cx_free(w->builtin_values);
  cx_free(w->lists);
  cx_text_free(&w->out);
}

calx_status *cx_hlo_write_bytecode(const cx_hlo_module *m, cx_text *out)
{
  cx_hlo_bytecode_writer w = { 0 };
  w.vhlo_values = cx_calloc((size_t)m->n_values + 1, sizeof *w.vhlo_values);
  w.builtin_values =
      cx_calloc((size_t)m->n_values + 1, sizeof *w.builtin_values);
  w.lists = cx_calloc(CX_HLO_OP_COUNT, sizeof *w.lists);
  if (w.vhlo_values == NULL || w.builtin_values == NULL || w.lists == NULL) {
    w.out.failed = true;
  } else {
    put_file(&w, m);
  }
  if (w.status == NULL && cx_text_failed(&w.out)) w.status = cx_out_of_memory();
  if (w.status == NULL) {
    cx_text_append_n(out, w.out.data, w.out.size);
    if (cx_text_failed(out)) w.status = cx_out_of_memory();
  }
  free_writer(&w);
  return w.status;
}
