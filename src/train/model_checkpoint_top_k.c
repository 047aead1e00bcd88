// train/model_checkpoint_top_k: which checkpoints are the k best.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/model_checkpoint.h"

// Of equals the oldest, as Python's max() and min() have it.
static const cx_train_kept *extreme(const cx_train_top_k *top, double sign)
{
  const cx_train_kept *found = NULL;
  for (size_t i = 0; i < top->count; i++) {
    const cx_train_kept *item = &top->items[i];
    if (found == NULL || sign * item->score < sign * found->score) found = item;
  }
  return found;
}

const cx_train_kept *cx_train_top_k_worst(const cx_train_top_k *top)
{
  return extreme(top, -top->sign);
}

const cx_train_kept *cx_train_top_k_best(const cx_train_top_k *top)
{
  return extreme(top, top->sign);
}

static bool is_full(const cx_train_top_k *top)
{
  return top->k > 0 && top->count >= (size_t)top->k;
}

bool cx_train_top_k_admits(const cx_train_top_k *top, double own)
{
  if (!is_full(top)) return top->k != 0;
  return top->sign * own < top->sign * cx_train_top_k_worst(top)->own;
}

char *cx_train_top_k_pop(cx_train_top_k *top)
{
  if (!is_full(top)) return NULL;
  const size_t i = (size_t)(cx_train_top_k_worst(top) - top->items);
  char *path = top->items[i].path;
  top->count--;
  memmove(&top->items[i], &top->items[i + 1],
          (top->count - i) * sizeof *top->items);
  return path;
}

double cx_train_top_k_score(const cx_train_top_k *top, double value)
{
  return isnan(value) ? top->sign * (double)INFINITY : value;
}

// The slot of a path, which is a new one where it is not there.
static calx_status *slot_of(cx_train_top_k *top, const char *path,
                            cx_train_kept **out)
{
  for (size_t i = 0; i < top->count; i++) {
    *out = &top->items[i];
    if (strcmp((*out)->path, path) == 0) return NULL;
  }
  if (!cx_grow(&top->items, &top->capacity, top->count + 1,
               sizeof *top->items)) {
    return cx_out_of_memory();
  }
  char *copy = cx_strdup(path);
  if (copy == NULL) return cx_out_of_memory();
  *out = &top->items[top->count++];
  (*out)->path = copy;
  return NULL;
}

calx_status *cx_train_top_k_add(cx_train_top_k *top, const char *path,
                                double score, double own)
{
  cx_train_kept *item = NULL;
  CALX_TRY(slot_of(top, path, &item));
  item->score = cx_train_top_k_score(top, score);
  item->own = cx_train_top_k_score(top, own);
  return NULL;
}

void cx_train_top_k_clear(cx_train_top_k *top)
{
  for (size_t i = 0; i < top->count; i++) cx_free(top->items[i].path);
  cx_free(top->items);
  top->items = NULL;
  top->count = top->capacity = 0;
}
