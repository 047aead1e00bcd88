// jit/index: operations whose elements come from other indices of the operand.
//
// Each says before which dimensions of its result an index must be cut so that
// every part belongs to one run of an operand's dimensions (cuts), and makes
// the operand's location of the result's (emit). Reads outside of an operand do
// not happen: indices that are the same in all lanes are held within it, lanes
// that are outside are masked.
#include "hlo/infer.h"
#include "jit/inside.h"

static uint32_t bit(size_t d)
{
  return (uint32_t)1 << d;
}

static void begin(cpu_jit_loc *out, const cpu_jit_loc *p)
{
  *out = (cpu_jit_loc){ .mask = p->mask, .mask_level = p->mask_level };
}

// ---- broadcast_in_dim and transpose ----

// to[k]: the result's dimension that is the operand's dimension k.
typedef struct mapping {
  const cx_hlo_type *from, *result;
  int to[CPU_JIT_RANK];
} mapping;

static mapping mapping_of(const cx_hlo_op *op)
{
  mapping m = { .from = cpu_jit_type(op->operands[0]),
                .result = cpu_jit_type(&op->results[0]) };
  if (op->kind == CX_HLO_OP_TRANSPOSE) {
    const cx_hlo_ints p = cx_hlo_op_ints(op, CX_HLO_A_PERMUTATION);
    for (size_t i = 0; i < p.n; i++) m.to[p.v[i]] = (int)i;
  } else if (op->kind == CX_HLO_OP_BROADCAST) {
    const int extra = (int)(m.result->rank - m.from->rank);
    for (int k = 0; k < (int)m.from->rank; k++) m.to[k] = extra + k;
  } else {
    const cx_hlo_ints d = cx_hlo_op_ints(op, CX_HLO_A_BROADCAST_DIMENSIONS);
    for (size_t k = 0; k < d.n; k++) m.to[k] = (int)d.v[k];
  }
  return m;
}

// The operand's dimension that is the result's dimension d, or -1: it is not
// in the operand, or stretched.
static int source_of(const mapping *m, size_t d)
{
  for (size_t k = 0; k < m->from->rank; k++) {
    if (m->to[k] == (int)d && m->from->dims[k] == m->result->dims[d]) {
      return (int)k;
    }
  }
  return -1;
}

// Whether the operand's dimension b follows a, but for dimensions of size 1.
static bool follows(const cx_hlo_type *t, int a, int b)
{
  if (b <= a) return false;
  for (int k = a + 1; k < b; k++) {
    if (t->dims[k] != 1) return false;
  }
  return true;
}

static uint32_t mapping_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  const mapping m = mapping_of(op);
  const uint32_t need = cpu_jit_need_of(env, op->operands[0]);
  uint32_t cuts = 0;
  bool any = false;
  int last = -1;
  for (size_t d = 0; d < m.result->rank; d++) {
    if (m.result->dims[d] == 1) continue;
    const int k = source_of(&m, d);
    if (any && !(k < 0 && last < 0) &&
        !(k >= 0 && last >= 0 && follows(m.from, last, k))) {
      cuts |= bit(d);
    }
    if (any && k >= 0 && last >= 0) {
      for (int j = last + 1; j <= k; j++) {
        if ((need >> j & 1) != 0) cuts |= bit(d);
      }
    }
    any = true;
    last = k;
  }
  return cuts;
}

static int part_of(const cpu_jit_loc *p, int d)
{
  int first = 0;
  for (int i = 0; i < p->n; i++) {
    first += p->part[i].dims;
    if (d < first) return i;
  }
  return p->n - 1;
}

