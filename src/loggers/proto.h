// loggers/proto: fields of protobuf messages, written by their numbers.
//
// The encoding is the wire format of protobuf.dev/programming-guides/encoding.
#ifndef CX_LOGGERS_PROTO_H
#define CX_LOGGERS_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void cx_loggers_proto_int(cx_text *out, uint32_t field, int64_t value);
void cx_loggers_proto_double(cx_text *out, uint32_t field, double value);
void cx_loggers_proto_float(cx_text *out, uint32_t field, float value);
void cx_loggers_proto_bytes(cx_text *out, uint32_t field, const void *data,
                            size_t size);
// A string: what is not UTF-8 becomes question marks, which readers would
// refuse.
void cx_loggers_proto_text(cx_text *out, uint32_t field, const char *text);
// A message, which is freed.
void cx_loggers_proto_message(cx_text *out, uint32_t field, cx_text *message);
// A packed list.
void cx_loggers_proto_doubles(cx_text *out, uint32_t field,
                              const double *values, size_t count);

// A number's bytes, the lowest first.
void cx_loggers_put_bytes(cx_text *out, uint64_t value, int bytes);

#endif
