// lazy/run/compile: from an order to an executable: lowered, printed, taken
// from the disk cache or compiled. A program with collectives is compiled for
// all ranks' devices, one of a sharded device for all of the client's, any
// other for whichever device its arguments are on.
#include "base/alloc.h"
#include "base/arena.h"
#include "base/env.h"
#include "base/file.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "graph/lower.h"
#include "hlo/print.h"
#include "lazy/cache/disk.h"
#include "lazy/run/program.h"
#include "world/world.h"

CX_COUNTER(uncached_compile, "UncachedCompile");
CX_METRIC(compile_time, "CompileTime", CX_UNIT_NS);

// CALX_DUMP=dir: the text with its call sites, named by order, content and, of
// several processes, the first rank of the one that compiles it.
static calx_status *dump(const cx_text *text, cx_hash hash, long number)
{
  const char *folder = cx_env_text("CALX_DUMP");
  if (folder == NULL) return NULL;
  CALX_TRY(cx_folder_make(folder, 0755));
  char hex[33];
  cx_hash_hex(hash, hex);
  cx_text name = { 0 };
  cx_text_format(&name, "%s/%05ld-%.12s", folder, number, hex);
  const cx_world_info *here = cx_world_self();
  if (here->processes > 1) {
    cx_text_format(&name, ".rank%d", here->process * here->devices);
  }
  cx_text_append(&name, ".mlir");
  char *path = cx_text_take(&name);
  calx_status *status = cx_file_write_text(path, text);
  cx_free(path);
  return status;
}

// ---- compiling --------------------------------------------------------------

typedef struct compilation {
  calx_device *device;
  const calx_site *site;
  int replicas;                // 0: it runs on one device
  int partitions;              // 0: it is not sharded
  const cx_text *text, *bare;  // with and without locations
  const cx_pjrt_signature *signature;
  char *options;
  size_t options_size;
  bool loaded;  // from disk
} compilation;

static void wire_shape(const cx_graph_value *v, cx_pjrt_shape *out)
{
  const cx_graph_shape *s = &v->node->out[v->out].shape;
  cx_pjrt_shape_make(s->dtype, s->dims, s->rank, out);
}

// Makes of a signature that of one device of several, and says what the results
// are together. A parameter that is split otherwise than the result that was to
// take its memory is not donated: see graph/shard.c.
static calx_status *shard_signature(const cx_graph_order *o, cx_arena *arena,
                                    const cx_spmd_placement **placements,
                                    cx_pjrt_shape *shapes, bool *donated,
                                    cx_pjrt_signature *out)
{
  cx_pjrt_whole *wholes = CX_ARENA_ARRAY(arena, cx_pjrt_whole, o->n_roots + 1);
  if (wholes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < o->n_params; i++) {
    const cx_spmd_placement *p = cx_graph_order_placement(o, i);
    const cx_pjrt_shape whole = shapes[i];
    cx_pjrt_shard_shape(&whole, p, &shapes[i]);
    if (donated[i]) donated[i] = placements[o->aliases[i] - 1] == p;
  }
  for (size_t r = 0; r < o->n_roots; r++) {
    cx_pjrt_shape *shape = &shapes[out->n_params + r];
    wholes[r] = (cx_pjrt_whole){ *shape, placements[r] };
    cx_pjrt_shard_shape(&wholes[r].shape, placements[r], shape);
  }
  out->wholes = wholes;
  return NULL;
}

// What the plugin is given beside the text: the shapes, and what is donated.
static calx_status *make_signature(const cx_graph_order *o, cx_arena *arena,
                                   const cx_spmd_placement **placements,
                                   cx_pjrt_signature *out)
{
  const size_t n = o->n_params + (o->n_slots != 0);
  cx_pjrt_shape *shapes =
      CX_ARENA_ARRAY(arena, cx_pjrt_shape, n + o->n_roots + 1);
  bool *donated = CX_ARENA_ARRAY(arena, bool, n + 1);
  if (shapes == NULL || donated == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < o->n_params; i++) {
    wire_shape(&o->params[i], &shapes[i]);
    donated[i] = o->aliases[i] != 0;
  }
  const int64_t words = (int64_t)o->n_slots;
  if (words != 0) cx_pjrt_shape_make(CALX_U32, &words, 1, &shapes[n - 1]);
  for (size_t r = 0; r < o->n_roots; r++) {
    wire_shape(&o->roots[r], &shapes[n + r]);
  }
  *out = (cx_pjrt_signature){ .params = shapes,
                              .donated = donated,
                              .n_params = n,
                              .results = shapes + n,
                              .n_results = o->n_roots };
  return o->sharded
             ? shard_signature(o, arena, placements, shapes, donated, out)
             : NULL;
}

// How many replicas a program with collectives has: one for each rank.
static int replicas_of(const cx_lazy_run *run)
{
  bool together = (run->order->flags & CX_GRAPH_NODE_COLLECTIVE) != 0;
  return together ? cx_world_size(cx_world_self()) : 0;
}

static int partitions_of(const cx_lazy_run *run)
{
  return run->order->sharded
             ? (int)cx_pjrt_client_device_count(run->device->client)
             : 0;
}

