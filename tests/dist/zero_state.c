// zero_state: the whole of an optimiser's state that is spread over the ranks:
// out of any number of them and into any other, and what is trained on from it.
#include <unistd.h>

#include "calx/autograd.h"
#include "calx/io.h"
#include "ranks.h"
#include "state.h"
#include "support/long.h"

enum { RANKS = 4, BEFORE = 3, AFTER = 2 };
enum { NUMBERS = 18, NARROW = 5, WIDE_AGAIN = 12 };  // f64, f32, f64
typedef enum rule { SGD, ADAMW, RULES } rule;

typedef struct model {
  calx_module *root;
  calx_tensor *a, *b, *c;  // f64 (5), f32 (7), f64 (2, 3)
  calx_optimizer *opt;
} model;

// user: the rule.
static calx_optimizer *plain(void *user, calx_module *m)
{
  if (*(const rule *)user == ADAMW) {
    return calx_adamw(m, .lr = 0.05, .amsgrad = true);
  }
  return calx_sgd(m, .lr = 0.05, .momentum = 0.5, .weight_decay = 0.1);
}

static calx_optimizer *make_optimizer(calx_module *root, rule r, bool spread)
{
  if (!spread) return plain(&r, root);
  return calx_zero_redundancy_optimizer(root, .make = plain, .user = &r);
}

static calx_status *make(model *m, rule r, bool spread)
{
  m->root = calx_module_new("Net", NULL, NULL);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *a = calx_arange(0, 5, 1, .dtype = CALX_F64);
  calx_tensor *c = calx_arange(1, 7, 1, .dtype = CALX_F64);
  m->a = calx_module_param(m->root, "a", a);
  m->b =
      calx_module_param(m->root, "b", calx_arange(1, 8, 1, .dtype = CALX_F32));
  m->c = calx_module_param(m->root, "c", calx_reshape(c, CALX_SHAPE(2, 3)));
  CALX_TRY(calx_scope_end(scope));
  m->opt = make_optimizer(m->root, r, spread);
  return calx_optimizer_error(m->opt);
}

static void model_free(model *m)
{
  calx_optimizer_free(m->opt);
  calx_module_free(m->root);
}

// On the squares' sum, of which each rank has another share; on a mean of 1.
static calx_status *step(model *m, bool with_c)
{
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(m->opt);
  calx_tensor *sum = calx_sum(calx_square(m->a));
  sum = calx_add(sum, calx_to_dtype(calx_sum(calx_square(m->b)), CALX_F64));
  if (with_c) sum = calx_add(sum, calx_sum(calx_square(m->c)));
  double share = 2.0 * (calx_global_ordinal() + 1) / (calx_world_size() + 1);
  calx_tensor *loss = calx_mul(sum, share);
  calx_backward(loss);
  calx_dist_step(m->opt, loss);
  return calx_scope_end(scope);
}

static calx_status *steps(model *m, int n)
{
  for (int s = 0; s < n; s++) CALX_TRY(step(m, true));
  return NULL;
}

// ---- states as numbers ------------------------------------------------------

// Every tensor of an optimiser's state dict, in its order; free() the values.
static state_numbers numbers_of(const calx_value *dict)
{
  state_numbers s = { .n = 0 };
  const calx_value *state = calx_value_get(dict, "state");
  for (size_t i = 0; i < calx_value_count(state); i++) {
    const calx_value *own = calx_value_item(state, i);
    for (size_t k = 0; k < calx_value_count(own); k++) {
      state_add(&s, calx_value_as_tensor(calx_value_item(own, k)));
    }
  }
  return s;
}

// Whether the optimiser has the state of the dict, bit for bit.
static calx_status *has_state(model *m, const calx_value *dict)
{
  calx_value *now;
  CALX_TRY(calx_optimizer_consolidate_state_dict(m->opt, &now));
  state_numbers x = numbers_of(now), y = numbers_of(dict);
  bool same = state_same_bits(&x, &y);
  free(x.values);
  free(y.values);
  calx_value_free(now);
  CALX_TRY(x.status);
  CALX_TRY(y.status);
  RANK_CHECK(same && x.n != 0);
  return NULL;
}

