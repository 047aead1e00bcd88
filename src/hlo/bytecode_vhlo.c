// hlo/bytecode: StableHLO's names and attributes of VHLO's operations.
//
// An operation of VHLO has StableHLO's name, operands, results and regions, and
// a version. bytecode_property.c says which properties it has. Source:
// StableHLO's VhloOps.td and VhloToVersion.cpp.
#include <stdlib.h>
#include <string.h>

#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

// ---- names ----

static bool is(cx_hlo_str s, const char *text)
{
  return cx_hlo_str_equal(s, text);
}

// gather_v2: the number behind "_v", which is cut off; 0: there is none.
static unsigned cut_version(cx_hlo_str *name)
{
  size_t n = name->n;
  while (n > 0 && name->s[n - 1] >= '0' && name->s[n - 1] <= '9') n--;
  if (n < 3 || n == name->n || name->n - n > 3) return 0;
  if (memcmp(name->s + n - 2, "_v", 2) != 0) return 0;
  const unsigned version = (unsigned)strtoul(name->s + n, NULL, 10);
  name->n = n - 2;
  return version;
}

static cx_hlo_op_role role_of(cx_hlo_str name)
{
  if (is(name, "builtin.module")) return CX_HLO_ROLE_MODULE;
  if (is(name, "func.func")) return CX_HLO_ROLE_FUNC;
  return is(name, "builtin.unrealized_conversion_cast") ? CX_HLO_ROLE_CAST
                                                        : CX_HLO_ROLE_PLAIN;
}

// The operation of ops.def with this name; OTHER: there is none.
static cx_hlo_op_kind known_op(cx_hlo_str dialect, cx_hlo_str name)
{
  char full[64];
  if (dialect.n + 1 + name.n > sizeof full) return CX_HLO_OP_OTHER;
  memcpy(full, dialect.s, dialect.n);
  full[dialect.n] = '.';
  memcpy(full + dialect.n + 1, name.s, name.n);
  return cx_hlo_op_find(full, dialect.n + 1 + name.n);
}

calx_status *cx_hlo_vhlo_name(cx_hlo_bytecode *b, cx_hlo_str dialect,
                              cx_hlo_str name, cx_hlo_op_name *out)
{
  cx_text text = { 0 };
  name.n = strnlen(name.s, name.n);
  dialect.n = strnlen(dialect.s, dialect.n);
  out->is_vhlo = is(dialect, "vhlo");
  if (out->is_vhlo) {
    out->version = cut_version(&name);
    dialect.s = is(name, "func") || is(name, "call") ? "func" : "stablehlo";
    dialect.n = strlen(dialect.s);
  }
  out->kind = known_op(dialect, name);
  if (out->kind != CX_HLO_OP_OTHER) {
    out->name.s = cx_hlo_op_info_of(out->kind)->name;
    out->name.n = dialect.n + 1 + name.n;
    out->role = role_of(out->name);
    return NULL;
  }
  cx_text_append_n(&text, dialect.s, dialect.n);
  cx_text_char(&text, '.');
  cx_text_append_n(&text, name.s, name.n);
  calx_status *status = cx_hlo_bytes_take_text(
      b, b->sections[CX_HLO_SECTION_DIALECTS].at, &text, &out->name);
  if (status == NULL) out->role = role_of(out->name);
  return status;
}

// ---- fields of structs ----

// The struct attributes of an operation, while their fields are read.
typedef struct open_struct {
  cx_hlo_attr_id attr;
  bool is_absent;  // a field says that there is none
  union {
    char bytes[sizeof(cx_hlo_conv_numbers)];  // the largest
    cx_hlo_conv_numbers conv;
    cx_hlo_dot_numbers dot;
    cx_hlo_gather_numbers gather;
    cx_hlo_scatter_numbers scatter;
    cx_hlo_algorithm algorithm;
    cx_hlo_channel channel;
  } as;
} open_struct;

