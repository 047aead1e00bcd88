/**
 * calx/io.h: saving and loading.
 *
 * What is saved is a calx_value: a tree of tensors, numbers, texts, lists and
 * dicts, as PyTorch's checkpoints are. A state dict is a dict of tensors whose
 * keys are paths ("conv1.weight"). Device tensors in it are the model's own,
 * so it costs no memory and shows later values too.
 *
 * Files are safetensors, PyTorch's zip format (.pt) or numpy's (.npy, .npz);
 * all are read without running anything, whatever they contain. A save writes
 * one tensor after the other and replaces the file as a whole: it is the old
 * one or the new one, at every moment. No save waits for other ranks.
 *
 * @threads thread-compatible
 */
#ifndef CALX_IO_H
#define CALX_IO_H

#include "calx/amp.h"
#include "calx/data.h"
#include "calx/lr_scheduler.h"
#include "calx/nn.h"
#include "calx/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- values -----------------------------------------------------------------
// @shape any  @errors none

/** What a value is. */
typedef enum calx_kind {
  CALX_KIND_NONE,
  CALX_KIND_BOOL,
  CALX_KIND_INT,
  CALX_KIND_FLOAT,
  CALX_KIND_STRING, /* UTF-8 */
  CALX_KIND_BYTES,
  CALX_KIND_TENSOR,
  CALX_KIND_LIST,
  CALX_KIND_TUPLE,
  CALX_KIND_SET,
  CALX_KIND_DICT
} calx_kind;

/** A node of a tree. Whoever makes one owns it, until it is put into another.
 */
typedef struct calx_value calx_value;

/** New values; NULL without memory, which is passed on to calx_value_append()
 *  and calx_value_set(): they report it. */
CALX_API calx_value *calx_value_none(void);
CALX_API calx_value *calx_value_bool(bool value);
CALX_API calx_value *calx_value_int(int64_t value);
CALX_API calx_value *calx_value_float(double value);
/** A copy of the text. */
CALX_API calx_value *calx_value_string(const char *text);
/** A copy of any bytes. */
CALX_API calx_value *calx_value_bytes(const void *data, size_t size);
/** Becomes a further owner of the tensor, on a device or on the host. */
CALX_API calx_value *calx_value_tensor(calx_tensor *tensor);
/** An empty container. @param kind LIST, TUPLE, SET or DICT; else NULL */
CALX_API calx_value *calx_value_container(calx_kind kind);
/** Frees a value that is in no other, with all in it. NULL is accepted. */
CALX_API void calx_value_free(calx_value *value);

/** Puts an item at the end of a list, tuple or set, which owns it then; it is
 *  freed on failure.
 *  @errors INVALID_ARGUMENT no such container, an item of another one
 *          RESOURCE_EXHAUSTED the item is NULL: there was no memory for it */
CALX_API calx_status *calx_value_append(calx_value *list,
                                        calx_value *item) CALX_MUST_USE;
/** Puts an item into a dict, in the place of one with the same key.
 *  @param key  copied @errors as calx_value_append */
CALX_API calx_status *calx_value_set(calx_value *dict, const char *key,
                                     calx_value *item) CALX_MUST_USE;
/** The same with a number as key, as PyTorch's optimiser states have. */
CALX_API calx_status *calx_value_set_at(calx_value *dict, int64_t key,
                                        calx_value *item) CALX_MUST_USE;

/** What it is; NONE for NULL. */
CALX_API calx_kind calx_value_kind(const calx_value *value);
/** "dict", as PyTorch would say; for messages. */
CALX_API const char *calx_kind_name(calx_kind kind);
/** Items of a container; bytes of a string and of bytes; else 0. */
CALX_API size_t calx_value_count(const calx_value *value);
/** Item i, in the order of their putting; NULL: none. Owned by the container.
 */
