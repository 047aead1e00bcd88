// run/save: writes a program as bytes, and reads it.
//
//   "calxprog", format, hash of all that follows, numbers, name, types of the
//   parameters and results, aliases, slots, uses, steps, blocks, loops,
//   objects, descriptions of kernels, constants, text of the outlined module
//
// Numbers are in the machine's byte order, little-endian. Each list begins with
// its length and is padded to a multiple of 8 bytes. The reader checks that
// every list is within the bytes; cpu_run_program_finish() checks what is in
// the lists.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "run/layout.h"

#define MAGIC "calxprog"
#define FORMAT 4
#define ALIGN 8
#define RANK_LIMIT 64

typedef struct file_header {
  char magic[8];
  uint64_t format;
  cx_hash hash;  // of what follows
} file_header;

// The parts of a program that are not lists.
typedef struct file_numbers {
  uint64_t arena_bytes;
  uint64_t n_replicas, n_partitions;
  uint64_t n_compiled, n_library, n_interpreted;
  uint64_t has_collectives;
  double cost_ns;
  cpu_run_work work;
  cx_hash fingerprint;
} file_numbers;

// ---- writing ----

static void put(cx_text *out, uint64_t number)
{
  cx_text_append_n(out, (const char *)&number, sizeof number);
}

static void put_list(cx_text *out, const void *items, size_t n, size_t each)
{
  put(out, n);
  if (n > 0) cx_text_append_n(out, items, n * each);
  while (out->size % ALIGN != 0 && !cx_text_failed(out)) cx_text_char(out, 0);
}

static void put_types(cx_text *out, const cx_hlo_type *types, size_t n)
{
  put(out, 0);  // of an earlier format
  put(out, n);
  for (size_t i = 0; i < n; i++) {
    put(out, types[i].elem);
    put_list(out, types[i].dims, types[i].rank, sizeof(int64_t));
  }
}

static void put_body(const cpu_run_program *p, cx_text *out)
{
  const cpu_run_program_info *info = &p->info;
  file_numbers n = { .arena_bytes = info->arena_bytes,
                     .n_replicas = info->n_replicas,
                     .n_partitions = info->n_partitions,
                     .n_compiled = info->n_compiled,
                     .n_library = info->n_library,
                     .n_interpreted = info->n_interpreted,
                     .has_collectives = info->has_collectives,
                     .cost_ns = info->cost_ns,
                     .work = info->work,
                     .fingerprint = info->fingerprint };
  put_list(out, &n, 1, sizeof n);
  put_list(out, info->name, strlen(info->name), 1);
  put_types(out, info->params, info->n_params);
  put_types(out, info->results, info->n_results);
  put_list(out, info->param_memory, info->n_params, 1);
  put_list(out, info->result_memory, info->n_results, 1);
  put_list(out, info->alias, info->n_results, sizeof *info->alias);
  put_list(out, p->slots, p->n_slots, sizeof *p->slots);
  put_list(out, p->uses, p->n_uses, sizeof *p->uses);
  put_list(out, p->steps, p->n_steps, sizeof *p->steps);
  put_list(out, p->blocks, p->n_blocks, sizeof *p->blocks);
  put_list(out, p->loops, p->n_loops, sizeof *p->loops);
  for (size_t i = 0; i < CPU_RUN_OBJECTS; i++) {
    put_list(out, p->objects[i].bytes, p->objects[i].size, 1);
  }
  put_list(out, p->descs, p->n_kernels, sizeof *p->descs);
  put_list(out, p->constants, p->info.constant_bytes, 1);
  put_list(out, p->outlined_text, p->outlined_size, 1);
}

calx_status *cpu_run_program_save(const cpu_run_program *p, cx_text *out)
{
  size_t start = out->size;
  const file_header h = { .magic = MAGIC, .format = FORMAT };
  cx_text_append_n(out, (const char *)&h, sizeof h);
  put_body(p, out);
  if (cx_text_failed(out)) return cx_out_of_memory();
  cpu_run_program_seal(out->data + start, out->size - start);
  return NULL;
}

