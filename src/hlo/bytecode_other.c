// hlo/bytecode: the properties of operations of other dialects than VHLO.
//
// They are the attributes in the alphabetical order of their names. Source:
// Shardy's ops.td, and what MLIR generates of it.
#include "hlo/bytecode_reader.h"

enum { MOST = 3 };

typedef struct foreign_op {
  const char *name;
  const char *properties[MOST];  // "?name": it may be absent
} foreign_op;

static const foreign_op known[] = {
  { "sdy.mesh", { "mesh", "sym_name" } },
  { "sdy.sharding_constraint", { "sharding" } },
  { "sdy.reshard", { "sharding" } },
  { "sdy.manual_computation",
    { "in_shardings", "manual_axes", "out_shardings" } },
  { "sdy.named_computation", { "?in_shardings", "name", "?out_shardings" } },
  { "sdy.sharding_group", { "group_id" } },
  { "sdy.propagation_barrier", { "allowed_direction" } },
};

static const foreign_op *find(cx_hlo_str name)
{
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (cx_hlo_str_equal(name, known[i].name)) return &known[i];
  }
  return NULL;
}

// attribute | attribute << 1 | is there, of one that may be absent
static calx_status *push_property(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  const char *name)
{
  const char *at = in->at;
  const cx_hlo_attr *attr = NULL;
  if (*name == '?') {
    uint64_t v = 0;
    CALX_TRY(cx_hlo_bytes_number(b, in, &v));
    if (!(v & 1)) return NULL;
    CALX_TRY(cx_hlo_bytes_attr_at(b, (size_t)(v >> 1), at, &attr));
    return cx_hlo_push_named(b->r, name + 1, attr);
  }
  CALX_TRY(cx_hlo_bytes_attr(b, in, &attr));
  return cx_hlo_push_named(b->r, name, attr);
}

calx_status *cx_hlo_other_push(cx_hlo_bytecode *b, cx_hlo_str name,
                               cx_hlo_bytes properties, const char *at)
{
  if (properties.at == properties.end) return NULL;
  const foreign_op *op = find(name);
  if (op == NULL) {
    return CX_HLO_BYTES_UNKNOWN(b, at, "the properties of '%.*s'", (int)name.n,
                                name.s);
  }
  for (size_t i = 0; i < MOST && op->properties[i] != NULL; i++) {
    CALX_TRY(push_property(b, &properties, op->properties[i]));
  }
  if (properties.at == properties.end) return NULL;
  return CX_HLO_BYTES_FAIL(b, properties.at, "'%.*s' has more properties",
                           (int)name.n, name.s);
}