typedef struct open_structs {
  open_struct v[2];
  size_t n;
} open_structs;

static open_struct *struct_for(open_structs *all, cx_hlo_attr_id attr)
{
  for (size_t i = 0; i < all->n; i++) {
    if (all->v[i].attr == attr) return &all->v[i];
  }
  open_struct *s = &all->v[all->n++];
  *s = (open_struct){ .attr = attr };
  return s;
}

static calx_status *take_ints(cx_hlo_bytecode *b, const cx_hlo_attr *attr,
                              const char *at, cx_hlo_ints *out)
{
  const cx_hlo_elements *e = &attr->as.elements;
  if (attr->kind != CX_HLO_ATTR_ELEMENTS || e->type.tensor.rank != 1 ||
      e->type.tensor.elem != CX_HLO_I64 ||
      e->type.tensor.dims[0] > CX_HLO_MOST_DIMS) {
    return CX_HLO_BYTES_FAIL(b, at, "a list of dimensions is tensor<Nxi64>");
  }
  out->n = (size_t)e->type.tensor.dims[0];
  int64_t *v = CX_ARENA_ARRAY(&b->r->module->arena, int64_t, out->n + 1);
  if (v == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < out->n; i++) v[i] = cx_hlo_elements_int(e, i);
  out->v = v;
  return NULL;
}

static bool is_none(const cx_hlo_attr *attr)
{
  const cx_hlo_non_tensor *type = attr->as.type.non_tensor;
  return attr->kind == CX_HLO_ATTR_TYPE && type != NULL &&
         type->kind == CX_HLO_NON_TENSOR_TEXT && is(type->text, "none");
}

static calx_status *take_field(cx_hlo_bytecode *b, open_struct *s,
                               const cx_hlo_property *p,
                               const cx_hlo_attr *attr, const char *at)
{
  char *to = s->as.bytes + p->field->offset;
  const cx_hlo_field_kind kind = p->field->kind;
  if (is_none(attr)) {
    s->is_absent = true;
    return NULL;
  }
  if (kind == CX_HLO_FIELD_INTS || kind == CX_HLO_FIELD_LIST) {
    cx_hlo_ints list;
    CALX_TRY(take_ints(b, attr, at, &list));
    memcpy(to, &list, sizeof list);
    return NULL;
  }
  int64_t v = 0;
  if (kind == CX_HLO_FIELD_INT && attr->kind == CX_HLO_ATTR_INT) {
    v = attr->as.integer;
  } else if (kind == CX_HLO_FIELD_FLAG && attr->kind == CX_HLO_ATTR_BOOL) {
    v = attr->as.flag;
  } else if (kind == CX_HLO_FIELD_ELEM && attr->kind == CX_HLO_ATTR_TYPE &&
             attr->as.type.non_tensor != NULL &&
             attr->as.type.non_tensor->kind == CX_HLO_NON_TENSOR_ELEMENT) {
    v = (int64_t)attr->as.type.non_tensor->elem;
  } else {
    return CX_HLO_BYTES_FAIL(b, at, "'%s' has a value of another kind",
                             p->name);
  }
  memcpy(to, &v, sizeof v);
  return NULL;
}

static calx_status *push_structs(cx_hlo_bytecode *b, const open_structs *all,
                                 cx_hlo_op_kind kind, const char *at)
{
  cx_hlo_module *m = b->r->module;
  for (size_t i = 0; i < all->n; i++) {
    const open_struct *s = &all->v[i];
    const bool is_channel = s->attr == CX_HLO_A_CHANNEL_HANDLE;
    const bool peer = kind == CX_HLO_OP_SEND || kind == CX_HLO_OP_RECV;
    if (s->is_absent) continue;
    if (is_channel && s->as.channel.handle == 0 && !peer) continue;
    const cx_hlo_struct which =
        cx_hlo_vhlo_struct(cx_hlo_name_info_of(s->attr));
    if (which == CX_HLO_STRUCT_CONV_RAW) {
      CALX_TRY(cx_hlo_check_conv(b->r, at, &s->as.conv));
    }
    CALX_TRY(cx_hlo_push_attr(b->r, s->attr,
                              which == CX_HLO_STRUCT_CONV_RAW
                                  ? cx_hlo_attr_conv(m, &s->as.conv)
                                  : cx_hlo_attr_struct(m, which, s->as.bytes)));
  }
  return NULL;
}