static bool close_to(const double *x, const double *y)
{
  for (int i = 0; i < NUMBERS; i++) {
    bool narrow = i >= NARROW && i < WIDE_AGAIN;
    if (!(fabs(x[i] - y[i]) <= (narrow ? 1e-5 : 1e-12))) return false;
  }
  return true;
}

// ---- out of some ranks, into others -----------------------------------------

static char folder[] = "/tmp/calx_zero_state_XXXXXX";
// Worlds of 1 to so many ranks.
static int most_ranks(void)
{
  return (int)all_or_sample(RANKS, 2);
}

static double finals[RANKS + 1][RULES][2][NUMBERS];  // of uninterrupted runs

// What so many ranks saved.
typedef struct saved {
  int ranks;
  rule rule;
  bool spread;
} saved;

static void name_file(char out[64], const saved *s)
{
  snprintf(out, 64, "%s/%d.%d.%d.pt", folder, s->ranks, (int)s->rule,
           s->spread);
}

// One that is not spread, or not over several ranks, goes into a checkpoint.
static bool is_checkpoint(const saved *s)
{
  return !s->spread || s->ranks == 1;
}

// By the master, of what all ranks make.
static calx_status *save_whole(model *m, const char *path)
{
  calx_value *both = calx_value_container(CALX_KIND_DICT), *part;
  CALX_TRY(calx_module_state_dict(m->root, &part));
  CALX_TRY(calx_value_set(both, "model", part));
  CALX_TRY(calx_optimizer_consolidate_state_dict(m->opt, &part));
  CALX_TRY(calx_value_set(both, "optimizer", part));
  const calx_value *group =
      calx_value_item(calx_value_get(part, "param_groups"), 0);
  RANK_CHECK(calx_value_get(group, "calx_shard") == NULL);
  RANK_CHECK(calx_value_count(calx_value_get(group, "params")) == 3);
  CALX_TRY(calx_save(both, path));
  calx_value_free(both);
  return NULL;
}

static calx_status *save_one(int index, const saved *s)
{
  model m;
  char path[64];
  name_file(path, s);
  CALX_TRY(make(&m, s->rule, s->spread));
  CALX_TRY(steps(&m, BEFORE));
  if (is_checkpoint(s)) {
    calx_checkpoint c = { .size = sizeof c,
                          .model = m.root,
                          .optimizer = m.opt };
    CALX_TRY(calx_checkpoint_save(path, &c));
  } else {
    CALX_TRY(save_whole(&m, path));
  }
  CALX_TRY(steps(&m, AFTER));
  state_numbers end = state_of(m.root);
  bool right = end.status == NULL && end.n == NUMBERS;
  if (right && index == 0) {
    memcpy(finals[s->ranks][s->rule][s->spread], end.values,
           sizeof finals[0][0][0]);
  }
  free(end.values);
  RANK_CHECK(right);
  model_free(&m);
  return NULL;
}

static calx_status *save(int index, void *user)
{
  (void)user;
  for (int k = 0; k < 2 * RULES; k++) {
    saved s = { calx_world_size(), (rule)(k / 2), k % 2 == 1 };
    CALX_TRY(save_one(index, &s));
  }
  return NULL;
}

static calx_status *load(model *m, const char *path, const calx_value *both,
                         bool checkpoint)
{
  if (checkpoint) {
    calx_checkpoint c = { .size = sizeof c,
                          .model = m->root,
                          .optimizer = m->opt };
    return calx_checkpoint_load(path, &c);
  }
  CALX_TRY(calx_module_load_state_dict(m->root, calx_value_get(both, "model")));
  return calx_optimizer_load_state_dict(m->opt,
                                        calx_value_get(both, "optimizer"));
}

// A new optimiser, or one that has stepped already, goes on from it.
static calx_status *go_on(const saved *s, bool spread)
{
  model m;
  calx_value *both;
  char path[64];
  name_file(path, s);
  CALX_TRY(make(&m, s->rule, spread));
  CALX_TRY(steps(&m, s->ranks % 2));
  CALX_TRY(calx_load(path, &both));
  CALX_TRY(load(&m, path, both, is_checkpoint(s)));
  RANK_CHECK(calx_optimizer_steps(m.opt) == BEFORE);
  CALX_TRY(has_state(&m, calx_value_get(both, "optimizer")));
  calx_value_free(both);
  CALX_TRY(steps(&m, AFTER));
  const double *wanted = finals[s->ranks][s->rule][s->spread];
  bool alike = s->ranks == calx_world_size() && s->spread == spread;
  state_numbers end = state_of(m.root);
  CALX_TRY(end.status);
  bool right = end.n == NUMBERS && close_to(end.values, wanted);
  bool same = right && memcmp(end.values, wanted, sizeof finals[0][0][0]) == 0;
  free(end.values);
  RANK_CHECK(right);
  RANK_CHECK(same || !alike);
  model_free(&m);
  return NULL;
}