CALX_API calx_value *calx_value_item(const calx_value *container, size_t i);
/** The key of a dict's item i; NULL: none, or a number. */
CALX_API const char *calx_value_key(const calx_value *dict, size_t i);
/** The number that is the key of a dict's item i; 0: none, or a text. */
CALX_API int64_t calx_value_key_number(const calx_value *dict, size_t i);
/** A dict's item; NULL: none. Owned by the dict. */
CALX_API calx_value *calx_value_get(const calx_value *dict, const char *key);
/** The same by a number. */
CALX_API calx_value *calx_value_get_at(const calx_value *dict, int64_t key);

/** A bool, or a number that is not 0; false for anything else. */
CALX_API bool calx_value_as_bool(const calx_value *value);
/** An int, bool or float (cut to an integer); 0 for anything else. */
CALX_API int64_t calx_value_as_int(const calx_value *value);
/** A float, int or bool; NaN for anything else. */
CALX_API double calx_value_as_float(const calx_value *value);
/** A string's or bytes' content, zero-terminated past its end; NULL for
 *  anything else. Owned by the value. */
CALX_API const char *calx_value_as_string(const calx_value *value);
/** A tensor, owned by the value; NULL for anything else. */
CALX_API calx_tensor *calx_value_as_tensor(const calx_value *value);

// ---- modules ----------------------------------------------------------------

/**
 * Parameters and buffers by PyTorch's names, as a dict of the model's own
 * tensors. The caller frees it.
 * @errors  those of making the model
 * @source  torch.nn.Module.state_dict
 */
CALX_API calx_status *calx_module_state_dict(
    calx_module *model, calx_value **out_dict) CALX_MUST_USE;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_load_state_dict_options {
  CALX_NAMED size_t size;
  CALX_NAMED bool not_strict; /* keys may be missing, and others be there */
  /* lists of keys that the caller frees; NULL: they are not wanted */
  CALX_NAMED calx_value **out_missing;
  CALX_NAMED calx_value **out_unexpected;
  /* of the dict's keys before the model's: "net." */
  CALX_NAMED const char *prefix;
} calx_load_state_dict_options;
/**
 * Copies a dict's tensors, from the host or a device, into a model's parameters
 * and buffers; other element types are converted as PyTorch does. All of them
 * or, on failure, none.
 * @errors  INVALID_ARGUMENT with PyTorch's text: missing and unexpected keys,
 *          sizes that differ; not a dict of tensors; those of uploads
 * @source  torch.nn.Module.load_state_dict
 */
CALX_API calx_status *calx_module_load_state_dict_with(
    calx_module *model, const calx_value *dict,
    const calx_load_state_dict_options *options) CALX_MUST_USE;

// ---- optimisers -------------------------------------------------------------

/**
 * An optimiser's hyperparameters and state, as PyTorch lays them out:
 * {'state': {0: {'step', 'exp_avg', …}, …}, 'param_groups': [{'lr', …,
 * 'params'}]}. Tensors are the optimiser's own. The caller frees it. Of one
 * whose state is spread over the ranks it is this rank's shard: save it by
 * every rank, and load it by the same rank of as many.
 * @errors  those of making the optimiser
 * @source  torch.optim.Optimizer.state_dict
 */
CALX_API calx_status *calx_optimizer_state_dict(
    calx_optimizer *opt, calx_value **out_dict) CALX_MUST_USE;
/**
 * The same of an optimiser whose state is spread over the ranks
 * (calx_zero_redundancy_optimizer()), but whole, as the plain optimiser has it:
 * any number of ranks, one that is not spread, and PyTorch can load it. A
 * collective: every rank calls it, between steps, and gets all of it as copies
 * on the host, which no later step changes. One tensor is gathered at a time.
 * Of any other optimiser it is calx_optimizer_state_dict(), and no collective.
 * The caller frees it.
 * @shape   each tensor as its parameter, steps one element
 * @errors  those of making the optimiser, of a collective and its execution
 * @source  torch ZeroRedundancyOptimizer.consolidate_state_dict
 */
CALX_API calx_status *calx_optimizer_consolidate_state_dict(
    calx_optimizer *opt, calx_value **out_dict) CALX_MUST_USE;
