// graph/shard: Shardy's annotations of a program on all devices of a mesh.
//
// Parameters lie as their buffers do. A result lies as its tensor was marked,
// else as the values that it is computed from let it (spmd/results.c); that is
// written down too, so that every plugin returns what the caller expects.
#include "spmd/spmd.h"

#include "base/alloc.h"
#include "graph/lower.h"

// ---- the mesh ----

typedef struct found_mesh {
  const cx_spmd_mesh *mesh;  // NULL: none yet
  const calx_site *site;     // of the value that has it
} found_mesh;

static void print_found(const found_mesh *found, cx_text *out)
{
  cx_spmd_mesh_print(found->mesh, out);
  if (found->site->file != NULL) {
    cx_text_format(out, " of %s:%d", cx_site_file(found->site),
                   found->site->line);
  }
}

static calx_status *two_meshes(const found_mesh *a, const found_mesh *b)
{
  cx_text first = { 0 }, second = { 0 };
  print_found(a, &first);
  print_found(b, &second);
  calx_status *status = cx_invalid(
      "the tensors of one program are on two meshes, %s and %s; mark all of "
      "them on one, or clear the sharding of the others",
      cx_text_str(&first), cx_text_str(&second));
  cx_text_free(&first);
  cx_text_free(&second);
  return status;
}

static calx_status *join(found_mesh *found, const cx_spmd_placement *p,
                         const cx_graph_node *node)
{
  if (p == NULL) return NULL;
  const found_mesh other = { p->mesh, &node->site };
  if (found->mesh != NULL && found->mesh != p->mesh) {
    return two_meshes(found, &other);
  }
  if (found->mesh == NULL) *found = other;
  return NULL;
}

static calx_status *find_mesh(const cx_graph_lowering *l,
                              const cx_spmd_mesh **out)
{
  const cx_graph_order *o = l->order;
  found_mesh found = { 0 };
  for (size_t i = 0; i < o->n_params; i++) {
    CALX_TRY(join(&found, cx_graph_order_placement(o, i), o->params[i].node));
  }
  for (size_t i = 0; i < o->n_nodes; i++) {
    const cx_graph_node *node = o->nodes[i];
    if (node->op->placement == NULL) continue;
    const uint32_t number = node->op->placement(node->attrs);
    CALX_TRY(join(&found, cx_spmd_placement_at(number), node));
  }
  for (size_t i = 0; i < o->n_roots; i++) {
    CALX_TRY(join(&found, o->wanted[i], o->roots[i].node));
  }
  *out = found.mesh != NULL ? found.mesh
                            : cx_spmd_mesh_of_all((size_t)l->partitions);
  return *out != NULL ? NULL : cx_out_of_memory();
}

// ---- the annotations ----

typedef bool annotate_fn(cx_hlo_module *m, size_t i, const char *sharding);

// NULL placement: whole, with so many dimensions.
static calx_status *annotate(annotate_fn *fn, cx_hlo_module *m, size_t i,
                             const cx_spmd_mesh *mesh, uint32_t rank,
                             const cx_spmd_placement *p)
{
  const cx_spmd_axes none[CALX_MAX_RANK] = { 0 };
  cx_text text = { 0 };
  if (p == NULL) p = cx_spmd_placement_of(mesh, none, rank);
  if (p != NULL) cx_spmd_placement_attr(p, &text);
  const bool done =
      p != NULL && !cx_text_failed(&text) && fn(m, i, cx_text_str(&text));
  cx_text_free(&text);
  return done ? NULL : cx_out_of_memory();
}

static calx_status *annotate_params(const cx_graph_order *o, cx_hlo_module *m,
                                    const cx_spmd_mesh *mesh)
{
  for (size_t i = 0; i < o->n_params; i++) {
    const cx_graph_value *p = &o->params[i];
    CALX_TRY(annotate(cx_hlo_shard_param, m, i, mesh,
                      p->node->out[p->out].shape.rank,
                      cx_graph_order_placement(o, i)));
  }
  // The slots.
  if (cx_hlo_entry(m)->n_params == o->n_params) return NULL;
  return annotate(cx_hlo_shard_param, m, o->n_params, mesh, 1, NULL);
}

static calx_status *annotate_results(const cx_graph_lowering *l,
                                     cx_hlo_module *m, const cx_spmd_mesh *mesh,
                                     cx_spmd_axes (*axes)[CALX_MAX_RANK])
{
  const cx_graph_order *o = l->order;
  CALX_TRY(cx_spmd_results(m, (uint32_t)l->partitions, axes));
  for (size_t i = 0; i < o->n_roots; i++) {
    const uint32_t rank = o->roots[i].node->out[o->roots[i].out].shape.rank;
    l->placements[i] = o->wanted[i] != NULL
                           ? o->wanted[i]
                           : cx_spmd_placement_of(mesh, axes[i], rank);
    if (l->placements[i] == NULL) return cx_out_of_memory();
    CALX_TRY(annotate(cx_hlo_shard_result, m, i, mesh, rank, l->placements[i]));
    l->placements[i] = cx_spmd_split(l->placements[i]);
  }
  return NULL;
}

static void drop_aliases(const cx_graph_lowering *l, cx_hlo_module *m)
{
  const cx_graph_order *o = l->order;
  cx_hlo_func *f = cx_hlo_entry(m);
  for (size_t i = 0; i < o->n_params; i++) {
    cx_hlo_named_list *list = &f->param_attrs[i];
    if (o->aliases[i] == 0 || list->n == 0 ||
        l->placements[o->aliases[i] - 1] == cx_graph_order_placement(o, i)) {
      continue;
    }
    // The alias was written first, the sharding behind it.
    list->items++;
    list->n--;
  }
}

calx_status *cx_graph_shard(const cx_graph_lowering *l, cx_hlo_module *m)
{
  const cx_spmd_mesh *mesh;
  CALX_TRY(find_mesh(l, &mesh));
  cx_text text = { 0 };
  cx_spmd_mesh_attr(mesh, &text);
  const bool declared =
      !cx_text_failed(&text) && cx_hlo_declare_mesh(m, cx_text_str(&text));
  cx_text_free(&text);
  if (!declared) return cx_out_of_memory();
  CALX_TRY(annotate_params(l->order, m, mesh));
  cx_spmd_axes(*axes)[CALX_MAX_RANK] =
      cx_calloc(l->order->n_roots + 1, sizeof *axes);
  if (axes == NULL) return cx_out_of_memory();
  calx_status *status = annotate_results(l, m, mesh, axes);
  cx_free(axes);
  if (status == NULL && l->donate) drop_aliases(l, m);
  return status;
}
