// lazy/tensor/scope: a thread's stack of scopes. A scope is a list of tensors
// that it holds one reference of, and the first error.
#include "calx/scope.h"

#include "base/alloc.h"
#include "base/trace.h"
#include "lazy/internal.h"

static atomic_long live;

long cx_lazy_scope_live(void)
{
  return atomic_load(&live);
}

// ---- what a sync must see to ------------------------------------------------

static void list(calx_scope *s)
{
  if (s->unsettled_link != NULL) return;
  calx_scope **head = &cx_lazy_self.unsettled;
  s->next_unsettled = *head;
  if (*head != NULL) (*head)->unsettled_link = &s->next_unsettled;
  s->unsettled_link = head;
  *head = s;
}

static void unlist(calx_scope *s)
{
  if (s->unsettled_link == NULL) return;
  *s->unsettled_link = s->next_unsettled;
  if (s->next_unsettled != NULL) {
    s->next_unsettled->unsettled_link = s->unsettled_link;
  }
  s->unsettled_link = NULL;
}

static void put(calx_scope *s, size_t at, calx_tensor *t)
{
  s->tensors[at] = t;
  t->scope_at = (uint32_t)at;
}

static void swap(calx_scope *s, size_t a, size_t b)
{
  calx_tensor *x = s->tensors[a], *y = s->tensors[b];
  put(s, a, y);
  put(s, b, x);
}

void cx_lazy_scope_unsettle(calx_tensor *t)
{
  calx_scope *s = t->scope;
  if (s == NULL) return;
  if (s->thread != &cx_lazy_self) {
    atomic_store(&s->thread->rescan, true);
    return;
  }
  if (t->scope_at < s->settled) swap(s, t->scope_at, --s->settled);
  list(s);
}

void cx_lazy_scope_remove(calx_tensor *t)
{
  calx_scope *s = t->scope;
  if (t->scope_at < s->settled) swap(s, t->scope_at, --s->settled);
  calx_tensor *last = s->tensors[--s->count];
  if (last != t) put(s, t->scope_at, last);
  t->scope = NULL;
}

void cx_lazy_scopes_rescan(void)
{
  if (!atomic_exchange(&cx_lazy_self.rescan, false)) return;
  for (calx_scope *s = cx_lazy_self.top; s != NULL; s = s->parent) {
    s->settled = 0;
    list(s);
  }
}

static bool is_settled(const calx_tensor *t)
{
  return t->node == NULL ||
         (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_DATA) != 0;
}

// Tensors of another device stay.
void cx_lazy_scopes_settle(void)
{
  for (calx_scope *s = cx_lazy_self.unsettled, *next; s != NULL; s = next) {
    next = s->next_unsettled;
    for (size_t i = s->settled; i < s->count; i++) {
      if (!is_settled(s->tensors[i])) continue;
      if (i != s->settled) swap(s, i, s->settled);
      s->settled++;
    }
    if (s->settled == s->count) unlist(s);
  }
}

// ---- life -------------------------------------------------------------------

static void scope_free(calx_scope *s)
{
  unlist(s);
  if (s->is_root) cx_lazy_root_remove(s);
  calx_status_free(s->later);
  calx_status_free(s->error);
  cx_free(s->tensors);
  cx_free(s);
  atomic_fetch_sub(&live, 1);
}

static void release_tensors(calx_scope *s)
{
  cx_lazy_tensors_forget_ended();
  // Newest first: a result goes before what it was made of.
  while (s->count > 0) {
    calx_tensor *t = s->tensors[--s->count];
    t->scope = NULL;
    cx_lazy_tensor_end(t);
  }
}

// Ends the autocast regions but for the first n.
static void cut_autocasts(uint32_t n)
{
  cx_lazy_thread_state *self = &cx_lazy_self;
  if (self->autocasts == n) return;
  self->autocasts = n;
  self->autocast =
      n == 0 ? CALX_DTYPE_DEFAULT : (calx_dtype)self->autocast_types[n - 1];
}