// ---- attributes ----

// A name as the symbol of a function; a list of names as one of symbols.
static calx_status *make_symbols(cx_hlo_bytecode *b, const cx_hlo_attr **attr)
{
  const cx_hlo_attr *from = *attr;
  cx_hlo_reader *r = b->r;
  if (from->kind == CX_HLO_ATTR_STRING) {
    cx_hlo_attr *symbol = cx_hlo_attr_new(r->module, CX_HLO_ATTR_SYMBOL);
    if (symbol != NULL) symbol->as.text = from->as.text;
    return cx_hlo_reader_attr(symbol, attr);
  }
  if (from->kind != CX_HLO_ATTR_LIST) return NULL;
  cx_hlo_attr *list = cx_hlo_attr_new(r->module, CX_HLO_ATTR_LIST);
  const cx_hlo_attr **items =
      CX_ARENA_ARRAY(&r->module->arena, const cx_hlo_attr *, from->as.list.n);
  if (list == NULL || items == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < from->as.list.n; i++) {
    items[i] = from->as.list.items[i];
    if (items[i]->kind == CX_HLO_ATTR_STRING) {
      CALX_TRY(make_symbols(b, &items[i]));
    }
  }
  list->as.list.items = items;
  list->as.list.n = from->as.list.n;
  *attr = list;
  return NULL;
}

// Whether all numbers of a literal are the default; of a list that has none,
// whether it is empty.
static bool all_are(const cx_hlo_elements *e, const cx_hlo_attr_rule *rule)
{
  const bool no_default = rule->id == CX_HLO_A_KNOWN_EXPANDING_DIMENSIONS ||
                          rule->id == CX_HLO_A_KNOWN_NONEXPANDING_DIMENSIONS ||
                          rule->id == CX_HLO_A_SOURCE_TARGET_PAIRS;
  const size_t n =
      e->splat ? 1 : e->size / cx_hlo_elem_bytes(e->type.tensor.elem);
  if (no_default) return e->size == 0;
  for (size_t i = 0; i < n; i++) {
    if (cx_hlo_elements_int(e, i) != rule->fallback) return false;
  }
  return true;
}

// An empty list, or one of default precisions.
static bool is_default_list(const cx_hlo_attr *list)
{
  for (size_t i = 0; i < list->as.list.n; i++) {
    const cx_hlo_attr *item = list->as.list.items[i];
    if (item->kind != CX_HLO_ATTR_CHOICE || item->which != CX_HLO_PRECISION ||
        item->as.integer != 0) {
      return false;
    }
  }
  return true;
}

// Whether an attribute that may be absent has the value that says so in VHLO.
static bool means_absent(const cx_hlo_attr *a, const cx_hlo_attr_rule *rule)
{
  switch (a->kind) {
    case CX_HLO_ATTR_BOOL: return a->as.flag == (rule->fallback != 0);
    case CX_HLO_ATTR_INT: return a->as.integer == rule->fallback;
    case CX_HLO_ATTR_STRING: return a->as.text.n == 0;
    case CX_HLO_ATTR_LIST: return is_default_list(a);
    case CX_HLO_ATTR_DICT: return a->as.dict.n == 0;
    case CX_HLO_ATTR_CHOICE:
      return a->which == CX_HLO_COMPARISON_TYPE && a->as.integer == 0;
    case CX_HLO_ATTR_STRUCT:
      return a->which == CX_HLO_STRUCT_ACCURACY &&
             ((const cx_hlo_accuracy *)a->as.fields)->mode == 0;
    case CX_HLO_ATTR_ELEMENTS: return all_are(&a->as.elements, rule);
    default: return false;
  }
}

