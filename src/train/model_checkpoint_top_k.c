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

static double or_worst(const cx_train_top_k *top, double value)
{
  return isnan(value) ? top->sign * (double)INFINITY : value;
}

calx_status *cx_train_top_k_add(cx_train_top_k *top, const char *path,
                                double score, double own)
{
  if (!cx_grow(&top->items, &top->capacity, top->count + 1,
               sizeof *top->items)) {
    return cx_out_of_memory();
  }
  char *copy = cx_strdup(path);
  if (copy == NULL) return cx_out_of_memory();
  top->items[top->count++] = (cx_train_kept){ .path = copy,
                                              .score = or_worst(top, score),
                                              .own = or_worst(top, own) };
  return NULL;
}

void cx_train_top_k_clear(cx_train_top_k *top)
{
  for (size_t i = 0; i < top->count; i++) cx_free(top->items[i].path);
  cx_free(top->items);
  top->items = NULL;
  top->count = top->capacity = 0;
}
