// loggers/proto: fields of protobuf messages, written by their numbers.
#include "loggers/proto.h"

#include <string.h>

// What follows a field's number.
enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };

void cx_loggers_put_bytes(cx_text *out, uint64_t value, int bytes)
{
  for (; bytes > 0; bytes--, value >>= 8) cx_text_char(out, (char)value);
}

// Seven bits a byte, the lowest first; all but the last have the eighth set.
static void put_varint(cx_text *out, uint64_t value)
{
  for (; value >= 0x80; value >>= 7) {
    cx_text_char(out, (char)(0x80 | (value & 0x7f)));
  }
  cx_text_char(out, (char)value);
}

static void put_field(cx_text *out, uint32_t field, unsigned kind)
{
  put_varint(out, (uint64_t)field << 3 | kind);
}

void cx_loggers_proto_int(cx_text *out, uint32_t field, int64_t value)
{
  put_field(out, field, VARINT);
  put_varint(out, (uint64_t)value);
}

static void put_double(cx_text *out, double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  cx_loggers_put_bytes(out, bits, 8);
}

void cx_loggers_proto_double(cx_text *out, uint32_t field, double value)
{
  put_field(out, field, EIGHT_BYTES);
  put_double(out, value);
}

void cx_loggers_proto_float(cx_text *out, uint32_t field, float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_field(out, field, FOUR_BYTES);
  cx_loggers_put_bytes(out, bits, 4);
}

void cx_loggers_proto_bytes(cx_text *out, uint32_t field, const void *data,
                            size_t size)
{
  put_field(out, field, LENGTH);
  put_varint(out, size);
  if (size > 0) cx_text_append_n(out, data, size);
}

void cx_loggers_proto_text(cx_text *out, uint32_t field, const char *text)
{
  cx_text valid = { 0 };
  for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
    size_t n = cx_text_utf8(p);
    cx_text_append_n(&valid, n == 0 ? "?" : (const char *)p, n == 0 ? 1 : n);
    p += n == 0 ? 1 : n;
  }
  cx_loggers_proto_message(out, field, &valid);
}

void cx_loggers_proto_message(cx_text *out, uint32_t field, cx_text *message)
{
  out->failed |= message->failed;
  cx_loggers_proto_bytes(out, field, message->data, message->size);
  cx_text_free(message);
}

void cx_loggers_proto_doubles(cx_text *out, uint32_t field,
                              const double *values, size_t count)
{
  put_field(out, field, LENGTH);
  put_varint(out, (uint64_t)count * 8);
  for (size_t i = 0; i < count; i++) put_double(out, values[i]);
}