/**
 * Gives an optimiser the state and hyperparameters of one with as many
 * parameters, calx's or PyTorch's: all or, on failure, nothing. The values are
 * copied: a living optimiser that they are of shares nothing with this one.
 * Where the state is spread over the ranks, every rank calls it, and takes its
 * shard back or its part of a whole. Such an optimiser steps all parameters of
 * a dtype alike: one without state, which was never stepped, begins with zeros
 * and the others' count of steps.
 * @errors  INVALID_ARGUMENT other groups of parameters, sizes that differ,
 *          a state of another rule, hyperparameters that can't be, another
 * rank's shard, counts of steps that differ between parameters of a spread
 * state; those of uploads
 * @source  torch.optim.Optimizer.load_state_dict
 */
CALX_API calx_status *calx_optimizer_load_state_dict(
    calx_optimizer *opt, const calx_value *dict) CALX_MUST_USE;

// ---- schedules --------------------------------------------------------------

/**
 * A schedule's numbers and epoch by PyTorch's names, as a dict that the caller
 * frees. The rates themselves are the optimiser's.
 * @errors  those of making the schedule
 * @source  torch.optim.lr_scheduler.LRScheduler.state_dict
 */
CALX_API calx_status *calx_lr_scheduler_state_dict(
    const calx_lr_scheduler *scheduler, calx_value **out_dict) CALX_MUST_USE;
/**
 * Gives a schedule the state of one of its kind, calx's or PyTorch's: all or,
 * on failure, nothing. Load the optimiser's state beside it. Functions and
 * milestones are those that the schedule was made with.
 * @errors  INVALID_ARGUMENT no such state, another number of groups or of
 *          schedules
 * @source  torch.optim.lr_scheduler.LRScheduler.load_state_dict
 */
CALX_API calx_status *calx_lr_scheduler_load_state_dict(
    calx_lr_scheduler *scheduler, const calx_value *dict) CALX_MUST_USE;

// ---- scaling of losses ------------------------------------------------------

/**
 * A scaler's numbers by PyTorch's names, as a dict that the caller frees; empty
 * of a disabled one.
 * @errors  those of making the scaler
 * @source  torch.amp.GradScaler.state_dict
 */
CALX_API calx_status *calx_grad_scaler_state_dict(
    calx_grad_scaler *scaler, calx_value **out_dict) CALX_MUST_USE;
/**
 * Gives a scaler a state, calx's or PyTorch's: all or, on failure, nothing. A
 * disabled scaler takes none.
 * @errors  INVALID_ARGUMENT no such state, an empty one
 * @source  torch.amp.GradScaler.load_state_dict
 */
CALX_API calx_status *calx_grad_scaler_load_state_dict(
    calx_grad_scaler *scaler, const calx_value *dict) CALX_MUST_USE;

// ---- files ------------------------------------------------------------------
// @shape any

/** How a file is laid out. */
typedef enum calx_format {
  CALX_FORMAT_DEFAULT,     /* save: by the name; load: by the content */
  CALX_FORMAT_SAFETENSORS, /* *.safetensors: one dict of tensors */
  CALX_FORMAT_PT,          /* everything else: PyTorch's zip format */
  CALX_FORMAT_NPY,         /* *.npy: one tensor, as numpy.save writes it */
  CALX_FORMAT_NPZ          /* *.npz: one dict of tensors, as numpy.savez does */
} calx_format;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_save_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_format format;
  /* each rank writes; else the first rank alone, and the others return at
   * once */
  CALX_NAMED bool every_rank;
  CALX_NAMED const calx_value *metadata; /* safetensors: a dict of strings */
} calx_save_options;
/**
 * Writes a value to a file. Tensors are computed where they are pending, and
 * fetched one at a time. The file is replaced as a whole, and is on the disk
 * when the call returns; on failure it is what it was. No rank waits for
 * another: who loads what the first rank saved meets it before. A file that is
 * replaced keeps its mode and owner, a new one follows the umask.
 * @errors  INVALID_ARGUMENT what the format does not hold, no regular file
 *          NOT_FOUND, PERMISSION_DENIED the folder, or the file is there and
 *          read-only (for root too)  RESOURCE_EXHAUSTED the disk
 *          is full; those of an execution
 * @source  torch_xla xm.save and xser.save, torch.save, numpy.save, numpy.savez
 */
