// hlo/ops: the rows of ops.def as tables, and their look-up by name.
#include "hlo/ops.h"

#include <string.h>

#include "base/thread.h"

#define B CX_HLO_CLASS_BOOL
#define S CX_HLO_CLASS_SIGNED
#define U CX_HLO_CLASS_UNSIGNED
#define F CX_HLO_CLASS_FLOAT
#define C CX_HLO_CLASS_COMPLEX
#define ANY CX_HLO_CLASS_ANY
#define MANY(n) (-1 - (n))

// The attributes of an operation. The last row is not counted by n_attrs: it is
// there because C has no empty arrays.
#define REQ(id) { CX_HLO_A_##id, true, 0 },
#define OPT(id) { CX_HLO_A_##id, false, 0 },
#define DEF(id, value) { CX_HLO_A_##id, false, value },
#define NONE
#define END                  \
  {                          \
    CX_HLO_A_COUNT, false, 0 \
  }
#define ZEROS 0
#define ONES 1

#define CX_HLO_OP(id, name, operands, results, regions, elems, rule, attrs, \
                  form)                                                     \
  static const cx_hlo_attr_rule attrs_of_##id[] = { attrs END };
#include "hlo/ops.def"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const cx_hlo_op_info ops[CX_HLO_OP_COUNT] = {
  [CX_HLO_OP_OTHER] = { .name = "?",
                        .operands = MANY(0),
                        .results = MANY(0),
                        .regions = MANY(0) },