static const cx_hlo_attr_rule *rule_of(cx_hlo_op_kind kind, cx_hlo_attr_id id)
{
  const cx_hlo_attr_rule *rule = cx_hlo_op_info_of(kind)->attrs;
  while (rule->id != id) rule++;
  return rule;
}

static calx_status *push_property(cx_hlo_bytecode *b, const cx_hlo_op_name *op,
                                  const cx_hlo_property *p,
                                  const cx_hlo_attr *attr)
{
  if (p->attr == CX_HLO_A_COUNT) return cx_hlo_push_named(b->r, p->name, attr);
  const cx_hlo_name_info *info = cx_hlo_name_info_of(p->attr);
  const cx_hlo_attr_rule *rule = rule_of(op->kind, p->attr);
  if (!rule->required && means_absent(attr, rule)) return NULL;
  if (info->kind == CX_HLO_ATTR_UNIT) attr = cx_hlo_attr_unit(b->r->module);
  if (info->kind == CX_HLO_ATTR_SYMBOL ||
      p->attr == CX_HLO_A_CALLED_COMPUTATIONS) {
    CALX_TRY(make_symbols(b, &attr));
  }
  return cx_hlo_push_attr(b->r, p->attr, attr);
}

static calx_status *take_property(cx_hlo_bytecode *b, const cx_hlo_op_name *op,
                                  const cx_hlo_property *p,
                                  const cx_hlo_attr *attr, const char *at,
                                  open_structs *structs)
{
  if (p->field == NULL) return push_property(b, op, p, attr);
  return take_field(b, struct_for(structs, p->attr), p, attr, at);
}

// Before its fifth version the format has properties among the other
// attributes.
static calx_status *take_dict(cx_hlo_bytecode *b, const cx_hlo_op_name *op,
                              const cx_hlo_attr *dict, const char *at,
                              open_structs *structs)
{
  for (size_t i = 0; i < dict->as.dict.n; i++) {
    const cx_hlo_named *item = &dict->as.dict.items[i];
    size_t k = 0;
    while (k < op->n_properties && !is(item->name, op->properties[k].name)) k++;
    if (k < op->n_properties) {
      CALX_TRY(
          take_property(b, op, &op->properties[k], item->attr, at, structs));
    } else {
      CALX_TRY(CX_HLO_PUSH(b->r->named_stack, *item));
    }
  }
  return NULL;
}

static calx_status *take_properties(cx_hlo_bytecode *b,
                                    const cx_hlo_op_name *op,
                                    cx_hlo_bytes properties, const char *at,
                                    open_structs *structs)
{
  for (size_t i = 0; properties.at != properties.end; i++) {
    const cx_hlo_attr *attr = NULL;
    if (i == op->n_properties) {
      return CX_HLO_BYTES_FAIL(b, properties.at,
                               "'%.*s' has more than %zu properties",
                               (int)op->name.n, op->name.s, i);
    }
    CALX_TRY(cx_hlo_bytes_attr(b, &properties, &attr));
    CALX_TRY(take_property(b, op, &op->properties[i], attr, at, structs));
  }
  return NULL;
}

calx_status *cx_hlo_vhlo_push(cx_hlo_bytecode *b, cx_hlo_op_name *op,
                              const cx_hlo_bytes_properties *properties,
                              const cx_hlo_attr *dict, const char *at)
{
  open_structs structs = { .n = 0 };
  if (properties == NULL && dict == NULL) return NULL;
  CALX_TRY(cx_hlo_vhlo_properties(b, op));
  if (properties != NULL) {
    CALX_TRY(take_properties(b, op, properties->bytes, at, &structs));
  }
  if (dict != NULL) CALX_TRY(take_dict(b, op, dict, at, &structs));
  return push_structs(b, &structs, op->kind, at);
}