calx_status *cx_lazy_scope_pop(void)
{
  calx_scope *s = cx_lazy_self.top;
  release_tensors(s);
  cx_lazy_self.grad_regions = s->grad_regions_before;
  cx_lazy_self.grad_bits = s->grad_bits_before;
  cut_autocasts(s->autocasts_before);
  cx_trace_region_cut(s->regions_before);
  calx_status *error = s->error;
  s->error = NULL;
  cx_lazy_self.top = s->parent;
  scope_free(s);
  return error;
}

// ---- root scopes end with their thread --------------------------------------

static pthread_key_t root_key;
static pthread_once_t root_once = PTHREAD_ONCE_INIT;

static void root_end(void *scope)
{
  calx_scope *root = scope;
  while (cx_lazy_self.top != NULL && cx_lazy_self.top != root) {
    cx_lazy_log_untaken(cx_lazy_scope_pop());
  }
  release_tensors(root);
  cx_lazy_tensors_forget_ended();
  cx_lazy_root_report(root);
  cx_lazy_self.top = NULL;
  scope_free(root);
}

static void make_key(void)
{
  pthread_key_create(&root_key, root_end);
}

static calx_scope *scope_new(void)
{
  calx_scope *s = cx_calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  atomic_fetch_add(&live, 1);
  s->parent = cx_lazy_self.top;
  s->depth = s->parent != NULL ? s->parent->depth + 1 : 0;
  s->thread = &cx_lazy_self;
  s->grad_regions_before = cx_lazy_self.grad_regions;
  s->grad_bits_before = cx_lazy_self.grad_bits;
  s->autocasts_before = cx_lazy_self.autocasts;
  s->regions_before = cx_trace_region_count();
  s->site = *cx_site();
  return s;
}

calx_scope *cx_lazy_scope_current(void)
{
  if (cx_lazy_self.top != NULL) return cx_lazy_self.top;
  calx_scope *root = scope_new();
  if (root == NULL) return NULL;
  root->is_root = true;
  cx_lazy_root_add(root);
  cx_lazy_report_at_exit();
  if (cx_lazy_self.lost) cx_lazy_root_pin(root, cx_out_of_memory());
  cx_lazy_self.lost = false;
  pthread_once(&root_once, make_key);
  pthread_setspecific(root_key, root);
  cx_lazy_self.top = root;
  return root;
}

void cx_lazy_scope_end_root(void)
{
  if (cx_lazy_self.top == NULL) return;
  calx_scope *root = cx_lazy_self.top;
  while (root->parent != NULL) root = root->parent;
  pthread_setspecific(root_key, NULL);
  root_end(root);
}

// ---- membership -------------------------------------------------------------

enum { ROOT_WARNING = 10000, DEPTH_WARNING = 100 };

static bool add(calx_tensor *t)
{
  calx_scope *s = cx_lazy_scope_current();
  if (s == NULL ||
      !cx_grow(&s->tensors, &s->capacity, s->count + 1, sizeof *s->tensors)) {
    return false;
  }
  t->scope = s;
  put(s, s->count++, t);
  list(s);
  if (s->is_root && s->count == ROOT_WARNING) {
    cx_log_once_per_site("root",
                         "%d temporaries are held outside of any scope: is "
                         "there a calx_scope_begin in the training loop?",
                         ROOT_WARNING);
  }
  return true;
}

calx_tensor *cx_lazy_scope_give(calx_tensor *t)
{
  if (t == NULL) return cx_lazy_tensor_nil();
  if (add(t)) return t;
  cx_lazy_tensor_unref(t);
  cx_lazy_scope_pin(cx_out_of_memory());
  return cx_lazy_tensor_nil();
}

// ---- regions with and without gradients -------------------------------------

void cx_lazy_grad_region_begin(bool enable)
{
  cx_lazy_scope_current();  // the region belongs to a scope
  if (cx_lazy_self.grad_regions == CX_LAZY_MOST_REGIONS) {
    cx_lazy_scope_pin(cx_error(
        CALX_RESOURCE_EXHAUSTED,
        "%s_begin: %d regions are open already: is there a %s_end missing?",
        enable ? "enable_grad" : "no_grad", CX_LAZY_MOST_REGIONS,
        enable ? "enable_grad" : "no_grad"));
    return;
  }
  cx_lazy_self.grad_regions++;
  cx_lazy_self.grad_bits = cx_lazy_self.grad_bits << 1 | enable;
}

