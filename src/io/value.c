// io/value: a tree of tensors, numbers, texts and containers.
//
// A value has one owner: the caller, or the container that it was put into. A
// dict keeps the order of its items, as Python's do, and finds them by a table
// of hashes once it has more than a few. Freeing does not recurse: a program
// may build a tree of any depth.
#include "io/value.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"

enum { SMALL = 8 };  // items that are found by looking at each

bool cx_io_is_container(calx_kind kind)
{
  return kind == CALX_KIND_LIST || kind == CALX_KIND_TUPLE ||
         kind == CALX_KIND_SET || kind == CALX_KIND_DICT;
}

const char *calx_kind_name(calx_kind kind)
{
  static const char *const names[] = { "None",  "bool",  "int",    "float",
                                       "str",   "bytes", "Tensor", "list",
                                       "tuple", "set",   "dict" };
  size_t i = (size_t)kind;
  return i < sizeof names / sizeof *names ? names[i] : "?";
}

// ---- making -----------------------------------------------------------------

static calx_value *value_new(calx_kind kind)
{
  calx_value *v = cx_calloc(1, sizeof *v);
  if (v != NULL) v->kind = kind;
  return v;
}

calx_value *calx_value_none(void)
{
  return value_new(CALX_KIND_NONE);
}

calx_value *calx_value_bool(bool value)
{
  calx_value *v = value_new(CALX_KIND_BOOL);
  if (v != NULL) v->as.boolean = value;
  return v;
}

calx_value *calx_value_int(int64_t value)
{
  calx_value *v = value_new(CALX_KIND_INT);
  if (v != NULL) v->as.integer = value;
  return v;
}

calx_value *calx_value_float(double value)
{
  calx_value *v = value_new(CALX_KIND_FLOAT);
  if (v != NULL) v->as.real = value;
  return v;
}

calx_value *cx_io_text(calx_kind kind, const char *data, size_t size)
{
  calx_value *v = value_new(kind);
  size_t bytes;
  if (v == NULL) return NULL;
  v->as.text.data = cx_add_size(size, 1, &bytes) ? cx_alloc(bytes) : NULL;
  if (v->as.text.data == NULL) {
    cx_free(v);
    return NULL;
  }
  if (size != 0) memcpy(v->as.text.data, data, size);
  v->as.text.data[size] = '\0';
  v->as.text.size = size;
  return v;
}

calx_value *calx_value_string(const char *text)
{
  if (text == NULL) text = "";
  return cx_io_text(CALX_KIND_STRING, text, strlen(text));
}

calx_value *calx_value_bytes(const void *data, size_t size)
{
  return cx_io_text(CALX_KIND_BYTES, data, size);
}

calx_value *calx_value_tensor(calx_tensor *tensor)
{
  if (tensor == NULL) return calx_value_none();
  calx_value *v = value_new(CALX_KIND_TENSOR);
  if (v != NULL) v->as.tensor = calx_retain(tensor);
  return v;
}

calx_value *calx_value_container(calx_kind kind)
{
  return cx_io_is_container(kind) ? value_new(kind) : NULL;
}

// Frees what v itself owns; its items were freed before.
static void free_one(calx_value *v)
{
  if (v->kind == CALX_KIND_TENSOR) {
    calx_release(v->as.tensor);
  } else if (v->kind == CALX_KIND_STRING || v->kind == CALX_KIND_BYTES) {
    cx_free(v->as.text.data);
  } else if (cx_io_is_container(v->kind)) {
    cx_free(v->as.items.entries);
    cx_free(v->as.items.slots);
  }
  cx_free(v);
}

static void free_tree(calx_value *root)
{
  calx_value *v = root;
  for (;;) {
    if (cx_io_is_container(v->kind) && v->as.items.count > 0) {
      cx_io_entry *last = &v->as.items.entries[--v->as.items.count];
      cx_free(last->key);
      v = last->value;
      continue;
    }
    calx_value *owner = v->owner;
    bool done = v == root;
    free_one(v);
    if (done) return;
    v = owner;
  }
}

void calx_value_free(calx_value *value)
{
  if (value != NULL && value->owner == NULL) free_tree(value);
}

// ---- a dict's keys ----------------------------------------------------------

static size_t hash_of(const char *key, int64_t number)
{
  cx_hash h = key != NULL ? cx_hash_bytes(key, strlen(key), 1)
                          : cx_hash_bytes(&number, sizeof number, 2);
  return (size_t)h.low;
}

