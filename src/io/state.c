// io/state: state dicts of a model: saving and loading its tensors by name.
//
// Loading first finds everything that is wrong and reports it in PyTorch's
// words, then copies all values to the model's device, and only then assigns
// them. A loaded value counts as computed: a step that fails restores it.
#include <inttypes.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "base/text.h"
#include "io/plan.h"

// ---- out of a model ---------------------------------------------------------

typedef struct collecting {
  calx_value *dict;
  cx_text key;    // begins with the prefix
  size_t prefix;  // bytes of it
  calx_status *status;
} collecting;

static void collect(void *user, const char *path, calx_entry_kind kind,
                    calx_tensor *tensor)
{
  (void)kind;
  collecting *c = user;
  if (c->status != NULL) return;
  c->key.size = c->prefix;
  cx_text_append(&c->key, path);
  c->status = cx_text_failed(&c->key)
                  ? cx_out_of_memory()
                  : calx_value_set(c->dict, cx_text_str(&c->key),
                                   calx_value_tensor(tensor));
}

calx_status *cx_io_state_dict(calx_module *model, const char *prefix,
                              calx_value **out_dict)
{
  *out_dict = NULL;
  CALX_TRY(cx_annotate(calx_module_error(model), "so it has no state dict"));
  collecting c = { .dict = calx_value_container(CALX_KIND_DICT),
                   .prefix = strlen(prefix) };
  if (c.dict == NULL) return cx_out_of_memory();
  cx_text_append(&c.key, prefix);
  calx_module_visit(model, collect, &c);
  cx_text_free(&c.key);
  if (c.status != NULL) {
    calx_value_free(c.dict);
    return c.status;
  }
  *out_dict = c.dict;
  return NULL;
}

calx_status *calx_module_state_dict(calx_module *model, calx_value **out_dict)
{
  return cx_io_state_dict(model, "", out_dict);
}

// ---- what is wrong ----------------------------------------------------------

typedef struct module_loading {
  const calx_value *given;
  calx_value *own;      // the model's state dict
  calx_value *missing;  // lists of keys
  calx_value *unexpected;
  cx_text wrong;  // a line for each tensor that does not fit
} module_loading;

static void print_size(cx_text *out, const calx_tensor *t)
{
  calx_dims s = calx_tensor_shape(t);
  cx_text_append(out, "torch.Size([");
  for (size_t i = 0; i < s.count; i++) {
    cx_text_format(out, "%s%" PRId64, i == 0 ? "" : ", ", s.values[i]);
  }
  cx_text_append(out, "])");
}

static void compare(module_loading *l, const char *key, const calx_tensor *own,
                    const calx_value *given)
{
  const calx_tensor *t = calx_value_as_tensor(given);
  if (t == NULL) {
    cx_text_format(&l->wrong,
                   "\n\tWhile copying the parameter named \"%s\", expected "
                   "torch.Tensor or Tensor-like object from checkpoint but "
                   "received %s",
                   key, calx_kind_name(calx_value_kind(given)));
  } else if (!cx_io_same_size(t, own)) {
    cx_text_format(&l->wrong,
                   "\n\tsize mismatch for %s: copying a param with "
                   "shape ",
                   key);
    print_size(&l->wrong, t);
    cx_text_append(&l->wrong,
                   " from checkpoint, the shape in current model is ");
    print_size(&l->wrong, own);
    cx_text_char(&l->wrong, '.');
  }
}

static calx_status *find_wrong(module_loading *l)
{
  for (size_t i = 0; i < calx_value_count(l->own); i++) {
    const char *key = calx_value_key(l->own, i);
    const calx_value *given = calx_value_get(l->given, key);
    if (given == NULL) {
      CALX_TRY(calx_value_append(l->missing, calx_value_string(key)));
    } else {
      compare(l, key, calx_value_as_tensor(calx_value_item(l->own, i)), given);
    }
  }
  for (size_t i = 0; i < calx_value_count(l->given); i++) {
    const char *key = calx_value_key(l->given, i);
    char number[24];
    if (key == NULL) {
      snprintf(number, sizeof number, "%" PRId64,
               calx_value_key_number(l->given, i));
      key = number;
    } else if (calx_value_get(l->own, key) != NULL) {
      continue;
    }
    CALX_TRY(calx_value_append(l->unexpected, calx_value_string(key)));
  }
  return NULL;
}

