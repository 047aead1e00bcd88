// hlo/attr: making attributes.
#include "hlo/attr.h"

#include <string.h>

#include "hlo/number.h"
#include "hlo/ops.h"

cx_hlo_attr *cx_hlo_attr_new(cx_hlo_module *m, cx_hlo_attr_kind kind)
{
  cx_hlo_attr *attr = CX_ARENA_NEW(&m->arena, cx_hlo_attr);
  if (attr != NULL) attr->kind = kind;
  return attr;
}

const cx_hlo_attr *cx_hlo_attr_text(cx_hlo_module *m, cx_hlo_attr_kind kind,
                                    const void *text, size_t n)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, kind);
  if (attr == NULL) return NULL;
  attr->as.text = cx_hlo_str_copy(m, text, n);
  return attr->as.text.s == NULL ? NULL : attr;
}

const cx_hlo_attr *cx_hlo_attr_unit(cx_hlo_module *m)
{
  return cx_hlo_attr_new(m, CX_HLO_ATTR_UNIT);
}

const cx_hlo_attr *cx_hlo_attr_bool(cx_hlo_module *m, bool v)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_BOOL);
  if (attr != NULL) attr->as.flag = v;
  return attr;
}

const cx_hlo_attr *cx_hlo_attr_int(cx_hlo_module *m, cx_hlo_elem elem,
                                   int64_t v)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_INT);
  if (attr == NULL) return NULL;
  attr->elem = elem;
  attr->as.integer = v;
  return attr;
}

const cx_hlo_attr *cx_hlo_attr_ints(cx_hlo_module *m, cx_hlo_elem elem,
                                    const int64_t *v, size_t n)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_ARRAY);
  if (attr == NULL) return NULL;
  attr->elem = elem;
  attr->as.ints = (cx_hlo_ints){ cx_hlo_ints_copy(m, v, n), n };
  return attr->as.ints.v == NULL ? NULL : attr;
}

const cx_hlo_attr *cx_hlo_attr_choice(cx_hlo_module *m, cx_hlo_choice family,
                                      int64_t value)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_CHOICE);
  if (attr == NULL) return NULL;
  attr->which = (int)family;
  attr->as.integer = value;
  return attr;
}

// A copy of a struct of ops.def and of its lists; NULL: there is no memory.
static const void *copy_struct(cx_hlo_module *m, cx_hlo_struct which,
                               const void *fields)
{
  const cx_hlo_struct_info info = cx_hlo_struct_info_of(which);
  char *copy = cx_arena_alloc(&m->arena, info.size);
  if (copy == NULL) return NULL;
  memcpy(copy, fields, info.size);
  for (size_t i = 0; i < info.n_fields; i++) {
    const cx_hlo_field_kind kind = info.fields[i].kind;
    if (kind != CX_HLO_FIELD_INTS && kind != CX_HLO_FIELD_LIST) continue;
    cx_hlo_ints list;
    memcpy(&list, copy + info.fields[i].offset, sizeof list);
    list.v = cx_hlo_ints_copy(m, list.v, list.n);
    if (list.v == NULL) return NULL;
    memcpy(copy + info.fields[i].offset, &list, sizeof list);
  }
  return copy;
}

const cx_hlo_attr *cx_hlo_attr_struct(cx_hlo_module *m, cx_hlo_struct which,
                                      const void *fields)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_STRUCT);
  if (attr == NULL) return NULL;
  attr->which = (int)which;
  attr->as.fields = copy_struct(m, which, fields);
  return attr->as.fields == NULL ? NULL : attr;
}

const cx_hlo_attr *cx_hlo_attr_conv(cx_hlo_module *m,
                                    const cx_hlo_conv_numbers *conv)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_CONV);
  if (attr == NULL) return NULL;
  attr->as.conv = copy_struct(m, CX_HLO_STRUCT_CONV_RAW, conv);
  return attr->as.conv == NULL ? NULL : attr;
}

const cx_hlo_attr *cx_hlo_attr_matrix(cx_hlo_module *m, const int64_t *v,
                                      size_t rows, size_t columns)
{
  const int64_t dims[2] = { (int64_t)rows, (int64_t)columns };
  const cx_hlo_type type = { CX_HLO_I64, 2, dims };
  return cx_hlo_attr_elements(m, &type, v, rows * columns * sizeof *v);
}

static bool all_equal(const unsigned char *data, size_t size, size_t element)
{
  return size > element && memcmp(data, data + element, size - element) == 0;
}

const cx_hlo_attr *cx_hlo_attr_elements(cx_hlo_module *m,
                                        const cx_hlo_type *type,
                                        const void *data, size_t size)
{
  cx_hlo_attr *attr = cx_hlo_attr_new(m, CX_HLO_ATTR_ELEMENTS);
  const size_t element = cx_hlo_elem_bytes(type->elem);
  const int64_t n = cx_hlo_type_elements(type);
  bool splat = n != 1 && size == element && n != 0;
  if (all_equal(data, size, element)) {
    size = element;
    splat = true;
  }
  if (n == 0) size = 0;
  unsigned char *copy = cx_arena_alloc(&m->arena, size);
  const int64_t *dims = cx_hlo_ints_copy(m, type->dims, type->rank);
  if (attr == NULL || copy == NULL || dims == NULL) return NULL;
  if (size != 0) memcpy(copy, data, size);
  for (size_t i = 0; type->elem == CX_HLO_I1 && i < size; i++) {
    copy[i] = copy[i] != 0;
  }
  attr->as.elements = (cx_hlo_elements){
    .type.tensor = { type->elem, type->rank, dims },
    .data = copy,
    .size = size,
    .splat = splat,
  };
  return attr;
}
