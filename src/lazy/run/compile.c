// lazy/run/compile: from an order to an executable: lowered, printed, taken
// from the disk cache or compiled. A program with collectives is compiled for
// all ranks' devices, any other for whichever device its arguments are on.
#include <stdlib.h>

#include "base/alloc.h"
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

// ---- what is told to the plugin beside the text -----------------------------

typedef struct signature {
  cx_pjrt_shape *shapes;
  bool *donated;
  cx_pjrt_signature s;
} signature;

static void wire_shape(const cx_graph_shape *s, cx_pjrt_shape *out)
{
  cx_pjrt_shape_make(s->dtype, s->dims, s->rank, out);
}

static calx_status *signature_make(const cx_graph_order *o, signature *out)
{
  size_t n = o->n_params + (o->n_slots != 0);
  *out = (signature){ 0 };
  out->shapes = cx_calloc(n + o->n_roots + 1, sizeof *out->shapes);
  out->donated = cx_calloc(n + 1, sizeof *out->donated);
  if (out->shapes == NULL || out->donated == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < o->n_params; i++) {
    const cx_graph_param *p = &o->params[i];
    wire_shape(&p->node->out[p->out].shape, &out->shapes[i]);
    out->donated[i] = o->aliases[i] != 0;
  }
  if (o->n_slots != 0) {
    int64_t words = (int64_t)o->n_slots;
    cx_pjrt_shape_make(CALX_U32, &words, 1, &out->shapes[o->n_params]);
  }
  for (size_t r = 0; r < o->n_roots; r++) {
    const cx_graph_value *v = &o->roots[r];
    wire_shape(&v->node->out[v->out].shape, &out->shapes[n + r]);
  }
  out->s = (cx_pjrt_signature){ .params = out->shapes,
                                .donated = out->donated,
                                .n_params = n,
                                .results = out->shapes + n,
                                .n_results = o->n_roots };
  return NULL;
}

static void signature_free(signature *s)
{
  cx_free(s->shapes);
  cx_free(s->donated);
}

// CALX_DUMP=dir: the text with its call sites, named by order, content and, of
// several processes, the first rank of the one that compiles it.
static calx_status *dump(const cx_text *text, cx_hash hash, long number)
{
  const char *folder = getenv("CALX_DUMP");
  if (folder == NULL || *folder == '\0') return NULL;
  CALX_TRY(cx_folder_make(folder, 0755));
  char hex[33];
  cx_hash_hex(hash, hex);
  cx_text path = { 0 };
  cx_text_format(&path, "%s/%05ld-%.12s", folder, number, hex);
  const cx_world_info *here = cx_world_self();
  if (here->processes > 1) {
    cx_text_format(&path, ".rank%d", here->process * here->devices);
  }
  cx_text_append(&path, ".mlir");
  calx_status *status = cx_text_failed(&path)
                            ? cx_out_of_memory()
                            : cx_file_write(path.data, text->data, text->size);
  cx_text_free(&path);
  return status;
}

// ---- compiling --------------------------------------------------------------

typedef struct compilation {
  const cx_lazy_run *run;
  cx_text text, bare;  // with and without locations
  signature signature;
  char *options;
  size_t options_size;
  bool loaded;  // from disk
} compilation;

// How many replicas a program with collectives has: one for each rank.
static int replicas_of(const cx_lazy_run *run)
{
  bool together = (run->order->flags & CX_GRAPH_NODE_COLLECTIVE) != 0;
  return together ? cx_world_size(cx_world_self()) : 0;
}

static calx_status *print_program(compilation *c, bool promote)
{
  cx_graph_lowering l = { .order = c->run->order,
                          .name = "calx",
                          .promote = promote,
                          .donate = true,
                          .replicas = replicas_of(c->run) };
  cx_hlo_module *module;
  CALX_TRY(cx_graph_lower(&l, &module));
  const cx_hlo_print_options options = { .without_locations = &c->bare };
  cx_hlo_print_with(module, &options, &c->text);
  cx_hlo_module_free(module);
  return cx_text_failed(&c->text) ? cx_out_of_memory() : NULL;
}

// The visit lasts until the program is kept: another process that wants it
// waits so long.
static calx_status *load_or_compile(compilation *c, const cx_lazy_disk_key *key,
                                    const cx_pjrt_compile_options *options,
                                    cx_pjrt_executable **out)
{
  cx_pjrt_client *client = c->run->device->client;
  calx_status *status = NULL;
  cx_lazy_disk_access visit;
  cx_lazy_disk_begin(client, key, &visit);
  *out = cx_lazy_disk_load(&visit, options, &c->signature.s);
  c->loaded = *out != NULL;
  if (!c->loaded) {
    status = cx_pjrt_compile(client, c->text.data, c->text.size, options,
                             &c->signature.s, out);
    if (status == NULL) cx_lazy_disk_store(&visit, *out);
  }
  cx_lazy_disk_end(&visit);
  return status;
}

static calx_status *compile_printed(compilation *c, cx_pjrt_executable **out)
{
  cx_pjrt_client *client = c->run->device->client;
  bool spread = cx_world_self()->processes > 1;
  int replicas = replicas_of(c->run);
  // For the one device of each of several processes it is one program too.
  cx_pjrt_compile_options options = {
    .num_replicas = replicas,
    .everywhere = replicas != 0,
    .any_device =
        replicas == 0 && (spread || cx_pjrt_client_device_count(client) > 1)
  };
  cx_hash hash = cx_hash_bytes(c->bare.data, c->bare.size, 0);
  options.launches = (uint32_t)hash.low | 1;
  CALX_TRY(signature_make(c->run->order, &c->signature));
  CALX_TRY(
      cx_pjrt_options_encode(&options, client, &c->options, &c->options_size));
  cx_lazy_disk_key key = { .hash = hash,
                           .text = c->bare.data,
                           .size = c->bare.size,
                           .options = c->options,
                           .options_size = c->options_size,
                           .site = &c->run->site };
  // Plugins of others may have all processes compile it in step.
  key.in_step = spread && replicas != 0 && !cx_pjrt_client_is_own(client);
  CALX_TRY(dump(&c->text, key.hash, cx_lazy_program_count_add()));
  return load_or_compile(c, &key, &options, out);
}

calx_status *cx_lazy_compile(const cx_lazy_run *run, bool promote,
                             cx_pjrt_executable **out, bool *out_loaded)
{
  *out = NULL;
  compilation c = { .run = run };
  int64_t start = cx_now_ns();
  if (cx_trace_wanted(CX_TRACE_PROGRAMS)) cx_lazy_trace_compile(run);
  calx_status *status = print_program(&c, promote);
  if (status == NULL) status = compile_printed(&c, out);
  cx_text_free(&c.text);
  cx_text_free(&c.bare);
  signature_free(&c.signature);
  cx_free(c.options);
  if (!c.loaded) {
    cx_counter_add(&uncached_compile, 1);
    cx_metric_add(&compile_time, (double)(cx_now_ns() - start));
  }
  *out_loaded = c.loaded;
  cx_trace_ended(CX_SPAN_COMPILE, run->device->index, start,
                 (int64_t)run->order->n_nodes, &run->site);
  if (cx_trace_wanted(CX_TRACE_PROGRAMS)) cx_lazy_trace_compiled(run, *out);
  return status;
}