bool cx_lazy_grad_region_end(bool enable)
{
  const calx_scope *s = cx_lazy_scope_current();
  uint32_t outer = s != NULL ? s->grad_regions_before : 0;
  if (cx_lazy_self.grad_regions <= outer) return false;
  if (((cx_lazy_self.grad_bits & 1) != 0) != enable) return false;
  cx_lazy_self.grad_regions--;
  cx_lazy_self.grad_bits >>= 1;
  return true;
}

// ---- autocast regions -------------------------------------------------------

void cx_lazy_autocast_region_begin(calx_dtype dtype)
{
  cx_lazy_scope_current();  // the region belongs to a scope
  cx_lazy_thread_state *self = &cx_lazy_self;
  if (self->autocasts == CX_LAZY_MOST_REGIONS) {
    cx_lazy_scope_pin(cx_error(
        CALX_RESOURCE_EXHAUSTED,
        "autocast_begin: %d regions are open already: is there an autocast_end "
        "missing?",
        CX_LAZY_MOST_REGIONS));
    return;
  }
  self->autocast_types[self->autocasts++] = (unsigned char)dtype;
  self->autocast = dtype;
}

bool cx_lazy_autocast_region_end(void)
{
  const calx_scope *s = cx_lazy_scope_current();
  uint32_t outer = s != NULL ? s->autocasts_before : 0;
  if (cx_lazy_self.autocasts <= outer) return false;
  cut_autocasts(cx_lazy_self.autocasts - 1);
  return true;
}

calx_dtype cx_lazy_autocast(void)
{
  return cx_lazy_self.autocast;
}

calx_dtype cx_lazy_autocast_set(calx_dtype dtype)
{
  calx_dtype before = cx_lazy_self.autocast;
  cx_lazy_self.autocast = dtype;
  return before;
}

// ---- errors -----------------------------------------------------------------

void cx_lazy_scope_pin(calx_status *status)
{
  if (status == NULL) return;
  calx_scope *s = cx_lazy_scope_current();
  if (cx_lazy_debug_on(CX_LAZY_DEBUG_TRAP)) {
    calx_status_print(stderr, status);
    __builtin_trap();
  }
  if (s == NULL) {
    calx_status_free(status);
    cx_lazy_self.lost = true;
  } else if (s->is_root) {
    cx_lazy_root_pin(s, status);
  } else if (s->error != NULL) {
    calx_status_free(status);
  } else {
    s->error = status;
  }
}

bool cx_lazy_scope_failed(void)
{
  return cx_lazy_self.top != NULL ? cx_lazy_self.top->error != NULL
                                  : cx_lazy_self.lost;
}

// ---- public -----------------------------------------------------------------

calx_scope cx_lazy_no_scope;

calx_scope *calx_scope_begin(void)
{
  calx_scope *s = cx_lazy_scope_current() != NULL ? scope_new() : NULL;
  if (s == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return &cx_lazy_no_scope;
  }
  cx_lazy_self.top = s;
  if (s->depth == DEPTH_WARNING) {
    cx_log_once_per_site(
        "open",
        "%d scopes are open at once, the last one begun at %s:%d: is its "
        "calx_scope_end missing in a loop? Until then it keeps its tensors",
        DEPTH_WARNING, cx_site_file(&s->site), s->site.line);
  }
  return s;
}

calx_status *calx_scope_take_error(void)
{
  calx_scope *s = cx_lazy_self.top;
  if (s != NULL && s->is_root) return cx_lazy_root_take(s);
  calx_status *status = (calx_status *)calx_scope_error();
  if (s != NULL) s->error = NULL;
  cx_lazy_self.lost = false;
  return status;
}

const calx_status *calx_scope_error(void)
{
  if (cx_lazy_self.top != NULL) return cx_lazy_self.top->error;
  return cx_lazy_self.lost ? cx_out_of_memory() : NULL;
}

void calx_scope_set_error(calx_status *status)
{
  cx_lazy_scope_pin(status);
}