static cpu_jit_val emit_mapping(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p)
{
  const mapping m = mapping_of(op);
  cpu_jit_loc at;
  cpu_jit_loc_cut(env, m.result, p, mapping_cuts(env, op), &at);
  cpu_jit_loc from;
  begin(&from, p);
  int current = -1;
  for (size_t k = 0; k < m.from->rank; k++) {
    const bool real =
        m.from->dims[k] != 1 && source_of(&m, (size_t)m.to[k]) == (int)k;
    const int part = real ? part_of(&at, m.to[k]) : -1;
    if (from.n > 0 && (!real || (part == current && current >= 0))) {
      from.part[from.n - 1].dims++;
      continue;
    }
    current = part;
    if (real) {
      cpu_jit_loc_push(&from, 1, at.part[part].size, at.part[part].ix);
    } else {
      cpu_jit_loc_push(&from, 1, 1, cpu_jit_ix_const(env, 0));
    }
  }
  return cpu_jit_emit(env, op->operands[0], cpu_jit_loc_of(env, &from));
}

// ---- reshape ----

// Where the running product of the first dimensions of `t` is `count`: the
// first such dimension; -1: nowhere.
static int boundary(const cx_hlo_type *t, int64_t count)
{
  int64_t product = 1;
  for (size_t d = 0; d < t->rank; d++) {
    if (product == count) return (int)d;
    product *= t->dims[d];
  }
  return -1;
}

static uint32_t reshape_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  const cx_hlo_type *from = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *to = cpu_jit_type(&op->results[0]);
  const uint32_t need = cpu_jit_need_of(env, op->operands[0]);
  uint32_t cuts = 0;
  int64_t product = 1;
  for (size_t k = 0; k < from->rank; k++) {
    const int d = (need >> k & 1) != 0 ? boundary(to, product) : -1;
    if (d > 0) cuts |= bit((size_t)d);
    product *= from->dims[k];
  }
  return cuts;
}

static cpu_jit_val emit_reshape(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p)
{
  const cx_hlo_type *from = cpu_jit_type(op->operands[0]);
  cpu_jit_loc out;
  begin(&out, p);
  cpu_jit_ix sum = cpu_jit_ix_const(env, 0);
  int64_t size = 1;
  size_t k = 0;
  for (int i = 0; i < p->n; i++) {
    const cpu_jit_part *part = &p->part[i];
    if (size == 1) {
      sum = part->ix;
    } else if (part->size != 1) {
      sum = cpu_jit_ix_scale(env, sum, part->size);
      sum = cpu_jit_ix_add(env, sum, part->ix);
    }
    size *= part->size;
    int64_t product = 1;
    size_t end = k;
    while (end < from->rank && product < size) product *= from->dims[end++];
    if (product != size || end == k) continue;
    cpu_jit_loc_push(&out, (int)(end - k), size, sum);
    k = end;
    size = 1;
  }
  if (out.n > 0) {
    out.part[out.n - 1].dims += (int)(from->rank - k);
  } else if (from->rank > 0) {
    cpu_jit_loc_push(&out, (int)from->rank, 1, cpu_jit_ix_const(env, 0));
  }
  return cpu_jit_emit(env, op->operands[0], cpu_jit_loc_of(env, &out));
}

// ---- slice, reverse and pad ----

// One dimension: element i of the result is element (i * scale + offset) / gap
// of the operand.
typedef struct affine_index {
  bool plain;  // element i
  int64_t scale, offset, gap;
  const cx_hlo_value *start;  // added to the offset; NULL: none
} affine_index;

static affine_index affine_of(const cx_hlo_op *op, size_t d)
{
  const int64_t n = cpu_jit_type(op->operands[0])->dims[d];
  affine_index a = { .plain = n == cpu_jit_type(&op->results[0])->dims[d],
                     .scale = 1,
                     .gap = 1 };
  switch (op->kind) {
    case CX_HLO_OP_SLICE:
      a.scale = cx_hlo_op_ints(op, CX_HLO_A_STRIDES).v[d];
      a.offset = cx_hlo_op_ints(op, CX_HLO_A_START_INDICES).v[d];
      break;
    case CX_HLO_OP_DYNAMIC_SLICE: a.start = op->operands[1 + d]; break;
    case CX_HLO_OP_REVERSE:
      a.plain = !cx_hlo_ints_have(cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS),
                                  (int64_t)d);
      a.scale = -1;
      a.offset = n - 1;
      break;
    default:
      a.offset = -cx_hlo_op_ints(op, CX_HLO_A_EDGE_PADDING_LOW).v[d];
      a.gap = cx_hlo_op_ints(op, CX_HLO_A_INTERIOR_PADDING).v[d] + 1;
      a.plain &= a.offset == 0 && a.gap == 1;
      break;
  }
  return a;
}