void cpu_run_program_seal(void *data, size_t size)
{
  file_header h;
  if (size < sizeof h) return;
  memcpy(&h, data, sizeof h);
  h.hash = cx_hash_bytes((char *)data + sizeof h, size - sizeof h, FORMAT);
  memcpy(data, &h, sizeof h);
}

// ---- reading ----

typedef struct file_reader {
  const unsigned char *at;
  size_t left;
  bool bad;
  bool no_memory;
} file_reader;

static bool take(file_reader *r, void *to, size_t bytes)
{
  if (r->bad || bytes > r->left) {
    r->bad = true;
    memset(to, 0, bytes);
    return false;
  }
  memcpy(to, r->at, bytes);
  r->at += bytes;
  r->left -= bytes;
  return true;
}

static size_t take_count(file_reader *r, size_t each)
{
  uint64_t n = 0;
  if (!take(r, &n, sizeof n)) return 0;
  if (n > r->left / each) {
    r->bad = true;
    return 0;
  }
  return (size_t)n;
}

// Reads n items, which begin behind their count, and the padding.
static void *take_items(file_reader *r, void *items, size_t n, size_t each,
                        size_t *out_n)
{
  unsigned char padding[ALIGN];
  const size_t bytes = n * each;
  *out_n = 0;
  if (items == NULL) {
    r->bad = r->no_memory = true;
    return NULL;
  }
  if (n > 0) take(r, items, bytes);
  if (bytes % ALIGN != 0) take(r, padding, ALIGN - bytes % ALIGN);
  *out_n = n;
  return items;
}

// A list that cx_free frees, with a zero behind it; NULL: it is empty.
static void *take_list(file_reader *r, size_t each, size_t *out_n)
{
  const size_t n = take_count(r, each);
  *out_n = 0;
  return n == 0 ? NULL : take_items(r, cx_calloc(n + 1, each), n, each, out_n);
}

static void *take_into(file_reader *r, cx_arena *arena, size_t each,
                       size_t *out_n)
{
  const size_t n = take_count(r, each);
  void *items = cx_arena_alloc_array(arena, each, n + 1);
  return take_items(r, items, n, each, out_n);
}

static cx_hlo_type *take_types(file_reader *r, cx_arena *arena, size_t *out_n)
{
  size_t none = take_count(r, 1);
  size_t n = take_count(r, 2 * sizeof(uint64_t));
  cx_hlo_type *types = cx_arena_alloc_array(arena, sizeof *types, n + 1);
  *out_n = 0;
  if (types == NULL) r->no_memory = true;
  if (types == NULL || none != 0) {
    r->bad = true;
    return NULL;
  }
  for (size_t i = 0; i < n; i++) {
    uint64_t elem = 0;
    take(r, &elem, sizeof elem);
    int64_t *dims = take_into(r, arena, sizeof *dims, &types[i].rank);
    types[i].dims = dims;
    if (elem >= CX_HLO_ELEM_COUNT || types[i].rank > RANK_LIMIT) r->bad = true;
    if (r->bad) return NULL;
    types[i].elem = (cx_hlo_elem)elem;
    for (size_t d = 0; d < types[i].rank; d++) {
      if (dims[d] < 0) r->bad = true;
    }
    if (cx_hlo_type_elements(&types[i]) < 0) r->bad = true;
  }
  *out_n = n;
  return types;
}

static const uint8_t *take_memory(file_reader *r, cx_arena *arena,
                                  size_t expected)
{
  size_t n = 0;
  const uint8_t *kinds = take_into(r, arena, 1, &n);
  if (n != expected) r->bad = true;
  for (size_t i = 0; !r->bad && i < n; i++) {
    if (kinds[i] >= CPU_RUN_MEMORIES) r->bad = true;
  }
  return kinds;
}

static void take_numbers(file_reader *r, cpu_run_program *p)
{
  file_numbers n = { 0 };
  if (take_count(r, sizeof n) != 1) r->bad = true;
  take(r, &n, sizeof n);
  p->info.arena_bytes = n.arena_bytes;
  p->info.n_replicas = (uint32_t)n.n_replicas;
  p->info.n_partitions = (uint32_t)n.n_partitions;
  p->info.n_compiled = n.n_compiled;
  p->info.n_library = n.n_library;
  p->info.n_interpreted = n.n_interpreted;
  p->info.has_collectives = n.has_collectives != 0;
  p->info.cost_ns = n.cost_ns;
  p->info.work = n.work;
  p->info.fingerprint = n.fingerprint;
}

