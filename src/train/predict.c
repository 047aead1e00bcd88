// train/predict: the predictions of all ranks in the order of the samples. Rank
// r of n has the samples r, r + n, …
#include <string.h>

#include "base/alloc.h"
#include "graph/node.h"
#include "io/fetch.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// Of this rank and one loader: a tensor for each batch, on the device.
typedef struct prediction_list {
  calx_tensor **batches;  // owned
  size_t n, capacity;
} prediction_list;

struct cx_train_predictions {
  size_t n_loaders;
  prediction_list loaders[];
};

static calx_status *begin(calx_trainer *t)
{
  if (t->predictions != NULL) return NULL;
  t->predictions =
      cx_calloc(1, sizeof *t->predictions +
                       t->n_evaluated * sizeof *t->predictions->loaders);
  if (t->predictions == NULL) return cx_out_of_memory();
  t->predictions->n_loaders = t->n_evaluated;
  return NULL;
}

static const char *shape_text(const calx_tensor *t)
{
  return cx_graph_shape_str(cx_lazy_tensor_shape(t));
}

static calx_status *check_rows(const calx_batch *batch, calx_tensor *rows)
{
  if (rows == NULL) {
    return cx_invalid(
        "`predict_step` returned NULL: a row for each sample is wanted");
  }
  CALX_TRY(cx_status_copy(calx_tensor_error(rows)));
  const calx_dims shape = calx_tensor_shape(rows);
  if (shape.count > 0 && shape.values[0] == batch->size) return NULL;
  return cx_invalid(
      "`predict_step` returned %s for a batch of %lld samples: a row for each "
      "sample is wanted",
      shape_text(rows), (long long)batch->size);
}

calx_status *cx_train_keep_prediction(calx_trainer *t, const calx_batch *batch,
                                      calx_tensor *rows)
{
  if (calx_scope_error() != NULL) return NULL;
  CALX_TRY(check_rows(batch, rows));
  CALX_TRY(begin(t));
  prediction_list *l = &t->predictions->loaders[t->dataloader_idx];
  if (!cx_grow(&l->batches, &l->capacity, l->n + 1, sizeof *l->batches)) {
    return cx_out_of_memory();
  }
  l->batches[l->n++] = calx_retain(rows);
  return NULL;
}

// ---- one rank's rows --------------------------------------------------------

// What a rank has of a loader, as the others get it: this, and the elements.
typedef struct row_block {
  int64_t rows, row_bytes, dtype;
  calx_dims shape;  // of a batch
} row_block;

static calx_status *check_alike(const calx_tensor *first,
                                const calx_tensor *other)
{
  const calx_dims a = calx_tensor_shape(first), b = calx_tensor_shape(other);
  bool alike = a.count == b.count &&
               calx_tensor_dtype(first) == calx_tensor_dtype(other);
  for (size_t d = 1; alike && d < a.count; d++)
    alike = a.values[d] == b.values[d];
  if (alike) return NULL;
  return cx_invalid(
      "`predict_step` returned %s for one batch and %s for another: they must "
      "differ in the number of rows alone",
      shape_text(first), shape_text(other));
}

static calx_status *measure(const prediction_list *l, row_block *out)
{
  *out = (row_block){ 0 };
  size_t bytes = 0;
  for (size_t i = 0; i < l->n; i++) {
    CALX_TRY(check_alike(l->batches[0], l->batches[i]));
    out->shape = calx_tensor_shape(l->batches[i]);
    out->dtype = calx_tensor_dtype(l->batches[i]);
    out->rows += out->shape.values[0];
    bytes += cx_io_bytes(l->batches[i]);
  }
  if (out->rows > 0) out->row_bytes = (int64_t)bytes / out->rows;
  return NULL;
}

static calx_status *fetch(const prediction_list *l, char *out)
{
  for (size_t i = 0; i < l->n; i++) {
    cx_io_elements elements;
    CALX_TRY(cx_io_fetch(l->batches[i], &elements));
    if (elements.bytes > 0) memcpy(out, elements.data, elements.bytes);
    out += elements.bytes;
    cx_io_fetched(&elements);
  }
  return NULL;
}

static calx_status *pack(const prediction_list *l, char **out, size_t *out_size)
{
  row_block block;
  CALX_TRY(measure(l, &block));
  *out_size = sizeof block + (size_t)(block.rows * block.row_bytes);
  *out = cx_alloc(*out_size);
  if (*out == NULL) return cx_out_of_memory();
  memcpy(*out, &block, sizeof block);
  calx_status *status = fetch(l, *out + sizeof block);
  if (status != NULL) cx_free(*out);
  return status;
}

// ---- all ranks' rows --------------------------------------------------------

