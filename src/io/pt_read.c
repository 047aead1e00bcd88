// io/pt_read: a .pt file as a value: the pickle that its archive holds says
// what the value is made of, and which storages its tensors lie in.
//
// The file's own size bounds the memory: the packed and unpacked sizes of the
// entries, the nodes of the pickle, and the copies of texts that are used
// several times. pt_tensors.h has the bounds of tensors.
//
// What is not read makes the file unreadable, but in a checkpoint of
// Lightning's beside its states: there users put objects of their own classes,
// without which the weights are good. Each is None then, and a line of the log
// says so.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/pt.h"
#include "io/pt_tensors.h"
#include "io/value.h"

#define MB ((uint64_t)1 << 20)

typedef struct reading {
  const char *name;
  cx_io_pt_archive archive;
  cx_io_pt_tensors tensors;
  int64_t values;  // that may still be made of nodes
  uint64_t texts;  // bytes that those which are texts may still take
  cx_arena nodes;
  bool is_lightning, is_lenient;
  const cx_io_node *key;  // of the root's item that is read
  int64_t unread;         // values and items of dicts that were left out
  char first[256];        // the reason for the first of them
} reading;

bool cx_io_is_zip(const cx_io_map *map)
{
  return map->size >= 4 && memcmp(map->data, "PK\3\4", 4) == 0;
}

// A pickle of the number 0x1950a86a20f9469cfc6c comes first.
bool cx_io_is_old_pt(const cx_io_map *map)
{
  static const char magic[] = "\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";
  return map->size >= 15 && map->data[0] == 0x80 &&
         memcmp(map->data + 2, magic, 13) == 0;
}

// ---- values -----------------------------------------------------------------

static calx_status *make_value(reading *r, const cx_io_node *node, int depth,
                               calx_value **out);

// Where the value may be left out, it becomes None; else the reason is the
// failure.
static calx_status *leave_out(reading *r, calx_status *why, calx_value **out)
{
  *out = NULL;
  if (!r->is_lenient) return why;
  if (r->unread++ == 0) {
    char key[64];
    cx_text_plain(r->key->as.text.data, r->key->as.text.size, key, sizeof key);
    snprintf(r->first, sizeof r->first, "in '%s': %s", key,
             cx_status_sentence(why));
  }
  calx_status_free(why);
  *out = calx_value_none();
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *refuse(const reading *r, const cx_io_node *node)
{
  if (node->what == CX_IO_NODE_STORAGE) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': a storage as a value of its own, which is not read",
                    r->name);
  }
  if (!cx_io_node_is_foreign(node)) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': '%s' as a value of its own: a type as a value is "
                    "not read",
                    r->name, node->as.name.text);
  }
  if (node->type == CALX_KIND_INT) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': data.pkl byte %zu: %s, at most 8 are possible",
                    r->name, node->as.name.at, node->as.name.text);
  }
  return cx_error(CALX_UNIMPLEMENTED,
                  "'%s': data.pkl byte %zu: it wants '%s', and nothing in a "
                  "file is run: tensors, dicts, lists, numbers and texts are "
                  "read",
                  r->name, node->as.name.at, node->as.name.text);
}

static calx_status *make_tensor_value(reading *r, const cx_io_node *node,
                                      calx_value **out)
{
  calx_tensor *tensor;
  CALX_TRY(cx_io_pt_tensor(&r->tensors, node, &tensor));
  *out = calx_value_tensor(tensor);
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *too_much(const reading *r)
{
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "'%s': its containers share so many items that they come "
                  "to more than the file has",
                  r->name);
}

// A text is copied each time the pickle uses it, so each use counts against the
// limit.
static calx_status *charge_text(reading *r, size_t size)
{
  if (size > r->texts) return too_much(r);
  r->texts -= size;
  return NULL;
}

// The class that is a key, as of Lightning's callbacks before 1.5, has its
// name.
static calx_status *key_of(reading *r, const cx_io_node *node, cx_io_entry *out)
{
  *out = (cx_io_entry){ 0 };
  bool value = node->what == CX_IO_NODE_VALUE;
  if (r->is_lenient && node->what == CX_IO_NODE_CALL) {
    CALX_TRY(charge_text(r, strlen(node->as.name.text)));
    out->key = cx_strdup(node->as.name.text);
    return out->key != NULL ? NULL : cx_out_of_memory();
  }
  if (value && node->type == CALX_KIND_INT) {
    out->number = node->as.integer;
    return NULL;
  }
  if (!value || node->type != CALX_KIND_STRING) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': a dict with a %s as key; texts and integers are "
                    "read",
                    r->name,
                    value ? calx_kind_name(node->type) : "tensor or name");
  }
  if (memchr(node->as.text.data, '\0', node->as.text.size) != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': a dict's key has a zero byte in it", r->name);
  }
  CALX_TRY(charge_text(r, node->as.text.size));
  out->key = cx_strndup(node->as.text.data, node->as.text.size);
  return out->key != NULL ? NULL : cx_out_of_memory();
}

static bool is_text(const cx_io_node *node, const char *text)
{
  return node->what == CX_IO_NODE_VALUE && node->type == CALX_KIND_STRING &&
         node->as.text.size == strlen(text) &&
         memcmp(node->as.text.data, text, node->as.text.size) == 0;
}

// The root's item of this key is read next. What a schedule's state lacks is
// reported when it is loaded; an optimiser would begin anew without it.
static void begin_item(reading *r, const cx_io_node *key)
{
  r->key = key;
  r->is_lenient = r->is_lightning && key->what == CX_IO_NODE_VALUE &&
                  key->type == CALX_KIND_STRING &&
                  !is_text(key, "state_dict") &&
                  !is_text(key, "optimizer_states");
}

