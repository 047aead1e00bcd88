#include "world.h"

#include <unistd.h>

#include "base/text.h"
#include "hlo/number.h"

cx_hlo_module *world_parse(const char *text)
{
  cx_hlo_module *m = check_parse(text);
  CHECK_OK(cx_hlo_verify(m));
  return m;
}

static void put_list(cx_text *out, size_t n, const char *format)
{
  for (size_t i = 0; i < n; i++) {
    if (i != 0) cx_text_append(out, ", ");
    cx_text_format(out, format, (int)i);
  }
}

static void put_types(cx_text *out, size_t n, const char *type)
{
  for (size_t i = 0; i < n; i++) {
    cx_text_format(out, "%stensor<%s>", i == 0 ? "" : ", ", type);
  }
}

cx_hlo_module *world_one(const char *op, size_t n, const char *attributes,
                         const char *region, const char *in, const char *out)
{
  cx_text t = { 0 };
  cx_text_append(&t,
                 "\"builtin.module\"() ({\n\"func.func\"() "
                 "<{sym_name = \"main\", function_type = (");
  put_types(&t, n, in);
  cx_text_append(&t, ") -> (");
  put_types(&t, n, out);
  cx_text_append(&t, ")}> ({\n^bb0(");
  for (size_t i = 0; i < n; i++) {
    cx_text_format(&t, "%s%%a%d: tensor<%s>", i == 0 ? "" : ", ", (int)i, in);
  }
  cx_text_format(&t, "):\n%%r:%d = \"stablehlo.%s\"(", (int)n, op);
  put_list(&t, n, "%%a%d");
  cx_text_format(&t, ") <{%s}> %s%s%s : (", attributes, region[0] ? "(" : "",
                 region, region[0] ? ")" : "");
  put_types(&t, n, in);
  cx_text_append(&t, ") -> (");
  put_types(&t, n, out);
  cx_text_append(&t, ")\n\"func.return\"(");
  put_list(&t, n, "%%r#%d");
  cx_text_append(&t, ") : (");
  put_types(&t, n, out);
  cx_text_append(&t, ") -> ()\n}) : () -> ()\n}) : () -> ()\n");
  cx_hlo_module *m = world_parse(cx_text_str(&t));
  cx_text_free(&t);
  return m;
}

const cx_hlo_op *world_op(const cx_hlo_module *m)
{
  return cx_hlo_entry(m)->body.first->first;
}

uint32_t world_together;
static const uint32_t numbers[MOST_DEVICES] = { 0, 1, 2, 3, 4, 5, 6, 7 };

// The last process may have to have more devices than there are.
static void set_apart(world *w)
{
  const uint32_t n = w->n_replicas * w->n_partitions;
  const uint32_t processes = (n + world_together - 1) / world_together;
  CHECK_OK(cx_world_segment_create((int)processes, &w->segment));
  for (uint32_t i = 0; i < n; i++) {
    const cpu_coll_topology topology = { .fd = w->segment.fd,
                                         .n_host = processes * world_together,
                                         .own_first = i / world_together *
                                                      world_together,
                                         .n_own = world_together };
    if (i != topology.own_first) {
      w->apart[i] = w->apart[topology.own_first];
    } else {
      CHECK_OK(cpu_coll_new(&topology, &w->apart[i]));
    }
    CHECK_OK(
        cpu_coll_device_group(w->apart[i], numbers, n, &w->device_groups[i]));
  }
}

void world_start(world *w, uint32_t n_replicas, uint32_t n_partitions)
{
  *w = (world){ .n_replicas = n_replicas,
                .n_partitions = n_partitions,
                .timeout_ms = 600000 };
  if (world_together != 0) {
    set_apart(w);
  } else {
    const uint32_t n = n_replicas * n_partitions;
    const cpu_coll_topology topology = { .fd = -1, .n_host = n, .n_own = n };
    CHECK_OK(cpu_coll_new(&topology, &w->coll));
    for (uint32_t i = 0; i < n; i++) {
      w->apart[i] = w->coll;
      CHECK_OK(
          cpu_coll_device_group(w->coll, numbers, n, &w->device_groups[i]));
    }
  }
}

void world_end(world *w)
{
  cpu_coll_free(w->coll);
  if (world_together == 0) return;
  for (uint32_t i = 0; i < MOST_DEVICES; i += world_together) {
    cpu_coll_free(w->apart[i]);
  }
  cx_world_segment_close(&w->segment);
}