static void print_keys(cx_text *out, const char *what, const calx_value *keys)
{
  if (calx_value_count(keys) == 0) return;
  cx_text_format(out, "\n\t%s key(s) in state_dict: ", what);
  for (size_t i = 0; i < calx_value_count(keys); i++) {
    cx_text_format(out, "%s\"%s\"", i == 0 ? "" : ", ",
                   calx_value_as_string(calx_value_item(keys, i)));
  }
  cx_text_append(out, ". ");
}

static calx_status *report_wrong(const module_loading *l,
                                 const calx_module *model, bool strict)
{
  cx_text text = { 0 };
  if (strict) {
    print_keys(&text, "Missing", l->missing);
    print_keys(&text, "Unexpected", l->unexpected);
  }
  cx_text_append(&text, cx_text_str(&l->wrong));
  calx_status *status = NULL;
  if (cx_text_failed(&text) || cx_text_failed(&l->wrong)) {
    status = cx_out_of_memory();
  } else if (text.size != 0) {
    status = cx_invalid("Error(s) in loading state_dict for %s:%s",
                        calx_module_kind(model), cx_text_str(&text));
  }
  cx_text_free(&text);
  return status;
}

// ---- into a model -----------------------------------------------------------

static calx_status *copy_all(const module_loading *l, cx_io_plan *plan)
{
  for (size_t i = 0; i < calx_value_count(l->own); i++) {
    const char *key = calx_value_key(l->own, i);
    calx_tensor *own = calx_value_as_tensor(calx_value_item(l->own, i));
    calx_tensor *t = calx_value_as_tensor(calx_value_get(l->given, key));
    if (t == NULL) continue;
    CALX_TRY(
        cx_annotate(cx_io_plan_add(plan, own, t), "while loading '%s'", key));
  }
  return NULL;
}

static calx_status *make_plan(module_loading *l, calx_module *model,
                              const calx_load_state_dict_options *o,
                              cx_io_plan *plan)
{
  l->missing = calx_value_container(CALX_KIND_LIST);
  l->unexpected = calx_value_container(CALX_KIND_LIST);
  if (l->missing == NULL || l->unexpected == NULL) return cx_out_of_memory();
  CALX_TRY(
      cx_io_state_dict(model, o->prefix != NULL ? o->prefix : "", &l->own));
  CALX_TRY(find_wrong(l));
  CALX_TRY(report_wrong(l, model, !o->not_strict));
  return copy_all(l, plan);
}

static void move_list(calx_value **out, calx_value *list, bool wanted)
{
  if (wanted && out != NULL) {
    *out = list;
  } else {
    calx_value_free(list);
  }
}

calx_status *cx_io_module_plan(calx_module *model, const calx_value *dict,
                               const calx_load_state_dict_options *o,
                               cx_io_plan *plan)
{
  if (calx_value_kind(dict) != CALX_KIND_DICT) {
    return cx_invalid(
        "load_state_dict: Expected state_dict to be dict-like, got %s",
        calx_kind_name(calx_value_kind(dict)));
  }
  module_loading l = { .given = dict };
  calx_status *status = make_plan(&l, model, o, plan);
  cx_text_free(&l.wrong);
  calx_value_free(l.own);
  move_list(o->out_missing, l.missing, status == NULL);
  move_list(o->out_unexpected, l.unexpected, status == NULL);
  return status;
}

calx_status *calx_module_load_state_dict_with(
    calx_module *model, const calx_value *dict,
    const calx_load_state_dict_options *options)
{
  calx_load_state_dict_options o;
  CALX_TRY(cx_options_take("load_state_dict", options, &o, sizeof o));
  if (o.out_missing != NULL) *o.out_missing = NULL;
  if (o.out_unexpected != NULL) *o.out_unexpected = NULL;
  cx_io_plan plan = { 0 };
  calx_status *status = cx_io_module_plan(model, dict, &o, &plan);
  if (status == NULL) cx_io_plan_give(&plan);
  cx_io_plan_free(&plan);
  return status;
}