static uint32_t affine_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  const size_t rank = cpu_jit_type(&op->results[0])->rank;
  uint32_t cuts = cpu_jit_need_of(env, op->operands[0]);
  for (size_t d = 0; d < rank; d++) {
    const affine_index a = affine_of(op, d);
    if (a.plain) continue;
    cuts |= bit(d);
    if (a.scale != 1 || a.gap != 1) cuts |= bit(d + 1);
  }
  return cuts & (bit(rank) - 1);
}

static cpu_jit_val emit_affine(cpu_jit_env *env, const cx_hlo_op *op,
                               const cpu_jit_loc *p)
{
  const cx_hlo_type *from = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *to = cpu_jit_type(&op->results[0]);
  const bool pads = op->kind == CX_HLO_OP_PAD;
  cpu_jit_val padding = { 0 };
  if (pads) padding = cpu_jit_emit(env, op->operands[1], &env->scalar);
  if (pads && cx_hlo_type_elements(from) == 0) return padding;
  cpu_jit_loc out;
  cpu_jit_loc_cut(env, to, p, affine_cuts(env, op), &out);
  cpu_jit_inside in = { 0 };
  size_t d = 0;
  for (int i = 0; i < out.n; i++) {
    cpu_jit_part *part = &out.part[i];
    const affine_index a = affine_of(op, d);
    if (!a.plain) {
      const int64_t inner = to->dims[d] == 0 ? 0 : part->size / to->dims[d];
      part->ix = cpu_jit_ix_scale(env, part->ix, a.scale);
      part->ix = cpu_jit_ix_offset(env, part->ix, a.offset * inner);
      if (a.start != NULL) {
        const cpu_jit_ix start = cpu_jit_start_index(
            env, a.start, &env->scalar, from->dims[d] - to->dims[d]);
        part->ix =
            cpu_jit_ix_add(env, part->ix, cpu_jit_ix_scale(env, start, inner));
      }
      if (pads) {
        const int64_t reach = (from->dims[d] - 1) * a.gap + 1;
        cpu_jit_within(env, &part->ix, reach * inner, &in);
        cpu_jit_spaced(env, &part->ix, a.gap, &in);
      }
      part->size = from->dims[d] * inner;
    }
    d += (size_t)part->dims;
  }
  return cpu_jit_inside_or(env, op->operands[0], &out, &in, padding);
}

// ---- concatenate ----

static uint32_t concatenate_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  uint32_t cuts = bit((size_t)cx_hlo_op_int(op, CX_HLO_A_DIMENSION));
  for (size_t i = 0; i < op->n_operands; i++) {
    cuts |= cpu_jit_need_of(env, op->operands[i]);
  }
  return cuts;
}

static cpu_jit_val emit_concatenate(cpu_jit_env *env, const cx_hlo_op *op,
                                    const cpu_jit_loc *p)
{
  const cx_hlo_type *to = cpu_jit_type(&op->results[0]);
  const size_t d = (size_t)cx_hlo_op_int(op, CX_HLO_A_DIMENSION);
  if (cx_hlo_type_elements(to) == 0) return cpu_jit_no_value(env, to->elem);
  cpu_jit_loc cut;
  cpu_jit_loc_cut(env, to, p, concatenate_cuts(env, op), &cut);
  const int at = part_of(&cut, (int)d);
  const cpu_jit_part whole = cut.part[at];
  const int64_t inner = whole.size / to->dims[d];
  cpu_jit_val out = { 0 };
  int64_t first = 0;
  for (size_t i = 0; i < op->n_operands; i++) {
    const int64_t n = cpu_jit_type(op->operands[i])->dims[d] * inner;
    if (n == 0) continue;
    cpu_jit_loc from = cut;
    cpu_jit_inside in = { 0 };
    cpu_jit_ix ix = cpu_jit_ix_offset(env, whole.ix, -first);
    cpu_jit_within(env, &ix, n, &in);
    from.part[at] = (cpu_jit_part){ ix, n, whole.dims };
    // The first has no other to give way to.
    if (out.re == NULL && !in.never) {
      const cpu_jit_loc *q = cpu_jit_loc_of(env, &from);
      if (in.lanes != NULL) {
        q = cpu_jit_loc_masked(env, q, in.lanes, in.lanes_level);
      }
      out = cpu_jit_emit(env, op->operands[i], q);
    } else {
      out = cpu_jit_inside_or(env, op->operands[i], &from, &in, out);
    }
    first += n;
  }
  return out;
}

