// lower/fuse_group: which operations are in which groups while a block is
// fused. An operation that costs little may be in several.
#include "lower/fuse.h"

#include <string.h>

#define MOST (CPU_LOWER_FUSE_POSITIONS + 1)

cpu_lower_member *cpu_lower_fuse_member(const cpu_lower_fusion *f, uint32_t i,
                                        const cpu_lower_group *g)
{
  cpu_lower_member *m = f->members[i];
  while (m != NULL && m->group != g) m = m->next;
  return m;
}

// The position at which operation `user` reads its operand when it is computed
// at `position`.
static uint64_t read_from(const cpu_lower_fusion *f, uint32_t user,
                          uint64_t position)
{
  if (cpu_jit_class_of(f->uses->ops[user]) != CPU_JIT_INDEX) return position;
  const uint64_t mixed = (position + user + 1) * UINT64_C(0x9e3779b97f4a7c15);
  return mixed ^ mixed >> 32;
}

static unsigned add_position(uint64_t *positions, unsigned n, uint64_t position)
{
  for (unsigned k = 0; k < n; k++) {
    if (positions[k] == position) return n;
  }
  if (n < MOST) positions[n++] = position;
  return n;
}

// The positions of operation i if it joins g; returns how many there are.
static unsigned find_positions(const cpu_lower_fusion *f, uint32_t i,
                               const cpu_lower_group *g,
                               uint64_t positions[MOST])
{
  unsigned n = 0;
  const cx_hlo_op *op = f->uses->ops[i];
  positions[0] = 0;  // the group's own
  // A scalar has one position.
  if (op->n_results == 0 ||
      cx_hlo_type_elements(cpu_lower_result_type(op)) == 1) {
    return 1;
  }
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const uint32_t user = f->uses->uses[k].user;
    const cpu_lower_member *m = cpu_lower_fuse_member(f, user, g);
    for (unsigned j = 0; m != NULL && j < m->copies; j++) {
      n = add_position(positions, n, read_from(f, user, m->positions[j]));
    }
  }
  return n == 0 ? 1 : n;
}

unsigned cpu_lower_fuse_copies(const cpu_lower_fusion *f, uint32_t i,
                               const cpu_lower_group *g)
{
  uint64_t positions[MOST];
  return find_positions(f, i, g, positions);
}

bool cpu_lower_fuse_is_used_after_reduction(const cpu_lower_fusion *f,
                                            uint32_t i,
                                            const cpu_lower_group *g,
                                            bool *out_used)
{
  *out_used = false;
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const uint32_t user = f->uses->uses[k].user;
    const cpu_lower_member *m = cpu_lower_fuse_member(f, user, g);
    if (m == NULL) continue;
    *out_used = true;
    if (!m->after_reduction) return false;
  }
  return *out_used;
}

static void add_user(cpu_lower_users *users, cpu_lower_group *g)
{
  for (size_t i = 0; i < users->n; i++) {
    if (users->groups[i] == g) return;
  }
  if (users->n == sizeof users->groups / sizeof users->groups[0]) {
    users->too_many = true;
  } else {
    users->groups[users->n++] = g;
  }
}

cpu_lower_users cpu_lower_fuse_users(const cpu_lower_fusion *f, uint32_t i)
{
  cpu_lower_users users = { 0 };
  for (uint32_t k = f->uses->first[i]; k < f->uses->first[i + 1]; k++) {
    const cpu_lower_use *use = &f->uses->uses[k];
    const cpu_lower_member *m = f->members[use->user];
    if (use->operand < 0 || m == NULL) users.elsewhere = true;
    for (; m != NULL; m = m->next) {
      const cpu_kernel_desc *desc = m->group->desc;
      if (m->group->kind == CPU_LOWER_GROUP_LOOP && use->operand >= 0) {
        add_user(&users, m->group);
      } else if (desc == NULL || use->operand < 0 ||
                 cpu_kernel_reads(desc, (size_t)use->operand)) {
        users.elsewhere = true;
      }
    }
  }
  return users;
}

static calx_status *add_member(cpu_lower_fusion *f, uint32_t i,
                               cpu_lower_group *g, bool after_reduction)
{
  cpu_lower_member *m = CX_ARENA_NEW(&f->c->arena, cpu_lower_member);
  if (m == NULL) return cx_out_of_memory();
  uint64_t positions[MOST];
  m->group = g;
  m->copies = find_positions(f, i, g, positions);
  m->positions = CX_ARENA_ARRAY(&f->c->arena, uint64_t, m->copies);
  if (m->positions == NULL) return cx_out_of_memory();
  memcpy(m->positions, positions, m->copies * sizeof *positions);
  m->next = f->members[i];
  f->members[i] = m;
  m->after_reduction = after_reduction;
  return cpu_lower_push(f->c, &g->ops, &g->n_ops, &g->ops_room,
                        f->uses->ops[i]);
}

calx_status *cpu_lower_fuse_new_group(cpu_lower_fusion *f,
                                      cpu_lower_group_kind kind, uint32_t i,
                                      cpu_lower_group **out)
{
  cpu_lower_schedule *s = f->schedule;
  cpu_lower_group *g = CX_ARENA_NEW(&f->c->arena, cpu_lower_group);
  if (g == NULL) return cx_out_of_memory();
  g->kind = kind;
  g->schedule = s;
  g->position = i;
  CALX_TRY(cpu_lower_push(f->c, &s->groups, &s->n_groups, &s->groups_room, g));
  cpu_lower_fuse_write(f, i, g);
  *out = g;
  return add_member(f, i, g, false);
}

calx_status *cpu_lower_fuse_new_loop(cpu_lower_fusion *f, uint32_t i,
                                     cx_hlo_op *root, const cx_hlo_type *type)
{
  cpu_lower_group *g = NULL;
  CALX_TRY(cpu_lower_fuse_new_group(f, CPU_LOWER_GROUP_LOOP, i, &g));
  g->root = root;
  g->elements = cx_hlo_type_elements(type);
  return NULL;
}

calx_status *cpu_lower_fuse_join(cpu_lower_fusion *f, uint32_t i,
                                 cpu_lower_group *g)
{
  const cx_hlo_op *op = f->uses->ops[i];
  bool used = false;
  const bool element = cpu_jit_class_of(op) == CPU_JIT_ELEMENT;
  const bool after =
      element && cpu_lower_fuse_is_used_after_reduction(f, i, g, &used);
  if (element && !after &&
      cx_hlo_type_elements(cpu_lower_result_type(op)) < g->elements) {
    g->n_repeated++;
  }
  return add_member(f, i, g, after);
}

void cpu_lower_fuse_write(cpu_lower_fusion *f, uint32_t i, cpu_lower_group *g)
{
  const cx_hlo_op *op = f->uses->ops[i];
  f->in_memory[i] = true;
  g->n_written += op->n_results;
  for (uint32_t r = 0; r < op->n_results; r++) {
    cpu_lower_info(f->c, &op->results[r])->producer = g;
  }
}
