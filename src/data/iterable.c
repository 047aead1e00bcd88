// data/iterable: see iterable.h. A chain is an iterable dataset whose iterator
// goes through those of others.
#include "data/iterable.h"

#include "base/alloc.h"

static _Thread_local calx_worker_info worker;
static _Thread_local bool is_worker;

void cx_data_worker_set(const calx_worker_info *info)
{
  is_worker = info != NULL;
  if (info != NULL) worker = *info;
}

bool calx_get_worker_info(calx_worker_info *out_info)
{
  *out_info = is_worker ? worker : (calx_worker_info){ .num_workers = 1 };
  return is_worker;
}

// ---- an iteration -----------------------------------------------------------

calx_status *cx_data_iteration_next(const calx_dataset *dataset,
                                    cx_data_iteration *iteration,
                                    const calx_worker_info *info,
                                    void *const *fields, bool *out_over)
{
  const calx_iterable *functions = dataset->iterable;
  *out_over = iteration->over;
  if (iteration->over) return NULL;
  if (!iteration->begun) {
    iteration->iterator = dataset->user;
    if (functions->begin != NULL) {
      CALX_TRY(functions->begin(dataset->user, info, &iteration->iterator));
    }
    iteration->begun = true;
  }
  calx_status *status =
      functions->next(iteration->iterator, fields, &iteration->over);
  *out_over = iteration->over;
  return status;
}

void cx_data_iteration_end(const calx_dataset *dataset,
                           cx_data_iteration *iteration)
{
  if (iteration->begun && dataset->iterable->end != NULL) {
    dataset->iterable->end(iteration->iterator);
  }
  *iteration = (cx_data_iteration){ 0 };
}

// ---- making one -------------------------------------------------------------

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  (void)user;
  (void)index;
  (void)fields;
  return cx_invalid("dataset: it is iterable, and has no sample by number");
}

calx_dataset *calx_dataset_iterable(const calx_field *fields, size_t n_fields,
                                    const calx_iterable *functions, void *user,
                                    void (*free)(void *user))
{
  calx_iterable *copy = cx_alloc(sizeof *copy);
  calx_status *error = NULL;
  if (copy == NULL) {
    error = cx_out_of_memory();
  } else if (functions == NULL || functions->next == NULL) {
    error = cx_invalid("iterable dataset: next is NULL");
  }
  if (error != NULL) {
    cx_free(copy);
    if (free != NULL) free(user);
    return cx_data_failed(error);
  }
  *copy = *functions;
  calx_dataset *d = calx_dataset_new(0, fields, n_fields, get, user, free);
  if (calx_dataset_error(d) == NULL) {
    d->iterable = copy;
  } else {
    cx_free(copy);
  }
  return d;
}

// ---- chains -----------------------------------------------------------------

typedef struct dataset_chain {
  size_t count;
  const calx_dataset *datasets[];
} dataset_chain;

typedef struct chain_iterator {
  const dataset_chain *chain;
  calx_worker_info info;
  size_t at;
  cx_data_iteration now;  // through dataset `at`
} chain_iterator;

static calx_status *begin_chain(void *user, const calx_worker_info *info,
                                void **out_iterator)
{
  chain_iterator *it = cx_calloc(1, sizeof *it);
  if (it == NULL) return cx_out_of_memory();
  it->chain = user;
  it->info = *info;
  *out_iterator = it;
  return NULL;
}

static calx_status *next_of_chain(void *iterator, void *const *fields,
                                  bool *out_over)
{
  chain_iterator *it = iterator;
  *out_over = true;
  for (; it->at < it->chain->count; it->at++) {
    const calx_dataset *d = it->chain->datasets[it->at];
    CALX_TRY(cx_data_iteration_next(d, &it->now, &it->info, fields, out_over));
    if (!*out_over) break;
    cx_data_iteration_end(d, &it->now);
  }
  return NULL;
}

static void end_chain(void *iterator)
{
  chain_iterator *it = iterator;
  if (it->at < it->chain->count) {
    cx_data_iteration_end(it->chain->datasets[it->at], &it->now);
  }
  cx_free(it);
}

calx_dataset *calx_dataset_chain(calx_dataset *const *datasets, size_t count)
{
  static const calx_iterable functions = { begin_chain, next_of_chain,
                                           end_chain };
  calx_status *status = cx_data_same_fields("dataset chain", datasets, count);
  for (size_t i = 0; i < count && status == NULL; i++) {
    if (datasets[i]->iterable != NULL) continue;
    status = cx_invalid(
        "dataset chain: dataset %zu is not iterable; calx_dataset_concat joins "
        "such ones",
        i);
  }
  if (status != NULL) return cx_data_failed(status);
  dataset_chain *c = cx_alloc(sizeof *c + count * sizeof(calx_dataset *));
  if (c == NULL) return cx_data_failed(cx_out_of_memory());
  c->count = count;
  for (size_t i = 0; i < count; i++) c->datasets[i] = datasets[i];
  return calx_dataset_iterable(datasets[0]->fields, datasets[0]->n_fields,
                               &functions, c, cx_free);
}
