// coll/say: see say.h.
#include "coll/say.h"

#include "base/status.h"

enum { NAMED = 8 };

void cpu_coll_put_device(cx_text *out, const cpu_coll_launch *l,
                         uint32_t device)
{
  cx_text_format(out, "replica %u", (unsigned)(device / l->n_partitions));
  if (l->n_partitions > 1) {
    cx_text_format(out, " partition %u", (unsigned)(device % l->n_partitions));
  }
}

void cpu_coll_put_part(cx_text *out, const cpu_coll_part *part)
{
  cx_text_append(out, cpu_coll_name(part->op));
  for (uint32_t i = 0; i < part->op->n_operands; i++) {
    cx_text_append(out, i == 0 ? " of " : ", ");
    cx_text_append(out, cx_hlo_shape(&part->operands[i].type).s);
  }
}

static void put_one(cx_text *out, const cpu_coll_launch *l, uint32_t device,
                    cx_text *has)
{
  cpu_coll_put_device(out, l, device);
  cx_text_append(out, " has ");
  cx_text_append(out, cx_text_str(has));
  cx_text_free(has);
}

void cpu_coll_put_difference(cx_text *out, const cpu_coll_launch *l,
                             uint32_t index, uint32_t a, cx_text *x, uint32_t b,
                             cx_text *y)
{
  cx_text_format(out, "collective %u of the program: ", (unsigned)index);
  put_one(out, l, a, x);
  cx_text_append(out, ", ");
  put_one(out, l, b, y);
}

void cpu_coll_put_end(cx_text *out, const cpu_coll_launch *l, uint32_t device,
                      const char *failed)
{
  cpu_coll_put_device(out, l, device);
  if (failed == NULL) {
    cx_text_append(out, " ended its run without coming to it");
  } else {
    cx_text_append(out, " failed: ");
    cx_text_append(out, failed);
  }
}

void cpu_coll_put_missing(cx_text *out, const cpu_coll_launch *l,
                          const uint32_t *members, uint32_t n,
                          cpu_coll_has_come *has_come, const void *user)
{
  uint32_t named = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (has_come(user, i)) continue;
    if (named < NAMED) {
      if (named != 0) cx_text_append(out, ", ");
      cpu_coll_put_device(out, l, members[i]);
    }
    named++;
  }
  if (named > NAMED) {
    cx_text_format(out, " and %u more", (unsigned)(named - NAMED));
  }
}

void cpu_coll_put_late(cx_text *out, const cpu_coll_part *part, uint32_t index,
                       int64_t ms)
{
  cpu_coll_put_part(out, part);
  cx_text_format(out,
                 " (collective %u of the program): after %lld ms these have "
                 "not come: ",
                 (unsigned)index, (long long)ms);
}

calx_status *cpu_coll_say(calx_code code, cx_text *text)
{
  calx_status *status = cx_text_failed(text)
                            ? cx_out_of_memory()
                            : cx_error(code, "%s", cx_text_str(text));
  cx_text_free(text);
  return status;
}
