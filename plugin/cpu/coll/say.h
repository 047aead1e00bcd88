// coll/say: words of the room's errors.
#ifndef CPU_COLL_SAY_H
#define CPU_COLL_SAY_H

#include "base/text.h"
#include "coll/window.h"

// "replica 3", or with its partition where there are several.
void cpu_coll_put_device(cx_text *out, const cpu_coll_launch *launch,
                         uint32_t device);
// "all_reduce of f32[4], f32[2,3]"
void cpu_coll_put_part(cx_text *out, const cpu_coll_part *part);
// "collective 3 of the program: replica 0 has x, replica 1 has y", of devices a
// and b. Takes the two texts.
void cpu_coll_put_difference(cx_text *out, const cpu_coll_launch *launch,
                             uint32_t index, uint32_t a, cx_text *x, uint32_t b,
                             cx_text *y);
// How a device's launch ended that others wait for; `failed`: what it says,
// NULL: it ended well.
void cpu_coll_put_end(cx_text *out, const cpu_coll_launch *launch,
                      uint32_t device, const char *failed);
// The devices that have not come, of n members; some of them, and how many
// more.
typedef bool cpu_coll_has_come(const void *user, uint32_t member);
void cpu_coll_put_missing(cx_text *out, const cpu_coll_launch *launch,
                          const uint32_t *members, uint32_t n,
                          cpu_coll_has_come *has_come, const void *user);
// "… (collective 2 of the program): after 1000 ms these have not come: "
void cpu_coll_put_late(cx_text *out, const cpu_coll_part *part, uint32_t index,
                       int64_t ms);
// The status that the text says; out of memory where it failed.
calx_status *cpu_coll_say(calx_code code, cx_text *text) CALX_MUST_USE;

#endif