#define CX_HLO_OP(id, text, n_operands, n_results, n_regions, classes, rule, \
                  list, form)                                                \
  [CX_HLO_OP_##id] = { .name = text,                                         \
                       .operands = n_operands,                               \
                       .results = n_results,                                 \
                       .regions = n_regions,                                 \
                       .elems = classes,                                     \
                       .attrs = attrs_of_##id,                               \
                       .n_attrs = COUNT(attrs_of_##id) - 1 },
#include "hlo/ops.def"
};

static const cx_hlo_name_info names_of_attrs[CX_HLO_A_COUNT] = {
#define CX_HLO_NAME(id, text, what, more) \
  [CX_HLO_A_##id] = { text, CX_HLO_ATTR_##what, more },
#include "hlo/ops.def"
};

typedef struct family {
  const char *name;
  const char *values[6];
} family;

static const family families[CX_HLO_CHOICE_COUNT] = {
#define CX_HLO_CHOICE(id, text, ...) [CX_HLO_##id] = { text, { __VA_ARGS__ } },
#include "hlo/ops.def"
};

#define INTS(member, text) FIELD(INTS, member, text)
#define LIST(member, text) FIELD(LIST, member, text)
#define INT(member, text) FIELD(INT, member, text)
#define FLAG(member, text) FIELD(FLAG, member, text)
#define ELEM(member, text) FIELD(ELEM, member, text)
#define REAL(member, text) FIELD(REAL, member, text)
#define MODE(member, text) FIELD(MODE, member, text)
#define FIELD(how, member, text) \
  { text, CX_HLO_FIELD_##how, offsetof(struct_type, member) },

#define CX_HLO_STRUCT(id, type, text, list)                \
  static const cx_hlo_field *fields_of_##id(size_t *out_n) \
  {                                                        \
    typedef type struct_type;                              \
    static const cx_hlo_field fields[] = { list };         \
    *out_n = COUNT(fields);                                \
    return fields;                                         \
  }
#include "hlo/ops.def"

static const struct {
  const char *name;
  size_t size;
  const cx_hlo_field *(*fields)(size_t *out_n);
} structs[CX_HLO_STRUCT_COUNT] = {
#define CX_HLO_STRUCT(id, type, text, list) \
  [CX_HLO_STRUCT_##id] = { text, sizeof(type), fields_of_##id },
#include "hlo/ops.def"
};

// ---- look-up ----

const cx_hlo_op_info *cx_hlo_op_info_of(cx_hlo_op_kind kind)
{
  return &ops[(unsigned)kind < CX_HLO_OP_COUNT ? kind : CX_HLO_OP_OTHER];
}

const cx_hlo_name_info *cx_hlo_name_info_of(cx_hlo_attr_id id)
{
  return &names_of_attrs[id];
}

cx_hlo_struct_info cx_hlo_struct_info_of(cx_hlo_struct which)
{
  cx_hlo_struct_info info = { structs[which].name, structs[which].size, NULL,
                              0 };
  info.fields = structs[which].fields(&info.n_fields);
  return info;
}

const char *cx_hlo_op_short(cx_hlo_op_kind kind)
{
  const char *name = cx_hlo_op_info_of(kind)->name;
  const char *dot = strchr(name, '.');
  return dot == NULL ? name : dot + 1;
}

// FNV-1a; open addressing, a quarter full.
static size_t first_slot(const char *s, size_t n)
{
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
  return h ^ h >> 15;
}

// A hash table from names to operations.
static unsigned char slots[512];
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;

static void fill_slots(void)
{
  _Static_assert(CX_HLO_OP_COUNT < 256, "a slot holds a kind in one byte");
  const size_t mask = sizeof slots - 1;
  memset(slots, CX_HLO_OP_OTHER, sizeof slots);
  for (int k = CX_HLO_OP_OTHER + 1; k < CX_HLO_OP_COUNT; k++) {
    size_t at = first_slot(ops[k].name, strlen(ops[k].name)) & mask;
    while (slots[at] != CX_HLO_OP_OTHER) at = (at + 1) & mask;
    slots[at] = (unsigned char)k;
  }
}

static bool same(const char *name, const char *s, size_t n)
{
  return strncmp(name, s, n) == 0 && name[n] == '\0';
}

cx_hlo_op_kind cx_hlo_op_find(const char *s, size_t n)
{
  (void)pthread_once(&slots_once, fill_slots);
  const size_t mask = sizeof slots - 1;
  size_t at = first_slot(s, n) & mask;
  for (; slots[at] != CX_HLO_OP_OTHER; at = (at + 1) & mask) {
    if (same(ops[slots[at]].name, s, n)) return (cx_hlo_op_kind)slots[at];
  }
  return CX_HLO_OP_OTHER;
}

const char *cx_hlo_choice_name(cx_hlo_choice family_id)
{
  return families[family_id].name;
}

const char *cx_hlo_choice_value(cx_hlo_choice family_id, int64_t value)
{
  const int64_t n = COUNT(families[0].values);
  return value < 0 || value >= n ? NULL : families[family_id].values[value];
}

int64_t cx_hlo_choice_find(cx_hlo_choice family_id, const char *s, size_t n)
{
  for (size_t i = 0; i < COUNT(families[0].values); i++) {
    const char *value = families[family_id].values[i];
    if (value != NULL && same(value, s, n)) return (int64_t)i;
  }
  return -1;
}

cx_hlo_choice cx_hlo_choice_family(const char *s, size_t n)
{
  int i = 0;
  while (i < CX_HLO_CHOICE_COUNT && !same(families[i].name, s, n)) i++;
  return (cx_hlo_choice)i;
}

cx_hlo_struct cx_hlo_struct_find(const char *s, size_t n)
{
  int i = 0;
  while (i < CX_HLO_STRUCT_COUNT && !same(structs[i].name, s, n)) i++;
  return (cx_hlo_struct)i;
}

unsigned cx_hlo_elem_class(cx_hlo_elem e)
{
  if (e == CX_HLO_I1) return B;
  if (e == CX_HLO_INDEX) return CX_HLO_CLASS_INDEX;
  if (cx_hlo_elem_is_int(e)) return cx_hlo_elem_is_unsigned(e) ? U : S;
  if (cx_hlo_elem_is_float(e)) return F;
  return cx_hlo_elem_is_complex(e) ? C : 0;
}