// ---- iota ----

static uint32_t iota_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  (void)env;
  const size_t d = (size_t)cx_hlo_op_int(op, CX_HLO_A_IOTA_DIMENSION);
  const size_t rank = cpu_jit_type(&op->results[0])->rank;
  return (bit(d) | bit(d + 1)) & (bit(rank) - 1);
}

static cpu_jit_val emit_iota(cpu_jit_env *env, const cx_hlo_op *op,
                             const cpu_jit_loc *p)
{
  const cx_hlo_type *t = cpu_jit_type(&op->results[0]);
  const int64_t d = cx_hlo_op_int(op, CX_HLO_A_IOTA_DIMENSION);
  cpu_jit_loc at;
  cpu_jit_loc_cut(env, t, p, iota_cuts(env, op), &at);
  cpu_jit_ix ix = at.part[part_of(&at, (int)d)].ix;
  cpu_jit_val v = { .elem = CX_HLO_I64,
                    .level = ix.level,
                    .wide = !cpu_jit_ix_same(&ix) };
  v.re = v.wide ? cpu_jit_ix_widen(env, ix) : ix.base;
  if (v.wide && env->small) v.elem = CX_HLO_I32;
  return cpu_jit_convert(env, v, t->elem);
}

// ---- all ----

static const struct {
  uint32_t (*cuts)(cpu_jit_env *env, const cx_hlo_op *op);
  cpu_jit_val (*emit)(cpu_jit_env *env, const cx_hlo_op *op,
                      const cpu_jit_loc *p);
} rules[CX_HLO_OP_COUNT] = {
  [CX_HLO_OP_BROADCAST] = { mapping_cuts, emit_mapping },
  [CX_HLO_OP_BROADCAST_IN_DIM] = { mapping_cuts, emit_mapping },
  [CX_HLO_OP_TRANSPOSE] = { mapping_cuts, emit_mapping },
  [CX_HLO_OP_RESHAPE] = { reshape_cuts, emit_reshape },
  [CX_HLO_OP_SLICE] = { affine_cuts, emit_affine },
  [CX_HLO_OP_DYNAMIC_SLICE] = { affine_cuts, emit_affine },
  [CX_HLO_OP_REVERSE] = { affine_cuts, emit_affine },
  [CX_HLO_OP_PAD] = { affine_cuts, emit_affine },
  [CX_HLO_OP_CONCATENATE] = { concatenate_cuts, emit_concatenate },
  [CX_HLO_OP_IOTA] = { iota_cuts, emit_iota },
  [CX_HLO_OP_GATHER] = { cpu_jit_gather_cuts, cpu_jit_gather_emit },
  [CX_HLO_OP_REDUCE_WINDOW] = { cpu_jit_window_cuts, cpu_jit_window_emit },
};

uint32_t cpu_jit_index_cuts(cpu_jit_env *env, const cx_hlo_op *op)
{
  // A constant has none.
  return rules[op->kind].cuts == NULL ? 0 : rules[op->kind].cuts(env, op);
}

cpu_jit_val cpu_jit_index_emit(cpu_jit_env *env, const cx_hlo_op *op,
                               const cpu_jit_loc *p)
{
  return rules[op->kind].emit(env, op, p);
}