CALX_API calx_status *calx_save_with(const calx_value *value, const char *path,
                                     const calx_save_options *options)
    CALX_MUST_USE;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_load_options {
  CALX_NAMED size_t size;
  CALX_NAMED calx_format format;
  /* safetensors: a dict of strings, which the caller frees; NULL: not wanted */
  CALX_NAMED calx_value **out_metadata;
} calx_load_options;
/**
 * Reads a file into a value with tensors on the host, which the caller frees.
 * Tensors lie in the file's map, but for packed ones of .pt: replace a file, as
 * calx_save() does, do not change it in place. Nothing in a file is run. A .npy
 * is a tensor, a .npz a dict; big-endian and column-major arrays are turned.
 * Of a .pt a namespace is a dict, a path a text, a number of numpy's a number.
 * Objects of other classes make it unreadable, but in Lightning's checkpoints
 * beside the states of the model and the optimisers: they are None there, and a
 * line of the log says how many.
 * @param path  of any size; what it claims is checked against what it has,
 *              before anything is unpacked. Expanded tensors may come to 1 GiB
 * @errors  NOT_FOUND, PERMISSION_DENIED the file  DATA_LOSS it is damaged:
 * where UNIMPLEMENTED what calx does not read, by name
 * @source  torch.load with weights_only, torch_xla xser.load, numpy.load
 */
CALX_API calx_status *calx_load_with(const char *path,
                                     const calx_load_options *options,
                                     calx_value **out_value) CALX_MUST_USE;

// ---- a file for each rank ---------------------------------------------------
// @shape any

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_save_sharded_options {
  CALX_NAMED size_t size;
  /* of this save ("step 1200"): a load finds files of another one out by it;
   * NULL: "" */
  CALX_NAMED const char *tag;
  /* list of keys whose tensors are this rank's part of a whole, in the order of
   * the ranks along dimension 0; NULL: none */
  CALX_NAMED const calx_value *slices;
} calx_save_sharded_options;
/**
 * Saves a dict of tensors by all ranks together, each a share: what all ranks
 * hold alike is written by one of them, slices by each. Files
 * shard-00002-of-00004.safetensors in the folder, which is made, and
 * model.safetensors.index.json, which says who has what. All ranks call it with
 * equal keys, and none waits: meet before loading. Each file is replaced as a
 * whole; a folder for each save, or tags that differ, keep saves apart.
 * @errors  as calx_save(); INVALID_ARGUMENT a slice that is not in the dict or
 *          has rank 0
 */
CALX_API calx_status *calx_save_sharded_with(
    const calx_value *dict, const char *folder,
    const calx_save_sharded_options *options) CALX_MUST_USE;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_load_sharded_options {
  CALX_NAMED size_t size;
  /* NULL: any, as long as all files have the same */
  CALX_NAMED const char *tag;
  /* slices are joined; else this rank gets its part of the rows, all ranks
   * equally many but for the last */
  CALX_NAMED bool whole;
} calx_load_sharded_options;
/**
 * Loads what any number of ranks saved: everything that all ranks held alike,
 * and of slices the part that this rank has among as many ranks as there are
 * now. Also what another program wrote: *.safetensors files with such an index,
 * as Hugging Face's, or model.safetensors alone. Tensors are on the host; the
 * caller frees the dict.
 * @errors  as calx_load(); DATA_LOSS a file of another save, a tensor that is
 *          in none, or one that the index does not name
 */
CALX_API calx_status *calx_load_sharded_with(
    const char *folder, const calx_load_sharded_options *options,
    calx_value **out_dict) CALX_MUST_USE;