// ---- one device ----

static size_t elements(const cx_hlo_value *v)
{
  return (size_t)cx_hlo_type_elements(&v->type.tensor);
}

static size_t bytes(const cx_hlo_value *v)
{
  return elements(v) * cx_hlo_elem_bytes(v->type.tensor.elem);
}

static double load(cx_hlo_elem e, const void *p)
{
  if (cx_hlo_elem_is_complex(e)) e = cx_hlo_elem_part(e);
  return cx_hlo_elem_is_float(e) ? cx_hlo_load_real(e, p)
                                 : (double)cx_hlo_load_int(e, p);
}

// The device's tensors in one block of memory; results after the operands, or
// in their place.
typedef struct memory {
  unsigned char *block;
  cpu_ref_tensor operands[MOST_ARGS], results[MOST_ARGS];
} memory;

static void memory_make(memory *mem, const world_device *d, const cx_hlo_op *op)
{
  size_t size = 64, at = 0, i_value = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) size += bytes(op->operands[i]);
  const size_t own = size;
  for (uint32_t i = 0; i < op->n_results; i++) size += bytes(&op->results[i]);
  mem->block = malloc(size);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const cx_hlo_type *t = &op->operands[i]->type.tensor;
    mem->operands[i] = (cpu_ref_tensor){ *t, mem->block + at };
    for (size_t k = 0; k < elements(op->operands[i]); k++) {
      cx_hlo_store_number(t->elem, mem->block + at, d->in[i_value++]);
      at += cx_hlo_elem_bytes(t->elem);
    }
  }
  at = d->shifted    ? cx_hlo_elem_bytes(op->results[0].type.tensor.elem)
       : d->in_place ? 0
                     : own;
  for (uint32_t i = 0; i < op->n_results; i++) {
    mem->results[i] =
        (cpu_ref_tensor){ op->results[i].type.tensor, mem->block + at };
    at += bytes(&op->results[i]);
  }
}

static void keep(world_device *d, const memory *mem, const cx_hlo_op *op)
{
  size_t n = 0;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_elem e = op->results[i].type.tensor.elem;
    for (size_t k = 0; k < elements(&op->results[i]); k++) {
      d->out[n++] = load(
          e, (unsigned char *)mem->results[i].data + k * cx_hlo_elem_bytes(e));
    }
  }
}

// Limits are counted from here, not from when the thread was made.
static pthread_barrier_t all_there;

static void device_run(void *user)
{
  world_device *d = user;
  (void)pthread_barrier_wait(&all_there);
  if (d->module == NULL) return;
  if (d->late_ms > 0) usleep((useconds_t)(d->late_ms * 1000));
  const cx_hlo_op *op = world_op(d->module);
  for (int i = 0; i < (d->times == 0 ? 1 : d->times); i++) {
    if (d->skips || d->status != NULL) break;
    if (d->dies != NULL) {
      d->status = cx_error_at(NULL, CALX_INTERNAL, "%s", d->dies);
      break;
    }
    memory mem;
    memory_make(&mem, d, op);
    d->status =
        cpu_coll_run(&d->launch, d->module, op, mem.operands, mem.results);
    if (d->status == NULL) keep(d, &mem, op);
    free(mem.block);
  }
  cpu_coll_end(&d->launch, d->status);
}

void world_run(world *w)
{
  cx_thread threads[MOST_DEVICES] = { { 0 } };
  const uint32_t n = w->n_replicas * w->n_partitions;
  w->run++;
  assert_int_equal(pthread_barrier_init(&all_there, NULL, n), 0);
  for (uint32_t i = 0; i < n; i++) {
    w->devices[i].launch =
        (cpu_coll_launch){ .coll = w->apart[i],
                           .devices = numbers,
                           .device_group = w->device_groups[i],
                           .number = w->run,
                           .replica = i / w->n_partitions,
                           .partition = i % w->n_partitions,
                           .n_replicas = w->n_replicas,
                           .n_partitions = w->n_partitions,
                           .timeout_ms = w->timeout_ms };
    w->devices[i].status = NULL;
    assert_null(cx_thread_start(&threads[i], device_run, &w->devices[i]));
  }
  for (uint32_t i = 0; i < n; i++) cx_thread_join(&threads[i]);
  pthread_barrier_destroy(&all_there);
}
