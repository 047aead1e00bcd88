// train/callback_metrics: the values that callbacks find by name.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "train/internal.h"

static cx_train_metric *find(const calx_trainer *t, const char *name)
{
  for (size_t i = 0; i < t->n_metrics; i++) {
    if (strcmp(t->metrics[i].name, name) == 0) return &t->metrics[i];
  }
  return NULL;
}

calx_status *cx_train_set_metric(calx_trainer *t, const char *name,
                                 calx_tensor *tensor, double value)
{
  cx_train_metric *m = find(t, name);
  if (m == NULL) {
    char *copy = cx_strdup(name);
    if (copy == NULL || !cx_grow(&t->metrics, &t->metrics_capacity,
                                 t->n_metrics + 1, sizeof *t->metrics)) {
      cx_free(copy);
      calx_release(tensor);
      return cx_out_of_memory();
    }
    m = &t->metrics[t->n_metrics++];
    *m = (cx_train_metric){ .name = copy };
  }
  calx_release(m->tensor);
  m->tensor = tensor;
  m->value = value;
  return NULL;
}

bool calx_trainer_has_metric(const calx_trainer *t, const char *name)
{
  return t != NULL && name != NULL && find(t, name) != NULL;
}

double calx_trainer_callback_metric(calx_trainer *t, const char *name)
{
  cx_train_metric *m = t != NULL && name != NULL ? find(t, name) : NULL;
  if (m == NULL) return (double)NAN;
  if (m->tensor == NULL) return m->value;
  m->value = calx_item(m->tensor);
  calx_release(m->tensor);
  m->tensor = NULL;
  return m->value;
}

void cx_train_free_metrics(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_metrics; i++) {
    calx_release(t->metrics[i].tensor);
    cx_free(t->metrics[i].name);
  }
  cx_free(t->metrics);
  t->metrics = NULL;
  t->n_metrics = t->metrics_capacity = 0;
}

char *cx_train_metric_names(const calx_trainer *t, char quote)
{
  cx_text known = { 0 };
  for (size_t i = 0; i < t->n_metrics; i++) {
    cx_text_format(&known, "%s%c%s%c", i == 0 ? "" : ", ", quote,
                   t->metrics[i].name, quote);
  }
  return cx_text_take(&known);
}
