// train/exchange: an epoch's values over all ranks, found by their names: ranks
// may log in different orders, and one that has no batch logs nothing.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "train/internal.h"

// A value as the other ranks get it.
typedef struct rank_value {
  char name[256];  // as it is known
  char hook[64];
  double parts[CX_TRAIN_PARTS];
} rank_value;

static bool is_reduced(const cx_train_logged *l)
{
  return l->on_epoch && l->is_set && l->metric == NULL && l->sync_dist;
}

static void advise_sync(const cx_train_logged *l)
{
  if (!l->on_epoch || !l->is_set || l->metric != NULL || l->sync_dist) return;
  cx_log_once_per_site(
      l->name,
      "It is recommended to use `self.log('%s', ..., sync_dist=True)` when "
      "logging on epoch level in distributed setting to accumulate the metric "
      "across devices: what is shown is the first rank's value",
      l->name);
}

// Whether a rank may have no batch, which all of them know.
static bool may_lack(const calx_trainer *t)
{
  bool lacks = false;
  for (size_t i = 0; i < t->n_evaluated && t->stage != CX_TRAIN_FITTING; i++) {
    const cx_train_loader *l = &t->evaluated[i];
    lacks |= l->is_shared_out && l->samples < calx_world_size();
  }
  return lacks;
}

// ---- what this rank has -----------------------------------------------------

static rank_value value_of(const cx_train_logged *l, const double *parts)
{
  rank_value v = { .name = "" };
  cx_train_full_name(l, "", v.name, sizeof v.name);
  snprintf(v.hook, sizeof v.hook, "%s", l->hook);
  memcpy(v.parts, parts, sizeof v.parts);
  return v;
}

static size_t list_values(const cx_train_results *r, const double *parts,
                          rank_value *out)
{
  size_t n = 0;
  for (size_t i = 0; i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    if (is_reduced(l)) out[n++] = value_of(l, &parts[i * CX_TRAIN_PARTS]);
  }
  return n;
}

// ---- what all have ----------------------------------------------------------

// NaN stays, as in a step.
static void combine(double *out, const double *other)
{
  double *total = &out[CX_TRAIN_PART_TOTAL];
  const double value = other[CX_TRAIN_PART_TOTAL];
  const cx_train_reduction kind = (cx_train_reduction)out[CX_TRAIN_PART_KIND];
  const bool takes_one = kind == CX_TRAIN_MIN || kind == CX_TRAIN_MAX;
  if (!takes_one) {
    *total += value;
  } else if (isnan(value) ||
             (kind == CX_TRAIN_MIN ? value < *total : value > *total)) {
    *total = value;
  }
  out[CX_TRAIN_PART_WEIGHT] += other[CX_TRAIN_PART_WEIGHT];
}

static rank_value *find(rank_value *list, size_t n, const rank_value *v)
{
  for (size_t i = 0; i < n; i++) {
    if (strcmp(list[i].name, v->name) == 0 &&
        strcmp(list[i].hook, v->hook) == 0) {
      return &list[i];
    }
  }
  return NULL;
}

// In the order of the ranks, so that all of them get the same bits.
static calx_status *join(char *const *payloads, const size_t *sizes,
                         rank_value **out, size_t *out_count)
{
  size_t capacity = 0;
  *out = NULL;
  *out_count = 0;
  for (int r = 0; r < calx_world_size(); r++) {
    for (size_t at = 0; at + sizeof **out <= sizes[r]; at += sizeof **out) {
      rank_value v;
      memcpy(&v, payloads[r] + at, sizeof v);
      rank_value *known = find(*out, *out_count, &v);
      if (known != NULL) {
        combine(known->parts, v.parts);
        continue;
      }
      if (!cx_grow(out, &capacity, *out_count + 1, sizeof **out)) {
        return cx_out_of_memory();
      }
      (*out)[(*out_count)++] = v;
    }
  }
  return NULL;
}

static calx_status *meet(const calx_trainer *t, const rank_value *mine,
                         size_t n, rank_value **out, size_t *out_count)
{
  const size_t ranks = (size_t)calx_world_size();
  char **all = cx_calloc(ranks, sizeof *all);
  size_t *sizes = cx_calloc(ranks, sizeof *sizes);
  const char *tag = t->stage == CX_TRAIN_FITTING ? "trainer: training epoch"
                                                 : "trainer: evaluation";
  calx_status *status =
      all == NULL || sizes == NULL
          ? cx_out_of_memory()
          : calx_rendezvous(tag, mine, n * sizeof *mine, all, sizes);
  if (status == NULL) status = join(all, sizes, out, out_count);
  for (size_t i = 0; all != NULL && i < ranks; i++) calx_string_free(all[i]);
  cx_free(all);
  cx_free(sizes);
  return status;
}

// ---- what follows -----------------------------------------------------------

// Gives this rank's values those of all, and takes them from the list.
static void take_own(const cx_train_results *r, rank_value *all, size_t n,
                     double *parts)
{
  for (size_t i = 0; i < r->n_logged; i++) {
    if (!is_reduced(&r->logged[i])) continue;
    double *own = &parts[i * CX_TRAIN_PARTS];
    const rank_value asked = value_of(&r->logged[i], own);
    rank_value *found = find(all, n, &asked);
    if (found == NULL) continue;
    memcpy(own, found->parts, sizeof found->parts);
    found->name[0] = '\0';
  }
}

static calx_status *take_others(calx_trainer *t, const rank_value *all,
                                size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const double *p = all[i].parts;
    double value = p[CX_TRAIN_PART_TOTAL];
    if (all[i].name[0] == '\0') continue;
    if (p[CX_TRAIN_PART_KIND] == CX_TRAIN_MEAN) {
      value /= p[CX_TRAIN_PART_WEIGHT];
    }
    CALX_TRY(cx_train_set_metric(t, all[i].name, NULL, value));
  }
  return NULL;
}

calx_status *cx_train_exchange(calx_trainer *t, const cx_train_results *r,
                               double *parts)
{
  rank_value *all = NULL;
  rank_value *mine = cx_calloc(r->n_logged + 1, sizeof *mine);
  if (mine == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < r->n_logged; i++) advise_sync(&r->logged[i]);
  const size_t n = list_values(r, parts, mine);
  size_t count = 0;
  calx_status *status = NULL;
  if (n > 0 || may_lack(t)) status = meet(t, mine, n, &all, &count);
  if (status == NULL) {
    take_own(r, all, count, parts);
    status = take_others(t, all, count);
  }
  cx_free(all);
  cx_free(mine);
  return status;
}