static calx_status *fill_item(reading *r, const cx_io_node *key,
                              const cx_io_node *node, int depth,
                              calx_value *out)
{
  cx_io_entry like = { 0 };
  calx_value *item = NULL;
  if (key != NULL && depth == 0) begin_item(r, key);
  calx_status *status = key != NULL ? key_of(r, key, &like) : NULL;
  if (calx_status_code(status) == CALX_UNIMPLEMENTED && depth > 0) {
    status = leave_out(r, status, &item);  // the whole item
    calx_value_free(item);
    return status;
  }
  if (status == NULL) status = make_value(r, node, depth + 1, &item);
  if (status == NULL) status = cx_io_put(out, &like, item);
  cx_free(like.key);
  return status;
}

static calx_status *fill(reading *r, const cx_io_node *node, int depth,
                         calx_value *out)
{
  cx_io_node *const *items = node->as.list.items;
  bool dict = node->type == CALX_KIND_DICT;
  for (size_t i = 0; dict && depth == 0 && i < node->as.list.count; i += 2) {
    r->is_lightning |= is_text(items[i], "pytorch-lightning_version");
  }
  size_t step = dict ? 2 : 1;
  for (size_t i = 0; i + step <= node->as.list.count; i += step) {
    CALX_TRY(
        fill_item(r, dict ? items[i] : NULL, items[i + step - 1], depth, out));
  }
  return NULL;
}

static calx_status *make_container(reading *r, const cx_io_node *node,
                                   int depth, calx_value **out)
{
  if (depth >= CX_IO_DEPTH) {
    calx_status *why = cx_error(
        CALX_UNIMPLEMENTED,
        "'%s': containers in containers, more than %d deep or in a cycle",
        r->name, CX_IO_DEPTH);
    return leave_out(r, why, out);
  }
  *out = calx_value_container(node->type);
  if (*out == NULL) return cx_out_of_memory();
  calx_status *status = fill(r, node, depth, *out);
  if (status != NULL) {
    calx_value_free(*out);
    *out = NULL;
  }
  return status;
}

static calx_status *make_value(reading *r, const cx_io_node *node, int depth,
                               calx_value **out)
{
  *out = NULL;
  if (--r->values < 0) return too_much(r);
  if (node->what == CX_IO_NODE_TENSOR) return make_tensor_value(r, node, out);
  if (node->what != CX_IO_NODE_VALUE) return leave_out(r, refuse(r, node), out);
  switch (node->type) {
    case CALX_KIND_NONE: *out = calx_value_none(); break;
    case CALX_KIND_BOOL: *out = calx_value_bool(node->as.integer != 0); break;
    case CALX_KIND_INT: *out = calx_value_int(node->as.integer); break;
    case CALX_KIND_FLOAT: *out = calx_value_float(node->as.real); break;
    case CALX_KIND_STRING:
    case CALX_KIND_BYTES:
      CALX_TRY(charge_text(r, node->as.text.size));
      *out = cx_io_text(node->type, node->as.text.data, node->as.text.size);
      break;
    default: return make_container(r, node, depth, out);
  }
  return *out != NULL ? NULL : cx_out_of_memory();
}

// ---- the file ---------------------------------------------------------------

static calx_status *read_value(reading *r, calx_value **out)
{
  const cx_io_pt_archive *a = &r->archive;
  int64_t at = cx_io_pt_archive_find(a, "data.pkl", 8);
  if (at < 0 || cx_io_pt_archive_find(a, "constants.pkl", 13) >= 0) {
    return cx_error(CALX_UNIMPLEMENTED, "'%s': %s", r->name,
                    at < 0 ? "a zip archive without data.pkl: not one that "
                             "torch.save wrote"
                           : "a TorchScript archive, whose code is not read; "
                             "save its state_dict()");
  }
  void *pickle;
  size_t size;
  cx_io_node *root;
  zip_stat_t s;
  CALX_TRY(cx_io_pt_archive_stat(a, (uint64_t)at, &s));
  if (s.size / 64 > s.comp_size + MB / 4) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "'%s': its data.pkl unpacks from %" PRIu64 " to %" PRIu64
                    " bytes, far more than texts and numbers do",
                    r->name, s.comp_size, s.size);
  }
  CALX_TRY(cx_io_pt_archive_read(a, (uint64_t)at, &pickle, &size));
  r->nodes.limit = (size_t)(64 * MB) + 64 * a->map->size;
  r->values = (int64_t)(MB + size);
  r->texts = 64 * MB + 16 * (uint64_t)size;
  calx_status *status = cx_io_unpickle(r->name, pickle, size, &r->nodes, &root);
  if (status == NULL) cx_io_each_tensor(root, cx_io_pt_note_need, &r->tensors);
  if (status == NULL) status = make_value(r, root, 0, out);
  cx_free(pickle);
  if (status == NULL && r->unread > 0) {
    cx_log("load: %" PRId64
           " value%s that calx does not read %s None, the first "
           "%s",
           r->unread, r->unread == 1 ? "" : "s", r->unread == 1 ? "is" : "are",
           r->first);
  }
  return status;
}

calx_status *cx_io_pt_read(cx_io_map *map, calx_value **out_value)
{
  *out_value = NULL;
  reading r = { .name = map->name };
  calx_status *status = cx_io_pt_archive_open(map, &r.archive);
  if (status == NULL) {
    status = cx_io_pt_tensors_begin(&r.archive, &r.tensors);
    if (status == NULL) status = read_value(&r, out_value);
    cx_io_pt_tensors_end(&r.tensors);
  }
  cx_arena_free(&r.nodes);
  cx_io_pt_archive_close(&r.archive);
  return status;
}
