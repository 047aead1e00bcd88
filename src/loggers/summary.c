// loggers/summary: scalars, texts, images and hyperparameters as values of a
// Summary.
#include "loggers/summary.h"

#include <string.h>

#include "loggers/number.h"
#include "loggers/proto.h"

// Fields of Summary and of Summary.Value.
enum { SUMMARY_VALUE = 1 };
enum { TAG = 1, SIMPLE_VALUE = 2, IMAGE = 4, TENSOR = 8, METADATA = 9 };
// Of Summary.Image.
enum { HEIGHT = 1, WIDTH = 2, COLORSPACE = 3, ENCODED = 4 };
// Of TensorProto, TensorShapeProto and its Dim; the number of DT_STRING.
enum { DTYPE = 1, SHAPE = 2, STRING_VALUE = 8, DIM = 2, DIM_SIZE = 1 };
enum { STRING = 7 };
// Of SummaryMetadata and its PluginData.
enum { PLUGIN_DATA = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
// Of HParamsPluginData, Experiment, HParamInfo, MetricInfo and MetricName.
enum { EXPERIMENT = 2, SESSION_START = 3, SESSION_END = 4 };
enum { HPARAM_INFOS = 4, METRIC_INFOS = 5 };
enum { HPARAM_NAME = 1, HPARAM_TYPE = 4, METRIC_NAME = 1, METRIC_TAG = 2 };
// Types of hyperparameters.
enum { TYPE_STRING = 1, TYPE_FLOAT64 = 3 };
// Of SessionStartInfo, of an entry of a map, of google.protobuf.Value and of
// SessionEndInfo.
enum { HPARAMS = 1, MAP_KEY = 1, MAP_VALUE = 2 };
enum { NUMBER_VALUE = 2, TEXT_VALUE = 3 };
enum { END_STATUS = 1, END_SUCCESS = 1 };

// ---- values -----------------------------------------------------------------

void cx_loggers_put_scalar(cx_text *summary, const char *tag, double value)
{
  cx_text v = { 0 };
  cx_loggers_proto_text(&v, TAG, tag);
  cx_loggers_proto_float(&v, SIMPLE_VALUE, (float)value);
  cx_loggers_proto_message(summary, SUMMARY_VALUE, &v);
}

// What a plugin of TensorBoard takes the value by. The content is freed.
static void put_metadata(cx_text *value, const char *plugin, cx_text *content)
{
  cx_text data = { 0 }, metadata = { 0 };
  cx_loggers_proto_text(&data, PLUGIN_NAME, plugin);
  cx_loggers_proto_message(&data, PLUGIN_CONTENT, content);
  cx_loggers_proto_message(&metadata, PLUGIN_DATA, &data);
  cx_loggers_proto_message(value, METADATA, &metadata);
}

void cx_loggers_put_text(cx_text *summary, const char *tag, const char *text)
{
  cx_text v = { 0 }, name = { 0 }, none = { 0 };
  cx_text tensor = { 0 }, shape = { 0 }, dim = { 0 };
  cx_text_format(&name, "%s/text_summary", tag);
  cx_loggers_proto_text(&v, TAG, cx_text_str(&name));
  cx_loggers_proto_int(&tensor, DTYPE, STRING);
  cx_loggers_proto_int(&dim, DIM_SIZE, 1);
  cx_loggers_proto_message(&shape, DIM, &dim);
  cx_loggers_proto_message(&tensor, SHAPE, &shape);
  cx_loggers_proto_text(&tensor, STRING_VALUE, text);
  cx_loggers_proto_message(&v, TENSOR, &tensor);
  put_metadata(&v, "text", &none);
  v.failed |= name.failed;
  cx_loggers_proto_message(summary, SUMMARY_VALUE, &v);
  cx_text_free(&name);
}

void cx_loggers_put_image(cx_text *summary, const char *tag, int64_t height,
                          int64_t width, int64_t channels, const void *png,
                          size_t size)
{
  cx_text v = { 0 }, image = { 0 };
  cx_loggers_proto_text(&v, TAG, tag);
  cx_loggers_proto_int(&image, HEIGHT, height);
  cx_loggers_proto_int(&image, WIDTH, width);
  cx_loggers_proto_int(&image, COLORSPACE, channels);
  cx_loggers_proto_bytes(&image, ENCODED, png, size);
  cx_loggers_proto_message(&v, IMAGE, &image);
  cx_loggers_proto_message(summary, SUMMARY_VALUE, &v);
}

// ---- hyperparameters --------------------------------------------------------

// The plugin's data, a message with the one field, which is freed.
static void put_hparams(cx_text *summary, const char *tag, uint32_t field,
                        cx_text *message)
{
  cx_text v = { 0 }, content = { 0 };
  cx_loggers_proto_message(&content, field, message);
  cx_loggers_proto_text(&v, TAG, tag);
  put_metadata(&v, "hparams", &content);
  cx_loggers_proto_message(summary, SUMMARY_VALUE, &v);
}

static bool is_text(const calx_hyperparameter *h)
{
  return h->kind == CALX_HYPERPARAMETER_TEXT;
}

void cx_loggers_put_experiment(cx_text *summary,
                               const calx_hyperparameter *values, size_t count,
                               const char *const *metrics, size_t n_metrics)
{
  cx_text experiment = { 0 };
  for (size_t i = 0; i < count; i++) {
    cx_text info = { 0 };
    cx_loggers_proto_text(&info, HPARAM_NAME, values[i].name);
    cx_loggers_proto_int(&info, HPARAM_TYPE,
                         is_text(&values[i]) ? TYPE_STRING : TYPE_FLOAT64);
    cx_loggers_proto_message(&experiment, HPARAM_INFOS, &info);
  }
  for (size_t i = 0; i < n_metrics; i++) {
    cx_text info = { 0 }, name = { 0 };
    cx_loggers_proto_text(&name, METRIC_TAG, metrics[i]);
    cx_loggers_proto_message(&info, METRIC_NAME, &name);
    cx_loggers_proto_message(&experiment, METRIC_INFOS, &info);
  }
  put_hparams(summary, "_hparams_/experiment", EXPERIMENT, &experiment);
}

// A bool is a number, since PyTorch's writer takes Python's for one; None is
// the text that Lightning makes of it.
static void put_hparam(cx_text *start, const calx_hyperparameter *h)
{
  cx_text entry = { 0 }, value = { 0 };
  if (is_text(h)) {
    cx_loggers_proto_text(&value, TEXT_VALUE,
                          h->text == NULL ? "None" : h->text);
  } else {
    cx_loggers_proto_double(&value, NUMBER_VALUE, h->number);
  }
  cx_loggers_proto_text(&entry, MAP_KEY, h->name);
  cx_loggers_proto_message(&entry, MAP_VALUE, &value);
  cx_loggers_proto_message(start, HPARAMS, &entry);
}

void cx_loggers_put_session_start(cx_text *summary,
                                  const calx_hyperparameter *values,
                                  size_t count)
{
  cx_text start = { 0 };
  for (size_t i = 0; i < count; i++) put_hparam(&start, &values[i]);
  put_hparams(summary, "_hparams_/session_start_info", SESSION_START, &start);
}

void cx_loggers_put_session_end(cx_text *summary)
{
  cx_text end = { 0 };
  cx_loggers_proto_int(&end, END_STATUS, END_SUCCESS);
  put_hparams(summary, "_hparams_/session_end_info", SESSION_END, &end);
}
