// harness: see harness.h.
#include "engine/jit/harness.h"

#include <math.h>

#include "base/dtype.h"
#include "run/object.h"

#define MAX_BUFFERS 80

typedef struct program {
  cx_hlo_module *module;
  cx_hlo_func *main;
  cpu_jit_kernel kernel;
  const cx_hlo_op **ops;
  const cx_hlo_value *inputs[MAX_BUFFERS], *outputs[MAX_BUFFERS];
  unsigned char *memory[MAX_BUFFERS];  // arguments, the interpreter's results
} program;

static void open_program(program *p, const char *text)
{
  memset(p, 0, sizeof *p);
  p->module = check_parse(text);
  CHECK_OK(cx_hlo_verify(p->module));
  p->main = cx_hlo_entry(p->module);
  const cx_hlo_block *block = p->main->body.first;
  size_t n = 0;
  for (const cx_hlo_op *op = block->first; op != block->last; op = op->next) {
    n++;
  }
  p->ops = test_malloc((n + 1) * sizeof *p->ops);
  n = 0;
  for (const cx_hlo_op *op = block->first; op != block->last; op = op->next) {
    p->ops[n++] = op;
  }
  cpu_jit_kernel *k = &p->kernel;
  k->ops = p->ops;
  k->n_ops = n;
  k->inputs = p->inputs;
  k->n_inputs = block->n_args;
  for (size_t i = 0; i < block->n_args; i++) p->inputs[i] = &block->args[i];
  k->outputs = p->outputs;
  k->n_outputs = block->last->n_operands;
  for (size_t i = 0; i < k->n_outputs; i++) {
    p->outputs[i] = block->last->operands[i];
  }
}

static void close_program(program *p)
{
  test_free(p->ops);
  cx_hlo_module_free(p->module);
}

// ---- numbers ----

