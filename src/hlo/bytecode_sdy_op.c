// hlo/bytecode: the properties of Shardy's operations.
//
// They are the attributes in the alphabetical order of their names, as MLIR's
// generator writes them. The attributes themselves are text, the same as in a
// text file.
#include "hlo/bytecode_reader.h"

enum { MOST = 3 };

typedef struct sdy_operation {
  const char *name;
  const char *properties[MOST];
} sdy_operation;

static const sdy_operation *find(cx_hlo_str name)
{
  static const sdy_operation list[] = {
    { "sdy.manual_computation",
      { "in_shardings", "manual_axes", "out_shardings" } },
    { "sdy.mesh", { "mesh", "sym_name" } },
    { "sdy.reshard", { "sharding" } },
    { "sdy.sharding_constraint", { "sharding" } },
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (cx_hlo_str_equal(name, list[i].name)) return &list[i];
  }
  return NULL;
}

bool cx_hlo_sdy_has(cx_hlo_str name)
{
  return find(name) != NULL;
}

calx_status *cx_hlo_sdy_push(cx_hlo_bytecode *b, cx_hlo_str name,
                             cx_hlo_bytes properties)
{
  const sdy_operation *op = find(name);
  if (op == NULL || properties.at == properties.end) return NULL;
  for (size_t i = 0; i < MOST && op->properties[i] != NULL; i++) {
    const cx_hlo_attr *attr = NULL;
    CALX_TRY(cx_hlo_bytes_attr(b, &properties, &attr));
    CALX_TRY(cx_hlo_push_named(b->r, op->properties[i], attr));
  }
  return NULL;
}
