// lower/codes: the loops to the compiler, what it refuses to the interpreter,
// and the kernels' choices.
//
// The compiler is a shared object of its own, loaded when something has to be
// compiled for the first time: libcalx_jit.so beside the file that this engine
// is in, or in the folder of libraries that it was built for.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "lower/plan.h"
#include "ref/ref.h"

#define JIT_FILE "libcalx_jit.so"

// ---- loading ----

static cx_mutex jit_lock = CX_MUTEX_INIT;
static const cx_jit_api *jit_api;

static void *open_in(const char *folder, size_t n, cx_text *looked)
{
  cx_text path = { 0 };
  cx_text_append_n(&path, folder, n);
  cx_text_append(&path, n > 0 ? "/" JIT_FILE : JIT_FILE);
  void *handle = cx_text_failed(&path)
                     ? NULL
                     : dlopen(cx_text_str(&path), RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *why = dlerror();
    cx_text_format(looked, "%s%s", looked->size > 0 ? "; " : "",
                   why == NULL ? cx_text_str(&path) : why);
  }
  cx_text_free(&path);
  return handle;
}

static calx_status *open_jit(const cx_jit_api **out)
{
  cx_text looked = { 0 };
  void *handle = NULL;
  const char *asked = getenv("CALX_JIT");
  Dl_info self;
  if (asked != NULL && asked[0] != '\0') {
    handle = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) cx_text_append(&looked, dlerror());
  } else {
    if (dladdr((const void *)&jit_lock, &self) != 0) {
      const char *slash = strrchr(self.dli_fname, '/');
      if (slash != NULL) {
        handle =
            open_in(self.dli_fname, (size_t)(slash - self.dli_fname), &looked);
      }
    }
    if (handle == NULL) {
      handle = open_in(CALX_JIT_FOLDER, strlen(CALX_JIT_FOLDER), &looked);
    }
    if (handle == NULL) handle = open_in("", 0, &looked);
  }
  const cx_jit_api *(*get)(void) = NULL;
  void *symbol = handle == NULL ? NULL : dlsym(handle, "cx_jit_get_api");
  memcpy(&get, &symbol, sizeof symbol);
  calx_status *status = NULL;
  if (get == NULL) {
    status = cx_error(CALX_NOT_FOUND,
                      "the CPU engine's compiler (" JIT_FILE
                      ") does not load: %s; CALX_JIT names its path",
                      cx_text_str(&looked));
  } else if ((*out = get())->struct_size < sizeof(cx_jit_api)) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      JIT_FILE " is of another version of calx");
  }
  cx_text_free(&looked);
  return status;
}

static calx_status *get_jit(const cx_jit_api **out)
{
  calx_status *status = NULL;
  cx_lock(&jit_lock);
  if (jit_api == NULL) status = open_jit(&jit_api);
  *out = jit_api;
  cx_unlock(&jit_lock);
  return status;
}

// ---- compiling ----

static calx_status *lanes_asked(int *out)
{
  const char *text = getenv("CALX_CPU_LANES");
  *out = 0;
  if (text == NULL || text[0] == '\0') return NULL;
  *out = atoi(text);
  if (*out == 16 || *out == 8 || *out == 4) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "CALX_CPU_LANES: wants 16, 8 or 4, found '%s'", text);
}

static void describe(cx_unit *u)
{
  u->jit = (cx_jit_kernel){
    .ops = (const cx_hlo_op *const *)(void *)u->ops,
    .n_ops = u->n_ops,
    .inputs = (const cx_hlo_value *const *)(void *)u->inputs,
    .n_inputs = u->n_inputs,
    .outputs = (const cx_hlo_value *const *)(void *)u->outputs,
    .n_outputs = u->n_outputs,
  };
}

// The compiler's own status becomes one of ours.
static calx_status *compile(const cx_jit_api *jit,
                            const cx_jit_options *options,
                            cx_jit_kernel *kernels, size_t n, cx_text *object)
{
  calx_status *theirs = jit->compile(options, kernels, n, object);
  if (theirs == NULL) return NULL;
  calx_status *ours =
      cx_error(calx_status_code(theirs), "%s", calx_status_message(theirs));
  jit->free_status(theirs);
  return ours;
}

