// coll/groups: the process groups of the StableHLO specification.
//
// An operation's groups are lists of ids. What an id is depends on the
// operation and on two of its attributes (the specification, "Parallel
// execution" and the sections of the operations):
//
//                            channel_id 0   channel_id > 0   and global ids
//   all_reduce, all_gather,
//   reduce_scatter           replicas       both             flattened
//   all_to_all, permute,
//   collective_broadcast     replicas       partitions       -
//
// In a verified operation the attribute is a matrix of ids. None occurs twice,
// except -1, which is padding. An empty matrix means one group of all ids.
#include "coll/groups.h"

#include "base/alloc.h"
#include "base/status.h"
#include "coll/coll.h"
#include "hlo/ops.h"

typedef enum mode {
  REPLICAS,    // ids are replicas; a group is of one partition
  PARTITIONS,  // ids are partitions; a group is of one replica
  BOTH,        // ids are replicas, with all their partitions
  FLATTENED    // ids are devices
} mode;

const char *cpu_coll_name(const cx_hlo_op *op)
{
  return cx_hlo_op_short(op->kind);
}

static bool pairs_kind(const cx_hlo_op *op)
{
  return op->kind == CX_HLO_OP_COLLECTIVE_PERMUTE;
}

static mode mode_of(const cx_hlo_op *op)
{
  const cx_hlo_channel *channel =
      cx_hlo_op_attr(op, CX_HLO_A_CHANNEL_HANDLE) == NULL
          ? NULL
          : cx_hlo_op_struct(op, CX_HLO_A_CHANNEL_HANDLE);
  if (channel == NULL || channel->handle <= 0) return REPLICAS;
  switch (op->kind) {
    case CX_HLO_OP_ALL_TO_ALL:
    case CX_HLO_OP_COLLECTIVE_PERMUTE:
    case CX_HLO_OP_COLLECTIVE_BROADCAST: return PARTITIONS;
    default: break;
  }
  const bool global =
      cx_hlo_op_attr(op, CX_HLO_A_USE_GLOBAL_DEVICE_IDS) != NULL;
  return global ? FLATTENED : BOTH;
}

static const char *mode_ids(mode m)
{
  return m == FLATTENED    ? "devices"
         : m == PARTITIONS ? "partitions"
                           : "replicas";
}

// ---- the matrix of ids ----

typedef struct matrix {
  const cx_hlo_elements *elements;
  size_t rows, columns;
  bool one_group;    // of all ids; the matrix is empty, or of pairs
  bool all_padding;  // a splat of -1, of any size
} matrix;

static matrix matrix_of(const cx_hlo_op *op)
{
  const cx_hlo_attr *attr =
      cx_hlo_op_attr(op, pairs_kind(op) ? CX_HLO_A_SOURCE_TARGET_PAIRS
                                        : CX_HLO_A_REPLICA_GROUPS);
  const cx_hlo_elements *e = &attr->as.elements;
  matrix out = { .elements = e,
                 .rows = (size_t)e->type.tensor.dims[0],
                 .columns = (size_t)e->type.tensor.dims[1] };
  if (out.rows == 0 || out.columns == 0) out.rows = out.columns = 0;
  out.one_group = out.rows == 0 || pairs_kind(op);
  out.all_padding = out.rows != 0 && e->splat && cx_hlo_elements_int(e, 0) < 0;
  return out;
}

static int64_t id_at(const matrix *x, size_t row, size_t column)
{
  const size_t i = x->elements->splat ? 0 : row * x->columns + column;
  return cx_hlo_elements_int(x->elements, i);
}

// ---- the group of a device ----

// What is needed to turn ids into devices, for the group of `device`.
typedef struct world {
  mode mode;
  uint32_t n_replicas, n_partitions, device;
} world;

static uint32_t ids_in(const world *w)
{
  if (w->mode == PARTITIONS) return w->n_partitions;
  return w->mode == FLATTENED ? w->n_replicas * w->n_partitions : w->n_replicas;
}

static uint32_t own_id(const world *w)
{
  if (w->mode == FLATTENED) return w->device;
  return w->mode == PARTITIONS ? w->device % w->n_partitions
                               : w->device / w->n_partitions;
}

static uint32_t device_of(const world *w, uint32_t id, uint32_t partition)
{
  if (w->mode == FLATTENED) return id;
  if (w->mode != PARTITIONS) return id * w->n_partitions + partition;
  return w->device / w->n_partitions * w->n_partitions + id;
}

// Adds the devices of a row of the matrix; row SIZE_MAX: of all ids.
static void fill(const world *w, const matrix *x, size_t row,
                 cpu_coll_group *out)
{
  const size_t n = row == SIZE_MAX ? ids_in(w) : x->columns;
  const uint32_t partition = w->device % w->n_partitions;
  const uint32_t first = w->mode == BOTH ? 0 : partition;
  const uint32_t end = w->mode == BOTH ? w->n_partitions : partition + 1;
  for (uint32_t p = first; p < end; p++) {
    for (size_t i = 0; i < n; i++) {
      const int64_t id = row == SIZE_MAX ? (int64_t)i : id_at(x, row, i);
      if (id < 0) continue;
      const uint32_t member = device_of(w, (uint32_t)id, p);
      if (member == w->device) out->me = out->n;
      out->members[out->n++] = member;
    }
  }
}