static calx_status *go_on_from_all(int index, void *user)
{
  (void)index;
  (void)user;
  for (int k = 0; k < 2 * RULES * most_ranks(); k++) {
    saved s = { 1 + k / (2 * RULES), (rule)(k / 2 % RULES), k % 2 == 1 };
    CALX_TRY(go_on(&s, true));
    if (calx_world_size() == 1) CALX_TRY(go_on(&s, false));
  }
  return NULL;
}

// The plain optimiser's state of one rank is the whole of any number of them.
static void check_and_remove_files(rule r)
{
  calx_value *plain = NULL, *v;
  for (int k = 0; k < 2 * most_ranks(); k++) {
    saved s = { 1 + k / 2, r, k % 2 == 1 };
    char path[64];
    name_file(path, &s);
    CHECK_STATUS_OK(calx_load(path, &v));
    if (plain == NULL) plain = v;
    state_numbers x = numbers_of(calx_value_get(plain, "optimizer"));
    state_numbers y = numbers_of(calx_value_get(v, "optimizer"));
    CHECK_STATUS_OK(x.status);
    CHECK_STATUS_OK(y.status);
    assert_true(x.n >= NUMBERS);
    assert_true(state_distance(&x, &y) < 1e-4);  // f32, of tens
    free(x.values);
    free(y.values);
    if (v != plain) calx_value_free(v);
    assert_int_equal(unlink(path), 0);
  }
  calx_value_free(plain);
}

static void test_worlds(void **state)
{
  (void)state;
  assert_non_null(mkdtemp(folder));
  ranks_up_to(most_ranks(), save);
  ranks_up_to(most_ranks(), go_on_from_all);
  for (int r = 0; r < RULES; r++) check_and_remove_files((rule)r);
  assert_int_equal(rmdir(folder), 0);
}

// ---- parameters that were not stepped ---------------------------------------

// From the state of living optimisers: c has none in the plain one's.
static calx_status *go_on_without_c(rule r)
{
  model plain, spread;
  calx_value *weights, *state;
  CALX_TRY(make(&plain, r, false));
  CALX_TRY(make(&spread, r, true));
  for (int s = 0; s < 2; s++) CALX_TRY(step(&plain, false));
  CALX_TRY(calx_module_state_dict(plain.root, &weights));
  CALX_TRY(calx_optimizer_state_dict(plain.opt, &state));
  RANK_CHECK(calx_value_count(calx_value_get(state, "state")) == 2);
  CALX_TRY(calx_module_load_state_dict(spread.root, weights));
  CALX_TRY(calx_optimizer_load_state_dict(spread.opt, state));
  calx_value_free(weights);
  calx_value_free(state);
  RANK_CHECK(calx_optimizer_steps(spread.opt) == 2);
  CALX_TRY(steps(&plain, 2));
  CALX_TRY(steps(&spread, 2));
  state_numbers p = state_of(plain.root), z = state_of(spread.root);
  CALX_TRY(p.status);
  CALX_TRY(z.status);
  // Adam counts c's steps from the others' count.
  memcpy(&z.values[WIDE_AGAIN], &p.values[WIDE_AGAIN],
         r == SGD ? 0 : (NUMBERS - WIDE_AGAIN) * sizeof(double));
  bool right = close_to(p.values, z.values);
  free(p.values);
  free(z.values);
  RANK_CHECK(right);
  model_free(&plain);
  model_free(&spread);
  return NULL;
}