// All of them at once.
static calx_status *compile_all(cx_planning *g, const cx_jit_api *jit,
                                const cx_jit_options *options, cx_text *object)
{
  cx_jit_kernel *kernels =
      CX_ARENA_ARRAY(&g->l->arena, cx_jit_kernel, g->n_codes + 1);
  if (kernels == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < g->n_codes; i++) {
    describe(g->codes[i]);
    kernels[i] = g->codes[i]->jit;
  }
  CALX_TRY(compile(jit, options, kernels, g->n_codes, object));
  for (size_t i = 0; i < g->n_codes; i++) {
    cx_unit *u = g->codes[i];
    u->jit = kernels[i];
    u->scratch = (int64_t)kernels[i].scratch;
    cx_code code = { .n_phases = (int64_t)kernels[i].n_phases };
    memcpy(code.phases, kernels[i].phases, sizeof code.phases);
    u->index = cx_assemble_code(&g->l->a, &code);
  }
  return NULL;
}

static bool compiles(const cx_jit_api *jit, const cx_jit_options *options,
                     cx_unit *u)
{
  cx_text object = { 0 };
  describe(u);
  cx_jit_kernel kernel = u->jit;
  calx_status *status = compile(jit, options, &kernel, 1, &object);
  jit->free_object(&object);
  bool ok = status == NULL;
  calx_status_free(status);
  return ok;
}

// Finds those that the compiler cannot do: they are interpreted.
static calx_status *sort_out(cx_planning *g, const cx_jit_api *jit,
                             const cx_jit_options *options)
{
  size_t n = 0;
  for (size_t i = 0; i < g->n_codes; i++) {
    cx_unit *u = g->codes[i];
    if (compiles(jit, options, u)) {
      g->codes[n++] = u;
      continue;
    }
    u->kind = CX_UNIT_INTERPRET;
    if (!cx_lower_push(g->l, &g->sides, &g->n_sides, &g->sides_room, u)) {
      return cx_out_of_memory();
    }
  }
  g->n_codes = n;
  return NULL;
}

// ---- matrix products and convolutions ----

// Equal ones are one kernel, and are timed once.
calx_status *cx_lower_kernel(cx_planning *g, cx_unit *u)
{
  for (size_t i = 0; i < g->n_kernels; i++) {
    const cx_unit *other = g->kernels[i];
    if (memcmp(u->desc, other->desc, sizeof *u->desc) == 0) {
      u->index = other->index;
      u->scratch = other->scratch;
      return NULL;
    }
  }
  cx_kernel_desc chosen = *u->desc;
  cx_kernel *kernel = NULL;
  CALX_TRY(cx_kernel_new(&chosen, g->l->pool, !g->l->deterministic, &kernel));
  u->scratch = (int64_t)cx_kernel_scratch(kernel);
  cx_kernel_free(kernel);
  u->index = cx_assemble_kernel(&g->l->a, &chosen);
  return cx_lower_push(g->l, &g->kernels, &g->n_kernels, &g->kernels_room, u)
             ? NULL
             : cx_out_of_memory();
}

// ---- loops ----

calx_status *cx_lower_codes(cx_planning *g)
{
  if (g->n_codes == 0) return NULL;
  const cx_jit_api *jit = NULL;
  cx_jit_options options = { 0 };
  CALX_TRY(lanes_asked(&options.lanes));
  CALX_TRY(get_jit(&jit));
  cx_text object = { 0 };
  calx_status *status = compile_all(g, jit, &options, &object);
  if (status != NULL && calx_status_code(status) == CALX_UNIMPLEMENTED) {
    calx_status_free(status);
    jit->free_object(&object);
    g->l->a.program->n_codes = 0;
    status = sort_out(g, jit, &options);
    if (status == NULL && g->n_codes > 0) {
      status = compile_all(g, jit, &options, &object);
    }
  }
  if (status == NULL) {
    cx_program *p = g->l->a.program;
    p->object_size = object.size;
    p->object_bytes = cx_alloc(object.size + 1);
    if (p->object_bytes == NULL) {
      status = cx_out_of_memory();
    } else if (object.size > 0) {
      memcpy(p->object_bytes, object.data, object.size);
    }
  }
  jit->free_object(&object);
  return status;
}
