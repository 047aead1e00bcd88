// coll/messages: see messages.h.
#include "coll/messages.h"

#include "base/status.h"
#include "base/text.h"
#include "coll/state.h"
#include "hlo/ops.h"

enum { NAMED = 8 };  // devices at most

// "replica 3", or with its partition where there are several.
static void put_device(cx_text *out, const cpu_coll_launch *l, uint32_t device)
{
  cx_text_format(out, "replica %u", (unsigned)(device / l->n_partitions));
  if (l->n_partitions > 1) {
    cx_text_format(out, " partition %u", (unsigned)(device % l->n_partitions));
  }
}

static void put_devices(cx_text *out, const cpu_coll_report *r)
{
  for (uint32_t i = 0; i < r->n_devices && i < NAMED; i++) {
    if (i != 0) cx_text_append(out, ", ");
    put_device(out, r->launch, r->devices[i]);
  }
  if (r->n_devices > NAMED) {
    cx_text_format(out, " and %u more", (unsigned)(r->n_devices - NAMED));
  }
}

// "all_reduce of f32[4], f32[2,3]"
static void put_operation(cx_text *out, const cpu_coll_submission *s)
{
  cx_text_append(out, cpu_coll_name(s->op));
  for (uint32_t i = 0; i < s->op->n_operands; i++) {
    cx_text_append(out, i == 0 ? " of " : ", ");
    cx_text_append(out, cx_hlo_shape(&s->operands[i].type).s);
  }
}

// "replica 0 has all_reduce of f32[4] and 2 more"
static void put_header(cx_text *out, const cpu_coll_report *r, int i)
{
  const uint64_t *header = r->headers[i];
  const uint64_t kind = header[CPU_COLL_FIELD_KIND], n = kind >> 32;
  int64_t dims[CPU_COLL_DIMS];
  for (int k = 0; k < CPU_COLL_DIMS; k++) {
    dims[k] = (int64_t)header[CPU_COLL_FIELD_DIMS + k];
  }
  const uint64_t rank = header[CPU_COLL_FIELD_SHAPE];
  const cx_hlo_type type = { (cx_hlo_elem)(kind >> 16 & 0xffff),
                             rank < CPU_COLL_DIMS ? (size_t)rank
                                                  : CPU_COLL_DIMS,
                             dims };
  put_device(out, r->launch, r->devices[i]);
  cx_text_format(out, " has %s of %s",
                 cx_hlo_op_short((cx_hlo_op_kind)(kind & 0xffff)),
                 cx_hlo_shape(&type).s);
  if (rank > CPU_COLL_DIMS) cx_text_append(out, " and more dimensions");
  if (n > 1) cx_text_format(out, " and %u more", (unsigned)(n - 1));
}

// The lower device comes first, whoever found the difference.
static void put_difference(cx_text *out, const cpu_coll_report *r)
{
  const int lower = r->devices[0] < r->devices[1] ? 0 : 1;
  const uint64_t *x = r->headers[lower], *y = r->headers[1 - lower];
  cx_text_format(
      out, "collective %u of the program: ", (unsigned)x[CPU_COLL_FIELD_INDEX]);
  put_header(out, r, lower);
  cx_text_append(out, ", ");
  put_header(out, r, 1 - lower);
  if (x[CPU_COLL_FIELD_INDEX] != y[CPU_COLL_FIELD_INDEX]) {
    cx_text_format(out, ", as its collective %u",
                   (unsigned)y[CPU_COLL_FIELD_INDEX]);
  } else if (x[CPU_COLL_FIELD_KIND] != y[CPU_COLL_FIELD_KIND] ||
             x[CPU_COLL_FIELD_TYPES] != y[CPU_COLL_FIELD_TYPES]) {
    // The operations above differ visibly.
  } else if (x[CPU_COLL_FIELD_GROUP] != y[CPU_COLL_FIELD_GROUP]) {
    cx_text_append(out, ", with another group");
  } else if (x[CPU_COLL_FIELD_REST] != y[CPU_COLL_FIELD_REST]) {
    cx_text_append(out, ", with other attributes or regions");
  } else {
    cx_text_append(out, ", of another program");
  }
}

static void put_cause(cx_text *out, const cpu_coll_report *r)
{
  const long long ms = (long long)cpu_coll_limit_ms(r->launch);
  switch (r->cause) {
    case CPU_COLL_LATE:
      cx_text_format(out, "after %lld ms these have not arrived: ", ms);
      put_devices(out, r);
      break;
    case CPU_COLL_STUCK:
      cx_text_format(out,
                     "all have arrived, but for %lld ms no data has moved "
                     "between the hosts",
                     ms);
      break;
    case CPU_COLL_ENDED:
      put_devices(out, r);
      cx_text_append(out, " ended its launch without arriving");
      break;
    case CPU_COLL_FAILED:
      put_devices(out, r);
      cx_text_format(out, " failed: %s", r->reason);
      break;
    case CPU_COLL_DIFFERS: put_difference(out, r); break;
    case CPU_COLL_REPORTED: cx_text_append(out, r->reason); break;
  }
}

calx_status *cpu_coll_error(const cpu_coll_report *r)
{
  static const calx_code codes[] = {
    [CPU_COLL_LATE] = CALX_DEADLINE_EXCEEDED,
    [CPU_COLL_STUCK] = CALX_DEADLINE_EXCEEDED,
    [CPU_COLL_ENDED] = CALX_FAILED_PRECONDITION,
    [CPU_COLL_FAILED] = CALX_ABORTED,
    [CPU_COLL_DIFFERS] = CALX_FAILED_PRECONDITION,
  };
  cx_text text = { 0 };
  if (r->submission != NULL) {
    put_operation(&text, r->submission);
    if (r->cause == CPU_COLL_LATE || r->cause == CPU_COLL_STUCK) {
      cx_text_format(&text, " (collective %u of the program)",
                     (unsigned)r->launch->n_done);
    }
    cx_text_append(&text, ": ");
  }
  put_cause(&text, r);
  calx_status *status =
      cx_text_failed(&text)
          ? cx_out_of_memory()
          : cx_error(r->cause == CPU_COLL_REPORTED ? r->code : codes[r->cause],
                     "%s", cx_text_str(&text));
  cx_text_free(&text);
  return status;
}
