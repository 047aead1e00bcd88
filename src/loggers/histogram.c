// loggers/histogram: histograms in the buckets that TensorFlow has.
//
// The edges are 0, 1e-12 times the powers of 1.1 below 1e20, and the same with
// a minus. A bucket has its lower edge, the last one its upper edge too; what
// is outside is in none (numpy.histogram). The empty buckets before the first
// and behind the last that has values are left out, but for one, whose upper
// edge is the lower one of the first: a bucket is written with its upper edge
// alone.
// @source torch.utils.tensorboard.summary.make_histogram
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "loggers/proto.h"
#include "loggers/summary.h"

// The powers on one side, and all edges.
enum { POWERS = 774, EDGES = 2 * POWERS + 1, BUCKETS = EDGES - 1 };

// Fields of Summary, Summary.Value and HistogramProto.
enum { SUMMARY_VALUE = 1, TAG = 1, HISTOGRAM = 5 };
enum { MIN = 1, MAX, NUM, SUM, SUM_SQUARES, BUCKET_LIMIT, BUCKET };

typedef struct histogram {
  double edges[EDGES], counts[BUCKETS];
  double min, max, sum, squares;
} histogram;

static void set_edges(double *edges)
{
  double v = 1e-12;
  edges[POWERS] = 0;
  for (int i = 1; i <= POWERS; i++, v *= 1.1) {
    edges[POWERS + i] = v;
    edges[POWERS - i] = -v;
  }
}

// The bucket of a value; -1: none.
static int bucket_of(const double *edges, double value)
{
  if (!(value >= edges[0] && value <= edges[EDGES - 1])) return -1;
  int low = 0, high = BUCKETS - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (edges[middle] <= value) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A NaN makes all four NaN, as it does NumPy's.
static void count_values(histogram *h, const double *values, size_t count)
{
  h->min = h->max = values[0];
  for (size_t i = 0; i < count; i++) {
    const double v = values[i];
    if (isnan(v) || v < h->min) h->min = v;
    if (isnan(v) || v > h->max) h->max = v;
    h->sum += v;
    h->squares += v * v;
    const int bucket = bucket_of(h->edges, v);
    if (bucket >= 0) h->counts[bucket]++;
  }
}

static void put(cx_text *summary, const char *tag, const histogram *h,
                size_t count, int first, int last)
{
  cx_text v = { 0 }, proto = { 0 };
  double shown[BUCKETS + 1] = { 0 };
  const size_t n = (size_t)(last - first) + 2;
  memcpy(shown + 1, h->counts + first, (n - 1) * sizeof *shown);
  cx_loggers_proto_double(&proto, MIN, h->min);
  cx_loggers_proto_double(&proto, MAX, h->max);
  cx_loggers_proto_double(&proto, NUM, (double)count);
  cx_loggers_proto_double(&proto, SUM, h->sum);
  cx_loggers_proto_double(&proto, SUM_SQUARES, h->squares);
  cx_loggers_proto_doubles(&proto, BUCKET_LIMIT, h->edges + first, n);
  cx_loggers_proto_doubles(&proto, BUCKET, shown, n);
  cx_loggers_proto_text(&v, TAG, tag);
  cx_loggers_proto_message(&v, HISTOGRAM, &proto);
  cx_loggers_proto_message(summary, SUMMARY_VALUE, &v);
}

calx_status *cx_loggers_put_histogram(cx_text *summary, const char *tag,
                                      const double *values, size_t count)
{
  int first = 0, last = BUCKETS - 1;
  histogram *h = cx_calloc(1, sizeof *h);
  if (h == NULL) return cx_out_of_memory();
  set_edges(h->edges);
  if (count > 0) count_values(h, values, count);
  while (first < BUCKETS && h->counts[first] == 0) first++;
  while (last > first && h->counts[last] == 0) last--;
  if (first < BUCKETS) put(summary, tag, h, count, first, last);
  cx_free(h);
  if (first < BUCKETS) return NULL;
  return cx_invalid(
      "the histogram '%s' is empty: of its %zu values none is "
      "between -1e20 and 1e20",
      tag, count);
}
