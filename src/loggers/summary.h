// loggers/summary: what TensorBoard shows, as values of a Summary.
//
// The messages are those of tensorflow/core/framework/summary.proto,
// tensor.proto and histogram.proto, and of tensorboard/plugins/hparams; what is
// in them, what torch.utils.tensorboard.summary puts there.
#ifndef CX_LOGGERS_SUMMARY_H
#define CX_LOGGERS_SUMMARY_H

#include "base/status.h"
#include "base/text.h"
#include "calx/loggers.h"
#include "loggers/yaml.h"

void cx_loggers_put_scalar(cx_text *summary, const char *tag, double value);
// A text for the text dashboard, which reads Markdown.
void cx_loggers_put_text(cx_text *summary, const char *tag, const char *text);
// In TensorFlow's buckets. INVALID_ARGUMENT where none of the values is in one.
calx_status *cx_loggers_put_histogram(cx_text *summary, const char *tag,
                                      const double *values,
                                      size_t count) CALX_MUST_USE;
// A PNG file of these sizes.
void cx_loggers_put_image(cx_text *summary, const char *tag, int64_t height,
                          int64_t width, int64_t channels, const void *png,
                          size_t size);

// The parts of a session of the hparams dashboard: what it was started with,
// and the tags of the metrics that it is compared by.
void cx_loggers_put_experiment(cx_text *summary,
                               const calx_hyperparameter *values, size_t count,
                               const char *const *metrics, size_t n_metrics);
void cx_loggers_put_session_start(cx_text *summary,
                                  const calx_hyperparameter *values,
                                  size_t count);
void cx_loggers_put_session_end(cx_text *summary);

#endif
