/**
 * calx/export.h: a trained model as files that run without its code.
 *
 * calx_export() writes a folder:
 *
 *   model.mlir           the program, StableHLO text; its entry is main
 *   weights.safetensors  the tensors that it takes beside its inputs, by their
 *                        names in the model's state dict
 *   manifest.json        what each argument of main is, the names and shapes
 *
 * calx_exported_load() compiles it for the current device, with any plugin;
 * `calx hlo run FOLDER` does without a program. A run records nothing: it is a
 * launch of the compiled program.
 */
#ifndef CALX_EXPORT_H
#define CALX_EXPORT_H

#include "calx/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is exported: sets as many outputs as calx_export_options says.
 *  @shape as the model says */
typedef void calx_export_fn(void *user, calx_tensor *const *inputs,
                            calx_tensor **outputs);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_export_options {
  CALX_NAMED size_t size;
  /* of several inputs or outputs; NULL: calx_forward(model, input) */
  CALX_NAMED calx_export_fn *forward;
  CALX_NAMED void *user;     /* of .forward */
  CALX_NAMED size_t outputs; /* of .forward; 0 = 1 */
} calx_export_options;
/**
 * Writes a model's forward to a folder, which is made. The sizes are those of
 * the inputs. Numbers that the forward gives to ops, and random numbers, are
 * constants of the program. Tensors that it uses and that the model does not
 * hold are saved with the weights where they are computed; what is pending of
 * them becomes a part of the program. On several ranks the first one writes.
 * @param inputs  examples, `count` of them; their values are not saved
 * @shape any
 * @errors INVALID_ARGUMENT no model, a NULL input, as many inputs as the
 *         forward does not take; FAILED_PRECONDITION the model, or a module in
 *         it, is in training: calx_module_train(model, false); UNIMPLEMENTED a
 *         collective; those of the forward and of writing files
 * @source torch_xla.stablehlo.save_torch_model_as_stablehlo
 */
CALX_API calx_status *calx_export_with(
    calx_module *model, calx_tensor *const *inputs, size_t count,
    const char *folder, const calx_export_options *options) CALX_MUST_USE;

/** An exported model, compiled for a device. */
typedef struct calx_exported calx_exported;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_exported_load_options {
  CALX_NAMED size_t size;
  /* a file of calx_compile_ahead() for this plugin, which is believed: it holds
   * machine code; NULL: the program is compiled */
  CALX_NAMED const char *executable;
} calx_exported_load_options;
/**
 * Reads a folder that calx_export() wrote, copies the weights to the current
 * device and compiles the program, or takes it from the disk cache. Nothing in
 * the folder is trusted.
 * @return NULL, and *out_exported, which the caller frees
 * @errors NOT_FOUND, PERMISSION_DENIED a file  DATA_LOSS one is damaged, or the
 *         files do not belong together; those of the plugin's compiler
 * @source torch_xla.stablehlo.StableHLOGraphModule.load
 */
CALX_API calx_status *calx_exported_load_with(
    const char *folder, const calx_exported_load_options *options,
    calx_exported **out_exported) CALX_MUST_USE;
/** NULL is accepted. */
CALX_API void calx_exported_free(calx_exported *exported);

/** How many tensors it takes, and gives. */
CALX_API size_t calx_exported_input_count(const calx_exported *exported);
CALX_API size_t calx_exported_output_count(const calx_exported *exported);
/** Sizes and element type of input or output i, which is below the count. */
CALX_API calx_dims calx_exported_input_shape(const calx_exported *exported,
                                             size_t i);
CALX_API calx_dtype calx_exported_input_dtype(const calx_exported *exported,
                                              size_t i);
CALX_API calx_dims calx_exported_output_shape(const calx_exported *exported,
                                              size_t i);
CALX_API calx_dtype calx_exported_output_dtype(const calx_exported *exported,
                                               size_t i);

/**
 * Launches the program and returns before it is done, as a sync does. Inputs
 * that are pending are computed first.
 * @param inputs   as many as calx_exported_input_count(), on its device
 * @param outputs  receives calx_exported_output_count() tensors of the current
 *                 scope, without a gradient; poisoned where it fails
 * @shape as calx_exported_input_shape() and calx_exported_output_shape()
 * @errors through the scope: INVALID_ARGUMENT another number of tensors,
 *         another size, element type or device; those of an execution
 * @threads thread-safe, one thread for each launch at a time
 */
CALX_API void calx_exported_run(calx_exported *exported,
                                calx_tensor *const *inputs, size_t count,
                                calx_tensor **outputs, size_t output_count);
/** The same of one input and one output. @shape as calx_exported_run
 *  @errors as calx_exported_run */
CALX_API calx_tensor *calx_exported_forward(calx_exported *exported,
                                            calx_tensor *input);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_compile_ahead_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *plugin; /* a name or a path; NULL: "tpu" */
  /* "cuda": the card's description, XLA's GpuTargetConfigProto as text */
  CALX_NAMED const char *target_config;
} calx_compile_ahead_options;
/**
 * Compiles an exported program for devices that are not here, and writes the
 * executable for calx_exported_load(.executable) there.
 * @param topology  "v5e:2x2"; of CUDA "1x1x1"; of calx's own engine "calx_cpu"
 * @errors NOT_FOUND the folder, the plugin or the topology; DATA_LOSS as
 *         calx_exported_load(); those of the plugin's compiler and of writing
 */
CALX_API calx_status *calx_compile_ahead_with(
    const char *folder, const char *topology, const char *path,
    const calx_compile_ahead_options *options) CALX_MUST_USE;

#ifdef __cplusplus
}
#else
#ifdef CALX_NO_SITES
#define CALX_EXPORT_SITE_
#else
#define CALX_EXPORT_SITE_ calx_at_(CALX_HERE),
#define calx_exported_run(exported, ...) \
  (calx_at_(CALX_HERE), calx_exported_run(exported, __VA_ARGS__))
#define calx_exported_forward(exported, input) \
  (calx_at_(CALX_HERE),                        \
   calx_exported_forward(exported, calx_here_(input, CALX_HERE)))
#endif
#define CALX_EXPORTED_LOAD_(folder, out, ...) \
  (CALX_EXPORT_SITE_ calx_exported_load_with( \
      folder, &(calx_exported_load_options){ __VA_ARGS__ }, out))
#define calx_exported_load(folder, ...)    \
  CALX_EXPORTED_LOAD_(folder, __VA_ARGS__, \
                      .size = sizeof(calx_exported_load_options))
#define CALX_COMPILE_AHEAD_(folder, topology, path, ...) \
  (CALX_EXPORT_SITE_ calx_compile_ahead_with(            \
      folder, topology, path, &(calx_compile_ahead_options){ __VA_ARGS__ }))
#define calx_compile_ahead(folder, topology, ...)    \
  CALX_COMPILE_AHEAD_(folder, topology, __VA_ARGS__, \
                      .size = sizeof(calx_compile_ahead_options))
#define CALX_EXPORT_(model, inputs, count, folder, ...)             \
  (CALX_EXPORT_SITE_ calx_export_with(model, inputs, count, folder, \
                                      &(calx_export_options){ __VA_ARGS__ }))
#define calx_export(model, inputs, count, ...)    \
  CALX_EXPORT_(model, inputs, count, __VA_ARGS__, \
               .size = sizeof(calx_export_options))
#endif
#endif