static row_block block_of(const char *packed)
{
  row_block block;
  memcpy(&block, packed, sizeof block);
  return block;
}

// Rank r's row i is sample r + i n where they share the samples; else the
// ranks' rows follow each other.
static void merge(char *const *packed, int ranks, bool interleaved,
                  size_t row_bytes, char *out)
{
  int64_t most = 0;
  for (int r = 0; r < ranks; r++) {
    const int64_t rows = block_of(packed[r]).rows;
    const size_t bytes = (size_t)rows * row_bytes;
    if (rows > most) most = rows;
    if (interleaved) continue;
    memcpy(out, packed[r] + sizeof(row_block), bytes);
    out += bytes;
  }
  for (int64_t i = 0; interleaved && i < most; i++) {
    for (int r = 0; r < ranks; r++) {
      if (i >= block_of(packed[r]).rows) continue;
      memcpy(out, packed[r] + sizeof(row_block) + (size_t)i * row_bytes,
             row_bytes);
      out += row_bytes;
    }
  }
}

static calx_status *check_blocks(char *const *packed, int ranks,
                                 row_block *out_whole)
{
  int64_t rows = 0;
  *out_whole = (row_block){ 0 };
  for (int r = 0; r < ranks; r++) {
    const row_block block = block_of(packed[r]);
    rows += block.rows;
    if (block.rows == 0) continue;
    if (out_whole->rows > 0 && (out_whole->row_bytes != block.row_bytes ||
                                out_whole->dtype != block.dtype)) {
      return cx_invalid(
          "`predict_step` returned rows of different size or type on two ranks");
    }
    *out_whole = block;
  }
  out_whole->rows = rows;
  return NULL;
}

static calx_status *join(char *const *packed, int ranks, bool interleaved,
                         calx_value *out)
{
  row_block whole;
  CALX_TRY(check_blocks(packed, ranks, &whole));
  const size_t bytes = (size_t)(whole.rows * whole.row_bytes);
  char *data = cx_alloc(bytes + 1);
  if (data == NULL) return cx_out_of_memory();
  merge(packed, ranks, interleaved, (size_t)whole.row_bytes, data);
  if (whole.shape.count == 0) {  // no batch at all
    whole.shape = calx_dims_of((const int64_t[]){ 0 }, 1);
    whole.dtype = CALX_F32;
  }
  whole.shape.values[0] = whole.rows;
  calx_tensor *tensor =
      calx_host_tensor(data, (calx_dtype)whole.dtype, whole.shape);
  cx_free(data);
  return calx_value_append(out, calx_value_tensor(tensor));
}

static void free_payloads(char **payloads, int ranks)
{
  for (int r = 0; payloads != NULL && r < ranks; r++) {
    calx_string_free(payloads[r]);
  }
  cx_free(payloads);
}

// All ranks call it, since each gives its rows.
static calx_status *join_loader(calx_trainer *t, size_t i, calx_value *out)
{
  const prediction_list none = { 0 };
  const prediction_list *l =
      t->predictions != NULL ? &t->predictions->loaders[i] : &none;
  const int ranks = calx_world_size();
  char *mine, **all = NULL;
  size_t size, *sizes = NULL;
  CALX_TRY(pack(l, &mine, &size));
  calx_status *status = NULL;
  if (ranks > 1) {
    all = cx_calloc((size_t)ranks, sizeof *all);
    sizes = cx_calloc((size_t)ranks, sizeof *sizes);
    status =
        all == NULL || sizes == NULL
            ? cx_out_of_memory()
            : calx_rendezvous("trainer: predictions", mine, size, all, sizes);
  }
  if (status == NULL && out != NULL) {
    status = join(ranks > 1 ? all : &mine, ranks, t->evaluated[i].is_shared_out,
                  out);
  }
  free_payloads(all, ranks);
  cx_free(sizes);
  cx_free(mine);
  return status;
}

calx_status *cx_train_join_predictions(calx_trainer *t, calx_value **out)
{
  const bool is_first = cx_train_device_index(t) == 0;
  calx_value *list = is_first ? calx_value_container(CALX_KIND_LIST) : NULL;
  if (is_first && list == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  for (size_t i = 0; status == NULL && i < t->n_evaluated; i++) {
    status = join_loader(t, i, list);
  }
  if (status == NULL) {
    *out = list;
  } else {
    calx_value_free(list);
  }
  return status;
}

void cx_train_free_predictions(calx_trainer *t)
{
  for (size_t i = 0; t->predictions != NULL && i < t->predictions->n_loaders;
       i++) {
    prediction_list *l = &t->predictions->loaders[i];
    for (size_t k = 0; k < l->n; k++) calx_release(l->batches[k]);
    cx_free(l->batches);
  }
  cx_free(t->predictions);
}