static void take_constants(file_reader *r, cpu_run_program *p)
{
  size_t n = take_count(r, 1);
  p->constants = aligned_alloc(CPU_RUN_SLOT_ALIGN,
                               (size_t)cpu_run_align_up((int64_t)n + 1));
  take_items(r, p->constants, n, 1, &p->info.constant_bytes);
}

static void take_objects(file_reader *r, cpu_run_program *p)
{
  for (size_t i = 0; i < CPU_RUN_OBJECTS; i++) {
    cpu_run_object_part *o = &p->objects[i];
    o->bytes = take_list(r, 1, &o->size);
    if (o->bytes != NULL && i != p->n_objects++) r->bad = true;
  }
}

static void take_body(file_reader *r, cpu_run_program *p)
{
  cpu_run_program_info *info = &p->info;
  size_t n = 0, n_alias = 0;
  take_numbers(r, p);
  info->name = take_into(r, &p->arena, 1, &n);
  info->params = take_types(r, &p->arena, &info->n_params);
  info->results = take_types(r, &p->arena, &info->n_results);
  info->param_memory = take_memory(r, &p->arena, info->n_params);
  info->result_memory = take_memory(r, &p->arena, info->n_results);
  int32_t *alias = take_into(r, &p->arena, sizeof *alias, &n_alias);
  info->alias = alias;
  if (n_alias != info->n_results) r->bad = true;
  for (size_t i = 0; !r->bad && i < n_alias; i++) {
    if (alias[i] < -1 || alias[i] >= (int64_t)info->n_params) r->bad = true;
  }
  p->slots = take_list(r, sizeof *p->slots, &p->n_slots);
  p->uses = take_list(r, sizeof *p->uses, &p->n_uses);
  p->steps = take_list(r, sizeof *p->steps, &p->n_steps);
  p->blocks = take_list(r, sizeof *p->blocks, &p->n_blocks);
  p->loops = take_list(r, sizeof *p->loops, &p->n_loops);
  take_objects(r, p);
  p->descs = take_list(r, sizeof *p->descs, &p->n_kernels);
  take_constants(r, p);
  p->outlined_text = take_list(r, 1, &p->outlined_size);
  if (r->left != 0) r->bad = true;
}

static calx_status *load(const void *data, size_t size, cpu_run_program *p)
{
  file_header h;
  if (size < sizeof h) {
    return cx_error(CALX_DATA_LOSS, "program: %zu bytes are too few for one",
                    size);
  }
  memcpy(&h, data, sizeof h);
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0) {
    return cx_error(CALX_DATA_LOSS, "program: these bytes are none of calx's");
  }
  if (h.format != FORMAT) {
    return cx_error(
        CALX_FAILED_PRECONDITION,
        "program: it has format %llu, and this engine reads format %d",
        (unsigned long long)h.format, FORMAT);
  }
  file_reader r = { .at = (const unsigned char *)data + sizeof h,
                    .left = size - sizeof h };
  if (!cx_hash_equal(cx_hash_bytes(r.at, r.left, FORMAT), h.hash)) {
    return cx_error(CALX_DATA_LOSS, "program: its bytes are damaged");
  }
  take_body(&r, p);
  if (r.no_memory) return cx_out_of_memory();
  return r.bad ? cx_error(CALX_DATA_LOSS,
                          "program: its lists contradict each other")
               : NULL;
}

calx_status *cpu_run_program_load(const void *data, size_t size,
                                  cpu_threads *threads, cpu_run_program **out)
{
  *out = NULL;
  cpu_run_program *p = NULL;
  CALX_TRY(cpu_run_program_new((cx_hlo_str){ 0 }, &p));
  calx_status *status = load(data, size, p);
  if (status == NULL) status = cpu_run_program_finish(p, threads);
  if (status != NULL) {
    cpu_run_program_free(p);
    return status;
  }
  *out = p;
  return NULL;
}
