// hlo/bytecode: numbers, and the sections that they give the sizes of.
#include <string.h>

#include "hlo/bytecode_reader.h"

// Zeros at the low end of the first byte count the bytes that follow it.
calx_status *cx_hlo_bytes_long(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               uint64_t *out)
{
  const char *from = in->at;
  const size_t left = (size_t)(in->end - from);
  const unsigned first = left == 0 ? 0 : (unsigned char)*from;
  const unsigned more = first == 0 ? 8 : (unsigned)__builtin_ctz(first);
  if (left < more + 1u) return CX_HLO_BYTES_FAIL(b, from, "the file ends here");
  uint64_t v = 0;
  for (unsigned i = 0; i < more; i++) {
    v |= (uint64_t)(unsigned char)from[i + 1] << (8 * i);
  }
  in->at += more + 1;
  *out = first == 0 ? v : v << (7 - more) | first >> (more + 1);
  return NULL;
}

calx_status *cx_hlo_bytes_signed(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 int64_t *out)
{
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  *out = (int64_t)(v >> 1 ^ (0 - (v & 1)));
  return NULL;
}

calx_status *cx_hlo_bytes_double(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 double *out)
{
  int64_t bits = 0;
  CALX_TRY(cx_hlo_bytes_signed(b, in, &bits));
  memcpy(out, &bits, sizeof bits);
  return NULL;
}

calx_status *cx_hlo_bytes_no_count(cx_hlo_bytecode *b, const char *at,
                                   size_t left, uint64_t v)
{
  return CX_HLO_BYTES_FAIL(b, at, "%llu items do not fit into %zu bytes",
                           (unsigned long long)v, left);
}

calx_status *cx_hlo_bytes_no_index(cx_hlo_bytecode *b, const char *at,
                                   size_t limit, const char *what, uint64_t v)
{
  return CX_HLO_BYTES_FAIL(b, at, "there is no %s %llu; there are %zu", what,
                           (unsigned long long)v, limit);
}

calx_status *cx_hlo_bytes_take(cx_hlo_bytecode *b, cx_hlo_bytes *in, uint64_t n,
                               cx_hlo_bytes *out)
{
  if (n > (size_t)(in->end - in->at)) {
    return CX_HLO_BYTES_FAIL(b, in->at, "%llu bytes are wanted, %zu are left",
                             (unsigned long long)n, (size_t)(in->end - in->at));
  }
  *out = (cx_hlo_bytes){ in->at, in->at + n };
  in->at += n;
  return NULL;
}

// section ::= byte(id | aligned << 7) length (alignment padding*)? bytes
calx_status *cx_hlo_bytes_section(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  size_t *out_id, cx_hlo_bytes *out)
{
  const char *from = in->at;
  uint64_t length = 0, alignment = 0;
  if (from == in->end)
    return CX_HLO_BYTES_FAIL(b, from, "a section is missing");
  const unsigned id = (unsigned char)*in->at++;
  CALX_TRY(cx_hlo_bytes_number(b, in, &length));
  if (id & 0x80) {
    CALX_TRY(cx_hlo_bytes_number(b, in, &alignment));
    while (in->at < in->end && *in->at == '\xcb') in->at++;
  }
  *out_id = id & 0x7f;
  return cx_hlo_bytes_take(b, in, length, out);
}