// ---- checkpoints ------------------------------------------------------------

/** What a training run is, besides its program. Zero means none. */
typedef struct calx_checkpoint {
  size_t size;
  calx_module *model;
  calx_optimizer *optimizer;
  calx_loader_position loader; /* calx_loader_state(), calx_loader_load_state()
                                */
  calx_value *user; /* the caller's, before and after: numbers, texts, … */
  calx_lr_scheduler *lr_scheduler;
  calx_grad_scaler *scaler;
} calx_checkpoint;

/**
 * Saves a run to a .pt file, which PyTorch can load too: the model's and the
 * optimiser's state dicts, those of the schedule and of the gradient scaler,
 * the loader's place, and the random numbers drawn so far. A run that loads it
 * goes on with the same bits. Between steps: what is pending is computed. As
 * with calx_save(), the first rank writes.
 * @errors  INVALID_ARGUMENT no model  FAILED_PRECONDITION the optimiser's state
 *          is spread over several ranks; those of calx_save()
 */
CALX_API calx_status *calx_checkpoint_save(
    const char *path, const calx_checkpoint *checkpoint) CALX_MUST_USE;
/**
 * Gives the model, the optimiser, the schedule, the gradient scaler and the
 * current device's random stream what a checkpoint has, all or, on failure,
 * nothing; fills in `loader` and `user`, which the caller frees (NULL: it has
 * none).
 * @errors  those of calx_load(), of loading the state dicts; INVALID_ARGUMENT
 *          another file than a checkpoint
 */
CALX_API calx_status *calx_checkpoint_load(
    const char *path, calx_checkpoint *checkpoint) CALX_MUST_USE;

#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_IO_SITE_
#else
#define CALX_IO_SITE_ calx_at_(CALX_HERE),
#define calx_optimizer_consolidate_state_dict(opt, out_dict) \
  (calx_at_(CALX_HERE), calx_optimizer_consolidate_state_dict(opt, out_dict))
#endif
#define CALX_LOAD_STATE_DICT_(model, dict, ...)    \
  (CALX_IO_SITE_ calx_module_load_state_dict_with( \
      model, dict, &(calx_load_state_dict_options){ __VA_ARGS__ }))
#define calx_module_load_state_dict(model, ...) \
  CALX_LOAD_STATE_DICT_(model, __VA_ARGS__,     \
                        .size = sizeof(calx_load_state_dict_options))
#define CALX_SAVE_(value, path, ...)         \
  (CALX_IO_SITE_ calx_save_with(value, path, \
                                &(calx_save_options){ __VA_ARGS__ }))
#define calx_save(value, ...) \
  CALX_SAVE_(value, __VA_ARGS__, .size = sizeof(calx_save_options))
#define CALX_SAVE_SHARDED_(dict, folder, ...) \
  (CALX_IO_SITE_ calx_save_sharded_with(      \
      dict, folder, &(calx_save_sharded_options){ __VA_ARGS__ }))
#define calx_save_sharded(dict, ...)    \
  CALX_SAVE_SHARDED_(dict, __VA_ARGS__, \
                     .size = sizeof(calx_save_sharded_options))
#define CALX_LOAD_SHARDED_(folder, out_dict, ...) \
  (CALX_IO_SITE_ calx_load_sharded_with(          \
      folder, &(calx_load_sharded_options){ __VA_ARGS__ }, out_dict))
#define calx_load_sharded(folder, ...)    \
  CALX_LOAD_SHARDED_(folder, __VA_ARGS__, \
                     .size = sizeof(calx_load_sharded_options))
#define CALX_LOAD_(path, out_value, ...)                                   \
  (CALX_IO_SITE_ calx_load_with(path, &(calx_load_options){ __VA_ARGS__ }, \
                                out_value))
#define calx_load(path, ...) \
  CALX_LOAD_(path, __VA_ARGS__, .size = sizeof(calx_load_options))
#endif
#endif