calx_status *cpu_coll_group_of(const cx_hlo_op *op, uint32_t n_replicas,
                               uint32_t n_partitions, uint32_t device,
                               cpu_coll_group *out)
{
  const world w = { mode_of(op), n_replicas, n_partitions, device };
  const matrix x = matrix_of(op);
  const size_t most = (size_t)n_replicas * n_partitions;
  *out = (cpu_coll_group){ .members = cx_calloc(most, sizeof *out->members) };
  if (out->members == NULL) return cx_out_of_memory();
  if (x.all_padding) return NULL;
  if (x.one_group) {
    fill(&w, &x, SIZE_MAX, out);
    return NULL;
  }
  const int64_t own = own_id(&w);
  for (size_t i = 0; i < x.rows; i++) {
    for (size_t k = 0; k < x.columns; k++) {
      if (id_at(&x, i, k) != own) continue;
      fill(&w, &x, i, out);
      return NULL;
    }
  }
  return NULL;
}

int64_t cpu_coll_source_of(const cx_hlo_op *op, uint32_t n_partitions,
                           uint32_t device)
{
  const world w = { mode_of(op), 0, n_partitions, device };
  const matrix x = matrix_of(op);
  const int64_t own = own_id(&w);
  for (size_t i = 0; i < x.rows; i++) {
    if (id_at(&x, i, 1) != own) continue;
    return device_of(&w, (uint32_t)id_at(&x, i, 0), device % n_partitions);
  }
  return -1;
}

// ---- the check of a program ----

static calx_status *bad(const cx_hlo_op *op, const char *what, int64_t a,
                        int64_t b, const char *of)
{
  return cx_invalid("%s: %s %lld of %lld %s", cpu_coll_name(op), what,
                    (long long)a, (long long)b, of);
}

// Checks result sizes that depend on the size of the group.
static calx_status *check_size(const cx_hlo_op *op, uint32_t group)
{
  for (size_t i = 0; i < op->n_results; i++) {
    const cx_hlo_type *x = &op->operands[i]->type.tensor;
    const cx_hlo_type *y = &op->results[i].type.tensor;
    bool right = true;
    int64_t d = 0, all = 0;
    switch (op->kind) {
      case CX_HLO_OP_ALL_GATHER:
        d = cx_hlo_op_int(op, CX_HLO_A_ALL_GATHER_DIM);
        right = !__builtin_mul_overflow(x->dims[d], group, &all) &&
                y->dims[d] == all;
        break;
      case CX_HLO_OP_REDUCE_SCATTER:
        d = cx_hlo_op_int(op, CX_HLO_A_SCATTER_DIMENSION);
        right = !__builtin_mul_overflow(y->dims[d], group, &all) &&
                x->dims[d] == all;
        break;
      case CX_HLO_OP_ALL_TO_ALL:
        right = cx_hlo_op_int(op, CX_HLO_A_SPLIT_COUNT) == group &&
                cx_hlo_type_bytes(x) == cx_hlo_type_bytes(y);
        break;
      default: break;
    }
    if (right) continue;
    return cx_invalid("%s: a group of %u makes no %s of %s", cpu_coll_name(op),
                      (unsigned)group, cx_hlo_shape(y).s, cx_hlo_shape(x).s);
  }
  return NULL;
}

// Checks the ids and the sizes of all groups. The verifier has checked that no
// id occurs twice.
static calx_status *check_groups(const cx_hlo_op *op, const world *w)
{
  const matrix x = matrix_of(op);
  const int64_t n = ids_in(w);
  const uint32_t each = w->mode == BOTH ? w->n_partitions : 1;  // per id
  int64_t count = 0;
  if (x.rows == 0) return check_size(op, (uint32_t)n * each);
  // Padding alone may be of any size.
  for (size_t i = 0; i < x.rows && !x.all_padding; i++) {
    const int64_t before = count;
    for (size_t k = 0; k < x.columns; k++) {
      const int64_t id = id_at(&x, i, k);
      if (id >= n) {
        return bad(op, "the groups have the number", id, n, mode_ids(w->mode));
      }
      count += id >= 0;
    }
    if (x.one_group || count == before) continue;
    CALX_TRY(check_size(op, (uint32_t)(count - before) * each));
  }
  if (count == n || x.one_group || op->kind == CX_HLO_OP_COLLECTIVE_BROADCAST) {
    return NULL;
  }
  return bad(op, "the groups hold only", count, n, mode_ids(w->mode));
}

static calx_status *check_attributes(const cx_hlo_op *op)
{
  if (cx_hlo_op_attr(op, CX_HLO_A_HAS_DYNAMIC_ROOT) != NULL) {
    return cx_error(CALX_UNIMPLEMENTED, "%s: has_dynamic_root",
                    cpu_coll_name(op));
  }
  if (cx_hlo_op_attr(op, CX_HLO_A_USE_GLOBAL_DEVICE_IDS) != NULL &&
      mode_of(op) != FLATTENED) {
    return cx_invalid(
        "%s: use_global_device_ids needs a channel_handle above 0",
        cpu_coll_name(op));
  }
  return NULL;
}

calx_status *cpu_coll_check(const cx_hlo_op *op, uint32_t n_replicas,
                            uint32_t n_partitions)
{
  const uint64_t n = (uint64_t)n_replicas * n_partitions;
  if (n == 0 || n > CPU_COLL_DEVICES) {
    return cx_invalid(
        "%s: %u replicas of %u partitions are none or more than %d devices",
        cpu_coll_name(op), (unsigned)n_replicas, (unsigned)n_partitions,
        CPU_COLL_DEVICES);
  }
  CALX_TRY(check_attributes(op));
  const world all = { mode_of(op), n_replicas, n_partitions, 0 };
  return check_groups(op, &all);
}