// What was not stepped at all takes the state away.
static calx_status *start_anew(rule r)
{
  model first, second;
  calx_value *whole;
  const char *name = r == SGD ? "momentum_buffer" : "exp_avg";
  CALX_TRY(make(&first, r, true));
  CALX_TRY(make(&second, r, true));
  CALX_TRY(steps(&second, 1));
  RANK_CHECK(calx_optimizer_state(second.opt, 0, name) != NULL);
  CALX_TRY(calx_optimizer_consolidate_state_dict(first.opt, &whole));
  RANK_CHECK(calx_value_count(calx_value_get(whole, "state")) == 0);
  CALX_TRY(calx_optimizer_load_state_dict(second.opt, whole));
  calx_value_free(whole);
  RANK_CHECK(calx_optimizer_steps(second.opt) == 0);
  RANK_CHECK(calx_optimizer_state(second.opt, 0, name) == NULL);
  CALX_TRY(steps(&second, 1));
  model_free(&first);
  model_free(&second);
  return NULL;
}

static calx_status *not_stepped(int index, void *user)
{
  (void)index;
  (void)user;
  for (int r = 0; r < RULES; r++) {
    CALX_TRY(go_on_without_c((rule)r));
    CALX_TRY(start_anew((rule)r));
  }
  return NULL;
}

static void test_not_stepped(void **state)
{
  (void)state;
  ranks_up_to(3, not_stepped);
}

// ---- refused ----------------------------------------------------------------

static calx_value *two_numbers(void)
{
  float data[2] = { 1, 2 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *t = calx_host_tensor(data, CALX_F32, CALX_SHAPE(2));
  calx_value *v = calx_value_tensor(t);
  calx_status_free(calx_scope_end(s));
  return v;
}

static calx_status *wrong_shape(calx_value *whole)
{
  calx_value *b = calx_value_get_at(calx_value_get(whole, "state"), 1);
  return calx_value_set(b, "exp_avg", two_numbers());
}

static calx_status *no_steps(calx_value *whole)
{
  calx_value *b = calx_value_get_at(calx_value_get(whole, "state"), 1);
  return calx_value_set(b, "step", calx_value_float(-1));
}

static calx_status *other_steps(calx_value *whole)
{
  calx_value *c = calx_value_get_at(calx_value_get(whole, "state"), 2);
  return calx_value_set(c, "step", calx_value_float(7));
}

static calx_status *fewer_parameters(calx_value *whole)
{
  calx_value *group = calx_value_item(calx_value_get(whole, "param_groups"), 0);
  calx_value *ids = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_append(ids, calx_value_int(0)));
  CALX_TRY(calx_value_append(ids, calx_value_int(1)));
  return calx_value_set(group, "params", ids);
}

static calx_status *refuse(int index, void *user)
{
  (void)index;
  (void)user;
  static const struct {
    calx_status *(*change)(calx_value *whole);
    const char *text;
  } wrong[] = {
    { wrong_shape, "'exp_avg' of 'b' is f32[2], the parameter f32[7]" },
    { no_steps,
      "'step' is float -1, wanted is a number of steps, 0 to 2^53; "
      "while loading 'b'" },
    { other_steps, "'a' was stepped 2 times, 'c' 7 times" },
    { fewer_parameters, "2 parameters, the optimiser has 3" },
  };
  model m;
  calx_value *before, *whole;
  CALX_TRY(make(&m, ADAMW, true));
  CALX_TRY(steps(&m, 2));
  CALX_TRY(calx_optimizer_consolidate_state_dict(m.opt, &before));
  CALX_TRY(steps(&m, 1));
  CALX_TRY(calx_optimizer_load_state_dict(m.opt, before));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    CALX_TRY(calx_optimizer_consolidate_state_dict(m.opt, &whole));
    CALX_TRY(wrong[i].change(whole));
    CALX_TRY(rank_wants(calx_optimizer_load_state_dict(m.opt, whole),
                        CALX_INVALID_ARGUMENT, wrong[i].text));
    calx_value_free(whole);
    RANK_CHECK(calx_optimizer_steps(m.opt) == 2);
    CALX_TRY(has_state(&m, before));
  }
  calx_value_free(before);
  model_free(&m);
  return NULL;
}

static void test_refused(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(refuse, NULL));
  calx_value *whole;
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_optimizer_consolidate_state_dict(NULL, &whole),
               "the optimiser is NULL");
  assert_null(whole);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_worlds),
    SUPPORT_TEST(test_not_stepped),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