static uint64_t next(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static void fill_float(calx_dtype d, unsigned char *p, int fill, uint64_t *s)
{
  static const double odd[] = { 0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                (double)INFINITY,
                                0.5,
                                (double)-INFINITY,
                                (double)NAN,
                                -0.5,
                                1e-40,
                                2.5,
                                3.4e38,
                                -3.4e38,
                                1e10,
                                -1.5,
                                300.,
                                65504,
                                -70000,
                                1e-300,
                                6e-8 };
  const uint64_t r = next(s);
  double v = ((double)(r % 2001) - 1000) / 128;
  if (fill == HARNESS_SPECIAL && r % 3 != 0) {
    v = odd[(r / 3) % (sizeof odd / sizeof odd[0])];
  }
  if (fill == HARNESS_POSITIVE) v = 0.1 + (double)(r % 1000) / 256;
  if (fill == HARNESS_EQUAL) v = 0.7;
  if (fill == HARNESS_BITS) {
    const bool tiny = r % 2 == 0;
    const uint32_t bits =
        (uint32_t)(next(s) << 16 ^ next(s)) & (tiny ? 0x807FFFFF : UINT32_MAX);
    float x;
    memcpy(&x, &bits, sizeof x);
    v = (double)x;
  }
  cx_store_double(d, p, v);
}

static void fill_int(cx_hlo_elem e, unsigned char *p, int fill, uint64_t *s)
{
  const uint64_t r = next(s);
  uint64_t v = (uint64_t)((int64_t)(r % 41) - 20);
  if (fill == HARNESS_SPECIAL) {
    const uint64_t top = (uint64_t)1 << (cx_hlo_elem_bits(e) - 1);
    const uint64_t odd[] = { 0, 1, UINT64_MAX, top, top - 1, 2, top + 1, 40 };
    v = r % 4 == 0 ? next(s) << 20 ^ r : odd[r % 8];
  }
  if (fill == HARNESS_POSITIVE) v = r % 8;
  if (fill == HARNESS_COUNT) v = r % 10;
  if (e == CX_HLO_I1) v = r >> 4 & 1;
  memcpy(p, &v, cx_hlo_elem_bytes(e));
}

static void fill_tensor(const cx_hlo_type *t, unsigned char *p, int fill,
                        uint64_t *s)
{
  const cx_hlo_elem part = cx_hlo_elem_part(t->elem);
  const size_t size = cx_hlo_elem_bytes(part);
  size_t n = (size_t)cx_hlo_type_elements(t);
  if (part != t->elem) n *= 2;
  for (size_t i = 0; i < n; i++) {
    if (!cx_hlo_elem_is_plain(part)) {
      p[i] = (unsigned char)i;  // every code
    } else if (cx_hlo_elem_is_float(part)) {
      fill_float(cx_hlo_elem_dtype(part), p + i * size, fill, s);
    } else {
      fill_int(part, p + i * size, fill, s);
    }
  }
}

static size_t bytes_of(const cx_hlo_type *t)
{
  return (size_t)cx_hlo_type_elements(t) * cx_hlo_elem_bytes(t->elem);
}

// ---- comparison ----

static void compare_floats(const cx_hlo_type *t, const unsigned char *got,
                           const unsigned char *want, double tolerance,
                           const char *what, const char *text)
{
  const cx_hlo_elem part = cx_hlo_elem_part(t->elem);
  const calx_dtype d = cx_hlo_elem_dtype(part);
  const size_t size = cx_hlo_elem_bytes(part);
  const size_t n = bytes_of(t) / size;
  for (size_t i = 0; i < n; i++) {
    const double a = cx_load_double(d, got + i * size);
    const double b = cx_load_double(d, want + i * size);
    bool same = (isnan(a) && isnan(b)) ||
                (a == b && (a != 0 || signbit(a) == signbit(b)));
    if (!same && tolerance > 0) {
      same = fabs(a - b) <= tolerance * fmax(fabs(b), 1e-3);
    }
    if (!same) {
      print_error("%s: element %zu is %.17g, the interpreter has %.17g\n%s\n",
                  what, i, a, b, text);
      fail();
    }
  }
}

static void compare(const cx_hlo_type *t, const void *got, const void *want,
                    double tolerance, const char *what, const char *text)
{
  const cx_hlo_elem part = cx_hlo_elem_part(t->elem);
  if (cx_hlo_elem_is_float(part) && cx_hlo_elem_is_plain(part)) {
    compare_floats(t, got, want, tolerance, what, text);
    return;
  }
  const size_t size = cx_hlo_elem_bytes(t->elem);
  for (size_t i = 0; i * size < bytes_of(t); i++) {
    const unsigned char *a = (const unsigned char *)got + i * size;
    const unsigned char *b = (const unsigned char *)want + i * size;
    if (memcmp(a, b, size) != 0) {
      uint64_t x = 0;
      uint64_t y = 0;
      memcpy(&x, a, size);
      memcpy(&y, b, size);
      print_error("%s: element %zu is %llx, the interpreter has %llx\n%s\n",
                  what, i, (unsigned long long)x, (unsigned long long)y, text);
      fail();
    }
  }
}

// ---- running ----

typedef void kernel_fn(void *const *buffers, int64_t lo, int64_t hi);

static void run_kernel(const program *p, const cpu_run_object *object,
                       void **memory, bool in_parts)
{
  for (size_t phase = 0; phase < p->kernel.n_phases; phase++) {
    char name[32];
    snprintf(name, sizeof name, "k0_%zu", phase);
    void *address = cpu_run_object_find(object, name);
    assert_non_null(address);
    kernel_fn *fn;
    memcpy(&fn, &address, sizeof fn);
    const cpu_jit_phase *ph = &p->kernel.phases[phase];
    if (ph->to != 0 && memory[ph->from] == memory[ph->to]) continue;
    const int64_t n = ph->extent;
    if (!in_parts) {
      fn(memory, 0, n);
      continue;
    }
    const int64_t step = n / 3 + 1;
    for (int64_t lo = 0; lo < n; lo += step) {
      fn(memory, lo, lo + step < n ? lo + step : n);
    }
  }
}

#define GUARD 64  // bytes before and after each buffer that stay as they are

static unsigned char *new_memory(size_t size)
{
  unsigned char *p = test_malloc(size + 2 * GUARD);
  memset(p, 0xA5, size + 2 * GUARD);
  return p + GUARD;
}

static void free_memory(unsigned char *p, size_t size)
{
  for (size_t i = 0; i < GUARD; i++) {
    assert_int_equal(p[-1 - (int)i], 0xA5);
    assert_int_equal(p[size + i], 0xA5);
  }
  test_free(p - GUARD);
}

static size_t buffer_bytes(const program *p, size_t i)
{
  const cpu_jit_kernel *k = &p->kernel;
  if (i < k->n_inputs) return bytes_of(&k->inputs[i]->type.tensor);
  if (i < k->n_inputs + k->n_outputs) {
    return bytes_of(&k->outputs[i - k->n_inputs]->type.tensor);
  }
  return k->scratch;
}

// Fills the arguments and interprets the program: the same for each number of
// lanes, in parts and in whole.
static void reference(program *p, int fill)
{
  const cpu_jit_kernel *k = &p->kernel;
  cpu_ref_tensor args[MAX_BUFFERS];
  cpu_ref_tensor results[MAX_BUFFERS];
  uint64_t seed = 1;
  for (size_t i = 0; i < k->n_inputs + k->n_outputs; i++) {
    p->memory[i] = new_memory(buffer_bytes(p, i));
  }
  for (size_t i = 0; i < k->n_inputs; i++) {
    fill_tensor(&k->inputs[i]->type.tensor, p->memory[i], fill, &seed);
    args[i] = (cpu_ref_tensor){ k->inputs[i]->type.tensor, p->memory[i] };
  }
  for (size_t i = 0; i < k->n_outputs; i++) {
    results[i] = (cpu_ref_tensor){ k->outputs[i]->type.tensor,
                                   p->memory[k->n_inputs + i] };
  }
  CHECK_OK(cpu_ref_run(p->module, p->main, args, results, NULL));
}

static void free_reference(program *p)
{
  for (size_t i = 0; i < p->kernel.n_inputs + p->kernel.n_outputs; i++) {
    free_memory(p->memory[i], buffer_bytes(p, i));
  }
}

static void check_lanes(program *p, const harness_case *c, int lanes,
                        bool in_place)
{
  cx_text object = { 0 };
  cpu_run_object *code = NULL;
  const cpu_jit_options options = { .lanes = lanes };
  cpu_jit_kernel *k = &p->kernel;
  CHECK_OK(cpu_jit_get_api()->compile(&options, k, 1, &object));
  CHECK_OK(cpu_run_object_load(object.data, object.size, &code));
  const size_t n = k->n_inputs + k->n_outputs + 1;
  assert_true(n <= MAX_BUFFERS);
  for (int parts = 0; parts < 2; parts++) {
    unsigned char *memory[MAX_BUFFERS];
    for (size_t i = 0; i < n; i++) {
      const size_t size = buffer_bytes(p, i);
      memory[i] = new_memory(size);
      if (i < k->n_inputs) memcpy(memory[i], p->memory[i], size);
    }
    void *buffers[MAX_BUFFERS];
    for (size_t i = 0; i < n; i++) buffers[i] = memory[i];
    if (in_place) buffers[k->n_inputs] = memory[0];
    run_kernel(p, code, buffers, parts != 0);
    char what[64];
    snprintf(what, sizeof what, "%d lanes%s", lanes, parts ? ", in parts" : "");
    for (size_t i = 0; i < k->n_outputs; i++) {
      const size_t at = k->n_inputs + i;
      compare(&k->outputs[i]->type.tensor, buffers[at], p->memory[at],
              c->tolerance, what, c->text);
    }
    for (size_t i = 0; i < n; i++) free_memory(memory[i], buffer_bytes(p, i));
  }
  cpu_run_object_free(code);
  cx_text_free(&object);
}

static const int all_lanes[] = { 16, 8, 4 };

void harness_check(const harness_case *c)
{
  program p;
  open_program(&p, c->text);
  reference(&p, c->fill);
  for (size_t i = 0; i < 3; i++) check_lanes(&p, c, all_lanes[i], false);
  free_reference(&p);
  close_program(&p);
}

void harness_check_in_place(const char *text)
{
  const harness_case c = { .text = text };
  program p;
  open_program(&p, text);
  reference(&p, c.fill);
  for (size_t i = 0; i < 3; i++) check_lanes(&p, &c, all_lanes[i], true);
  free_reference(&p);
  close_program(&p);
}

calx_status *harness_compile(const char *text)
{
  program p;
  open_program(&p, text);
  cx_text object = { 0 };
  calx_status *status = cpu_jit_get_api()->compile(NULL, &p.kernel, 1, &object);
  cx_text_free(&object);
  close_program(&p);
  return status;
}

// 0F, the second byte, /1, of an address in memory.
static size_t count_prefetches(const char *text, unsigned char second)
{
  program p;
  open_program(&p, text);
  cx_text object = { 0 };
  CHECK_OK(cpu_jit_get_api()->compile(NULL, &p.kernel, 1, &object));
  size_t n = 0;
  for (size_t i = 0; i + 2 < object.size; i++) {
    const unsigned char *at = (const unsigned char *)object.data + i;
    n += at[0] == 0x0F && at[1] == second && (at[2] & 0x38) == 0x08 &&
         at[2] < 0xC0;
  }
  cx_text_free(&object);
  close_program(&p);
  return n;
}

size_t harness_prefetches(const char *text)
{
  return count_prefetches(text, 0x18);  // prefetcht0
}

size_t harness_prefetches_to_write(const char *text)
{
  return count_prefetches(text, 0x0D);  // prefetchw
}

void harness_check_shared(const char *text, const char *equal,
                          const char *other)
{
  const char *const texts[] = { text, equal, other };
  program p[3];
  cpu_jit_kernel kernels[3];
  for (int i = 0; i < 3; i++) {
    open_program(&p[i], texts[i]);
    kernels[i] = p[i].kernel;
  }
  cx_text object = { 0 };
  cpu_run_object *code = NULL;
  CHECK_OK(cpu_jit_get_api()->compile(NULL, kernels, 3, &object));
  CHECK_OK(cpu_run_object_load(object.data, object.size, &code));
  void *first = cpu_run_object_find(code, "k0_0");
  assert_non_null(first);
  assert_ptr_equal(first, cpu_run_object_find(code, "k1_0"));
  assert_non_null(cpu_run_object_find(code, "k2_0"));
  assert_ptr_not_equal(first, cpu_run_object_find(code, "k2_0"));
  cpu_run_object_free(code);
  cx_text_free(&object);
  for (int i = 0; i < 3; i++) close_program(&p[i]);
}
