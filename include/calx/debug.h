/**
 * calx/debug.h: counters, timers, profiles, and the graph as text.
 *
 * The names are PyTorch/XLA's where calx has what they count:
 *
 *   timers    CompileTime, ExecuteTime, TransferToDeviceTime,
 *             TransferFromDeviceTime, TensorToData (an upload that the program
 *             asks for), IrValueTensorToXlaData (of a step's numbers),
 *             DeviceLockWait (for room among the steps under way),
 *             PersistentCacheLoad; LoaderWait, which is calx's own: the program
 *             waits for its next batch
 *   bytes     InboundData (from the device), OutboundData
 *   values    TensorsGraphSize, InputOutputAliasCount
 *   counters  MarkStep, UncachedCompile, CachedCompile, ExecuteComputation,
 *             ExecuteReplicated (those of programs with collectives, which
 *             have ExecuteReplicatedTime too),
 *             CreateXlaTensor, DestroyXlaTensor, CreateDataHandles,
 *             DestroyDataHandles, DeviceDataCacheMiss (a step's numbers
 *             changed), PersistentCacheHit, PersistentCacheMiss,
 *             PersistentCacheDeserializeFailure; CpuInterpretedOps, calx's own
 *   per op    xla::NAME, an op that ran, each time;
 *             aten::_local_scalar_dense, each calx_item()
 *
 * Environment: CALX_METRICS_SAMPLES (1024), CALX_METRICS_PERCENTILES
 * (0.01:0.05:0.1:0.2:0.5:0.8:0.9:0.95:0.99) and CALX_METRICS_FILE (STDERR,
 * STDOUT or a path: the report after each sync, under a line [MetricsData;
 * step=N]); their XLA_ names are taken too.
 *
 *
 * CALX_DEBUG=1 writes a block of lines for each compilation and execution: its
 * cause, the graph's hash, inputs, outputs and sizes, the call site; to
 * standard error or CALX_DEBUG_FILE. CALX_DEBUG_LEVEL=1: compilations only.
 *
 * CALX_REPORT=FILE writes, when the process ends or SIGINT or SIGTERM ends it
 * (a handler that was there before the first device is called after it), what
 * `calx report FILE` makes advice of. A loop that compiles or reads values in
 * most of its steps is told once, unless CALX_QUIET=1.
 *
 * @threads thread-safe
 */
#ifndef CALX_DEBUG_H
#define CALX_DEBUG_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A counter's value; 0 when it never counted. */
CALX_API int64_t calx_counter_value(const char *name);

/** What a timer or other metric collected; times in seconds, data in bytes. */
typedef struct calx_metric_data {
  int64_t samples;    /* ever */
  double accumulator; /* their sum */
  double median;      /* of the newest, see CALX_METRICS_SAMPLES */
} calx_metric_data;
/** False when it never collected anything; *out_data is zero then. */
CALX_API bool calx_metric_value(const char *name, calx_metric_data *out_data);
/**
 * The newest samples of a metric, the oldest of them first.
 * @param out_times   seconds of the monotonic clock; `capacity` of them, as of
 *                    out_values, which are in seconds, bytes or numbers
 * @return how many there are, which may be more than `capacity`
 */
CALX_API size_t calx_metric_samples(const char *name, double *out_times,
                                    double *out_values, size_t capacity);

/** The names of all counters that counted, sorted, which live as long as the
 *  process. @return how many there are, which may be more than `capacity` */
CALX_API size_t calx_counter_names(const char **out_names, size_t capacity);
/** The same of timers and other metrics. */
CALX_API size_t calx_metric_names(const char **out_names, size_t capacity);
/** Names of the counters of what ran on the host instead of the device, all
 *  with the prefix aten::. @source torch_xla executed_fallback_ops */
CALX_API size_t calx_fallback_ops(const char **out_names, size_t capacity);

/** All metrics and counters, in the form of PyTorch/XLA's metrics_report; the
 *  caller frees it with calx_string_free(). NULL without memory. */
CALX_API char *calx_metrics_report(void);
/**
 * Some of them, in the lists' order; those of aten:: always.
 * @param counters  names, with a NULL after the last; NULL: CachedCompile,
 *                  MarkStep
 * @param metrics   the same; NULL: CompileTime, ExecuteTime,
 *                  ExecuteReplicatedTime, TransferToDeviceTime,
 *                  TransferFromDeviceTime
 * @source torch_xla short_metrics_report
 */
CALX_API char *calx_metrics_short_report(const char *const *counters,
                                         const char *const *metrics);
/** Forgets all counts (clear_counters). */
CALX_API void calx_counters_clear(void);
/** Forgets all samples (clear_metrics). */
CALX_API void calx_samples_clear(void);
/** Forgets both (clear_all). */
CALX_API void calx_metrics_clear(void);

// ---- where the time goes ----------------------------------------------------

/**
 * Begins a profile: what each step does, from now to calx_profile_stop(), as a
 * file of Chrome's Trace Event Format, which https://ui.perfetto.dev shows:
 * recording, compilations, loads from the cache, executions, transfers, waits,
 * for each rank and thread. Of each thread the newest 8,192 or so are kept.
 * CALX_PROFILE=path does the same for the whole run.
 * @param path  of the file, which gets .ORDINAL where there are several ranks
 * @errors FAILED_PRECONDITION one is running  INVALID_ARGUMENT no path
 */
CALX_API calx_status *calx_profile_start(const char *path) CALX_MUST_USE;
/** Ends the profile and writes it.
 *  @errors FAILED_PRECONDITION none is running; those of writing a file */
CALX_API calx_status *calx_profile_stop(void) CALX_MUST_USE;

/**
 * Begins a region of this name in the profile, on the calling thread. Regions
 * nest, and end with their scope at the latest; a sync inside of one is an
 * error.
 * @param name  must live until the region ends; the profile has 39 bytes of it
 * @errors through the scope: RESOURCE_EXHAUSTED 64 are open
 * @source torch_xla.debug.profiler.Trace
 */
CALX_API void calx_trace_begin(const char *name);
/** Ends the innermost.
 *  @errors through the scope: FAILED_PRECONDITION none is open */
CALX_API void calx_trace_end(void);

// ---- the graph --------------------------------------------------------------

/**
 * The recorded graph that a tensor's value waits for, one op a line with its
 * call site; a materialised tensor is one device_data line. The caller frees it
 * with calx_string_free(). NULL without memory.
 * @shape any @errors none
 */
CALX_API char *calx_graph_str(calx_tensor *tensor);
/** The StableHLO text that the tensor's value would be computed by, as
 *  CALX_DUMP writes it; after calx_use_spmd() without the annotations of how it
 *  is split. @shape any @errors through the scope */
CALX_API char *calx_stablehlo_str(calx_tensor *tensor);

#ifdef __cplusplus
}
#else
#ifndef CALX_NO_SITES
#define calx_trace_begin(name) (calx_at_(CALX_HERE), calx_trace_begin(name))
#define calx_trace_end() (calx_at_(CALX_HERE), calx_trace_end())
#endif
#endif
#endif