static bool has_key(const cx_io_entry *e, const char *key, int64_t number)
{
  if (key == NULL || e->key == NULL) {
    return key == e->key && number == e->number;
  }
  return strcmp(e->key, key) == 0;
}

// The slot of a key: of its item, or the empty one where it would go.
static uint32_t *slot_of(const calx_value *dict, const char *key,
                         int64_t number)
{
  size_t mask = dict->as.items.n_slots - 1;
  size_t i = hash_of(key, number) & mask;
  for (;; i = (i + 1) & mask) {
    uint32_t *slot = &dict->as.items.slots[i];
    if (*slot == 0 ||
        has_key(&dict->as.items.entries[*slot - 1], key, number)) {
      return slot;
    }
  }
}

static cx_io_entry *find(const calx_value *dict, const char *key,
                         int64_t number)
{
  if (dict == NULL || dict->kind != CALX_KIND_DICT) return NULL;
  cx_io_entry *entries = dict->as.items.entries;
  if (dict->as.items.slots != NULL) {
    uint32_t slot = *slot_of(dict, key, number);
    return slot != 0 ? &entries[slot - 1] : NULL;
  }
  for (size_t i = 0; i < dict->as.items.count; i++) {
    if (has_key(&entries[i], key, number)) return &entries[i];
  }
  return NULL;
}

// Makes space in the table for one more item. False: no memory, nothing
// changed.
static bool grow_slots(calx_value *dict)
{
  size_t need = dict->as.items.count + 1;
  if (need <= SMALL || need * 2 <= dict->as.items.n_slots) return true;
  size_t n = 4 * SMALL;
  while (n < need * 4) n *= 2;
  uint32_t *slots = cx_calloc(n, sizeof *slots);
  if (slots == NULL) return false;
  cx_free(dict->as.items.slots);
  dict->as.items.slots = slots;
  dict->as.items.n_slots = n;
  for (size_t i = 0; i < dict->as.items.count; i++) {
    const cx_io_entry *e = &dict->as.items.entries[i];
    *slot_of(dict, e->key, e->number) = (uint32_t)(i + 1);
  }
  return true;
}

// ---- putting ----------------------------------------------------------------

static calx_status *check_put(const calx_value *container,
                              const calx_value *item, bool keyed)
{
  if (item == NULL) return cx_out_of_memory();
  bool fits = container != NULL && cx_io_is_container(container->kind) &&
              (container->kind == CALX_KIND_DICT) == keyed;
  if (!fits) {
    return cx_error(
        CALX_INVALID_ARGUMENT, "value: an item can't be put into %s %s a key",
        container == NULL ? "NULL" : calx_kind_name(container->kind),
        keyed ? "with" : "without");
  }
  if (item->owner == NULL && item != container) return NULL;
  return cx_invalid("value: this %s is in a container already",
                    calx_kind_name(item->kind));
}

static calx_status *add(calx_value *c, const char *key, int64_t number,
                        calx_value *item)
{
  char *copy = key != NULL ? cx_strdup(key) : NULL;
  bool dict = c->kind == CALX_KIND_DICT;
  if ((key != NULL && copy == NULL) || c->as.items.count >= UINT32_MAX - 1 ||
      !cx_grow(&c->as.items.entries, &c->as.items.capacity,
               c->as.items.count + 1, sizeof *c->as.items.entries) ||
      (dict && !grow_slots(c))) {
    cx_free(copy);
    return cx_out_of_memory();
  }
  c->as.items.entries[c->as.items.count++] =
      (cx_io_entry){ .key = copy, .number = number, .value = item };
  if (dict && c->as.items.slots != NULL) {
    *slot_of(c, key, number) = (uint32_t)c->as.items.count;
  }
  item->owner = c;
  return NULL;
}

static calx_status *put(calx_value *c, const char *key, int64_t number,
                        bool keyed, calx_value *item)
{
  calx_status *status = check_put(c, item, keyed);
  cx_io_entry *old = status == NULL ? find(c, key, number) : NULL;
  if (old != NULL) {
    old->value->owner = NULL;
    calx_value_free(old->value);
    old->value = item;
    item->owner = c;
  } else if (status == NULL) {
    status = add(c, key, number, item);
  }
  if (status != NULL) calx_value_free(item);
  return status;
}

calx_status *calx_value_append(calx_value *list, calx_value *item)
{
  return put(list, NULL, 0, false, item);
}