// One partition needs no annotations.
static calx_status *print_program(const cx_lazy_run *run, bool promote,
                                  const cx_spmd_placement **placements,
                                  cx_text *text, cx_text *bare)
{
  const int partitions = partitions_of(run);
  cx_graph_lowering l = { .order = run->order,
                          .name = "calx",
                          .promote = promote,
                          .donate = true,
                          .replicas = replicas_of(run),
                          .partitions = partitions > 1 ? partitions : 0,
                          .placements = placements };
  cx_hlo_module *module;
  CALX_TRY(cx_graph_lower(&l, &module));
  const cx_hlo_print_options options = { .without_locations = bare };
  cx_hlo_print_with(module, &options, text);
  cx_hlo_module_free(module);
  return cx_text_failed(text) ? cx_out_of_memory() : NULL;
}

// The access to the cache ends when the program is kept: until then another
// process that wants the program waits.
static calx_status *load_or_compile(compilation *c, const cx_lazy_disk_key *key,
                                    const cx_pjrt_compile_options *options,
                                    cx_pjrt_executable **out)
{
  cx_pjrt_client *client = c->device->client;
  calx_status *status = NULL;
  cx_lazy_disk_access access;
  cx_lazy_disk_begin(client, key, &access);
  *out = cx_lazy_disk_load(&access, options, c->signature);
  c->loaded = *out != NULL;
  if (!c->loaded) {
    status = cx_pjrt_compile(client, c->text->data, c->text->size, options,
                             c->signature, out);
    if (status == NULL) cx_lazy_disk_store(&access, *out);
  }
  cx_lazy_disk_end(&access);
  return status;
}

static calx_status *compile_printed(compilation *c, cx_pjrt_executable **out)
{
  cx_pjrt_client *client = c->device->client;
  bool spread = cx_world_self()->processes > 1;
  int replicas = c->replicas;
  // For the one device of each of several processes it is one program too.
  cx_pjrt_compile_options options = {
    .num_replicas = replicas,
    .num_partitions = c->partitions,
    .everywhere = replicas != 0,
    .any_device = replicas == 0 && c->partitions == 0 &&
                  (spread || cx_pjrt_client_device_count(client) > 1)
  };
  cx_hash hash = cx_hash_bytes(c->bare->data, c->bare->size, 0);
  options.launches = (uint32_t)hash.low | 1;
  CALX_TRY(
      cx_pjrt_options_encode(&options, client, &c->options, &c->options_size));
  cx_lazy_disk_key key = { .text = c->bare->data,
                           .size = c->bare->size,
                           .options = c->options,
                           .options_size = c->options_size,
                           .site = c->site };
  // Plugins of others may have all processes compile it in step.
  key.in_step = spread && replicas != 0 && !cx_pjrt_client_is_own(client);
  CALX_TRY(dump(c->text, hash, cx_lazy_program_count_add()));
  return load_or_compile(c, &key, &options, out);
}

// Begun at `start`.
static void count(const compilation *c, int64_t start)
{
  if (c->loaded) return;
  cx_counter_add(&uncached_compile, 1);
  cx_metric_add(&compile_time, (double)(cx_now_ns() - start));
}

calx_status *cx_lazy_compile(const cx_lazy_run *run, bool promote,
                             cx_pjrt_executable **out, bool *out_loaded)
{
  *out = NULL;
  cx_text text = { 0 }, bare = { 0 };
  cx_arena arena = { 0 };
  cx_pjrt_signature signature;
  compilation c = { .device = run->device,
                    .site = &run->site,
                    .replicas = replicas_of(run),
                    .partitions = partitions_of(run),
                    .text = &text,
                    .bare = &bare,
                    .signature = &signature };
  int64_t start = cx_now_ns();
  cx_lazy_trace_compile(run);
  const cx_spmd_placement **placements = CX_ARENA_ARRAY(
      &arena, const cx_spmd_placement *, run->order->n_roots + 1);
  calx_status *status =
      placements != NULL ? print_program(run, promote, placements, &text, &bare)
                         : cx_out_of_memory();
  if (status == NULL) {
    status = make_signature(run->order, &arena, placements, &signature);
  }
  if (status == NULL) status = compile_printed(&c, out);
  cx_text_free(&text);
  cx_text_free(&bare);
  cx_arena_free(&arena);
  cx_free(c.options);
  count(&c, start);
  *out_loaded = c.loaded;
  cx_trace_ended(CX_SPAN_COMPILE, run->device->index, start,
                 (int64_t)run->order->n_nodes, &run->site);
  cx_lazy_trace_compiled(run, *out);
  return status;
}

calx_status *cx_lazy_compile_text(calx_device *device, const cx_text *text,
                                  const cx_pjrt_signature *signature,
                                  cx_pjrt_executable **out)
{
  *out = NULL;
  if (device->sharded) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "an exported program runs on one device, and "
                    "calx_use_spmd() was called");
  }
  compilation c = { .device = device,
                    .site = cx_site(),
                    .text = text,
                    .bare = text,
                    .signature = signature };
  int64_t start = cx_now_ns();
  calx_status *status = compile_printed(&c, out);
  cx_free(c.options);
  count(&c, start);
  return status;
}
