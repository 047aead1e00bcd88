/**
 * calx/debug.h: counters, timers, and the graph as text.
 *
 * The names are PyTorch/XLA's where it has one: CompileTime, ExecuteTime,
 * UncachedCompile, CachedCompile, MarkStep, TransferToDeviceTime,
 * TransferFromDeviceTime, TensorsGraphSize, InputOutputAliasCount.
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
  double median;      /* of the newest 1,024 */
} calx_metric_data;
/** False when it never collected anything; *out_data is zero then. */
CALX_API bool calx_metric_value(const char *name, calx_metric_data *out_data);

/** All metrics and counters, in the form of PyTorch/XLA's metrics_report; the
 *  caller frees it with calx_string_free(). NULL without memory. */
CALX_API char *calx_metrics_report(void);
/** Forgets all counts and samples. */
CALX_API void calx_metrics_clear(void);

/**
 * The recorded graph that a tensor's value waits for, one op a line with its
 * call site; a materialised tensor is one device_data line. The caller frees it
 * with calx_string_free(). NULL without memory.
 * @shape any @errors none
 */
CALX_API char *calx_graph_str(calx_tensor *tensor);
/** The StableHLO text that the tensor's value would be computed by, as
 *  CALX_DUMP writes it. @shape any @errors through the scope */
CALX_API char *calx_stablehlo_str(calx_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