calx_status *calx_value_set(calx_value *dict, const char *key, calx_value *item)
{
  return put(dict, key != NULL ? key : "", 0, true, item);
}

calx_status *calx_value_set_at(calx_value *dict, int64_t key, calx_value *item)
{
  return put(dict, NULL, key, true, item);
}

calx_status *cx_io_put(calx_value *container, const cx_io_entry *like,
                       calx_value *item)
{
  bool keyed = container->kind == CALX_KIND_DICT;
  return put(container, keyed ? like->key : NULL, keyed ? like->number : 0,
             keyed, item);
}

calx_status *cx_io_lend(calx_value *dict, const char *key, calx_value *item)
{
  CALX_TRY(check_put(dict, item, true));
  return add(dict, key, 0, item);
}

void cx_io_take_back(calx_value *dict, calx_value *item)
{
  if (item == NULL || item->owner != dict) return;
  cx_free(dict->as.items.slots);
  dict->as.items.slots = NULL;
  dict->as.items.n_slots = 0;
  size_t i = 0, n = --dict->as.items.count;
  while (dict->as.items.entries[i].value != item) i++;
  cx_free(dict->as.items.entries[i].key);
  dict->as.items.entries[i] = dict->as.items.entries[n];
  item->owner = NULL;
}

// ---- asking -----------------------------------------------------------------

calx_kind calx_value_kind(const calx_value *value)
{
  return value != NULL ? value->kind : CALX_KIND_NONE;
}

size_t calx_value_count(const calx_value *value)
{
  calx_kind kind = calx_value_kind(value);
  if (cx_io_is_container(kind)) return value->as.items.count;
  bool text = kind == CALX_KIND_STRING || kind == CALX_KIND_BYTES;
  return text ? value->as.text.size : 0;
}

static const cx_io_entry *entry_at(const calx_value *container, size_t i)
{
  if (!cx_io_is_container(calx_value_kind(container))) return NULL;
  if (i >= container->as.items.count) return NULL;
  return &container->as.items.entries[i];
}

calx_value *calx_value_item(const calx_value *container, size_t i)
{
  const cx_io_entry *e = entry_at(container, i);
  return e != NULL ? e->value : NULL;
}

const char *calx_value_key(const calx_value *dict, size_t i)
{
  const cx_io_entry *e = entry_at(dict, i);
  return e != NULL ? e->key : NULL;
}

int64_t calx_value_key_number(const calx_value *dict, size_t i)
{
  const cx_io_entry *e = entry_at(dict, i);
  return e != NULL ? e->number : 0;
}

calx_value *calx_value_get(const calx_value *dict, const char *key)
{
  const cx_io_entry *e = key != NULL ? find(dict, key, 0) : NULL;
  return e != NULL ? e->value : NULL;
}

calx_value *calx_value_get_at(const calx_value *dict, int64_t key)
{
  const cx_io_entry *e = find(dict, NULL, key);
  return e != NULL ? e->value : NULL;
}

double calx_value_as_float(const calx_value *value)
{
  switch ((int)calx_value_kind(value)) {
    case CALX_KIND_FLOAT: return value->as.real;
    case CALX_KIND_INT: return (double)value->as.integer;
    case CALX_KIND_BOOL: return value->as.boolean;
    default: return (double)NAN;
  }
}

int64_t calx_value_as_int(const calx_value *value)
{
  switch ((int)calx_value_kind(value)) {
    case CALX_KIND_INT: return value->as.integer;
    case CALX_KIND_BOOL: return value->as.boolean;
    case CALX_KIND_FLOAT: {
      double x = value->as.real;
      if (x != x) return 0;
      if (x >= 0x1p63) return INT64_MAX;
      return x <= -0x1p63 ? INT64_MIN : (int64_t)x;
    }
    default: return 0;
  }
}

bool calx_value_as_bool(const calx_value *value)
{
  double x = calx_value_as_float(value);
  return x == x && x != 0;
}

const char *calx_value_as_string(const calx_value *value)
{
  calx_kind kind = calx_value_kind(value);
  bool text = kind == CALX_KIND_STRING || kind == CALX_KIND_BYTES;
  return text ? value->as.text.data : NULL;
}

calx_tensor *calx_value_as_tensor(const calx_value *value)
{
  return calx_value_kind(value) == CALX_KIND_TENSOR ? value->as.tensor : NULL;
}
