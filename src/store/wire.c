// store/wire: the heads of requests and replies. Sizes are in bytes.
//
//   request  "CXQ1" op(1) 0(1) name size(2) a(4) b(4) wait ms(8) value size(4)
//            name value
//   reply    "CXR1" kind(1) code(1) 0(2) value size(4) value
#include "store/wire.h"

#include <stdio.h>
#include <string.h>

static const char request_magic[4] = { 'C', 'X', 'Q', '1' };
static const char reply_magic[4] = { 'C', 'X', 'R', '1' };

void cx_store_wire_put32(unsigned char *out, uint32_t value)
{
  for (int i = 0; i < 4; i++) out[i] = (unsigned char)(value >> 8 * i);
}

void cx_store_wire_put64(unsigned char *out, uint64_t value)
{
  for (int i = 0; i < 8; i++) out[i] = (unsigned char)(value >> 8 * i);
}

uint32_t cx_store_wire_get32(const unsigned char *in)
{
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) value |= (uint32_t)in[i] << 8 * i;
  return value;
}

uint64_t cx_store_wire_get64(const unsigned char *in)
{
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)in[i] << 8 * i;
  return value;
}

size_t cx_store_wire_request(
    const cx_store_request *r,
    unsigned char out[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY])
{
  size_t name = strlen(r->name);
  memcpy(out, request_magic, 4);
  out[4] = (unsigned char)r->op;
  out[5] = 0;
  out[6] = (unsigned char)(name & 0xff);
  out[7] = (unsigned char)(name >> 8);
  cx_store_wire_put32(out + 8, (uint32_t)r->a);
  cx_store_wire_put32(out + 12, (uint32_t)r->b);
  cx_store_wire_put64(out + 16, (uint64_t)r->wait_ms);
  cx_store_wire_put32(out + 24, (uint32_t)r->size);
  memcpy(out + CX_STORE_REQUEST_HEAD, r->name, name);
  return CX_STORE_REQUEST_HEAD + name;
}

bool cx_store_wire_read_request(const void *bytes, size_t size,
                                cx_store_request *out)
{
  const unsigned char *in = bytes;
  if (size < CX_STORE_REQUEST_HEAD || memcmp(in, request_magic, 4) != 0)
    return false;
  size_t name = (size_t)in[6] | (size_t)in[7] << 8;
  size_t value = cx_store_wire_get32(in + 24);
  if (in[4] < CX_STORE_OP_HELLO || in[4] > CX_STORE_OP_BYE || in[5] != 0)
    return false;
  if (name > CX_STORE_TABLE_KEY || value > CX_STORE_TABLE_VALUE ||
      size != CX_STORE_REQUEST_HEAD + name + value) {
    return false;
  }
  if (memchr(in + CX_STORE_REQUEST_HEAD, '\0', name) != NULL) return false;
  out->op = (cx_store_op)in[4];
  out->a = (int32_t)cx_store_wire_get32(in + 8);
  out->b = (int32_t)cx_store_wire_get32(in + 12);
  out->wait_ms = (int64_t)cx_store_wire_get64(in + 16);
  memcpy(out->name, in + CX_STORE_REQUEST_HEAD, name);
  out->name[name] = '\0';
  out->value = (const char *)in + CX_STORE_REQUEST_HEAD + name;
  out->size = value;
  return true;
}

void cx_store_wire_reply(const cx_store_reply *r,
                         unsigned char out[CX_STORE_REPLY_HEAD])
{
  memcpy(out, reply_magic, 4);
  out[4] = (unsigned char)r->kind;
  out[5] = (unsigned char)r->code;
  out[6] = out[7] = 0;
  cx_store_wire_put32(out + 8, (uint32_t)r->size);
}

bool cx_store_wire_read_reply(const void *bytes, size_t size,
                              cx_store_reply *out)
{
  const unsigned char *in = bytes;
  if (size < CX_STORE_REPLY_HEAD || memcmp(in, reply_magic, 4) != 0)
    return false;
  if (in[4] > CX_STORE_REPLY_EVENT || in[5] > CALX_UNAUTHENTICATED ||
      (in[6] | in[7]) != 0) {
    return false;
  }
  if (in[4] == CX_STORE_REPLY_FAILURE && in[5] == CALX_OK) return false;
  size_t value = cx_store_wire_get32(in + 8);
  if (size != CX_STORE_REPLY_HEAD + value) return false;
  *out = (cx_store_reply){ .kind = (cx_store_reply_kind)in[4],
                           .code = (calx_code)in[5],
                           .value = (const char *)in + CX_STORE_REPLY_HEAD,
                           .size = value };
  return true;
}

static void put_hash(unsigned char *out, cx_hash hash)
{
  cx_store_wire_put64(out, hash.low);
  cx_store_wire_put64(out + 8, hash.high);
}

static cx_hash get_hash(const unsigned char *in)
{
  return (cx_hash){ cx_store_wire_get64(in), cx_store_wire_get64(in + 8) };
}

void cx_store_wire_origin(const cx_store_origin *o,
                          unsigned char out[CX_STORE_ORIGIN_BYTES])
{
  cx_store_wire_put32(out, (uint32_t)o->host);
  put_hash(out + 4, o->launch);
  put_hash(out + 20, o->job);
}

bool cx_store_wire_read_origin(const void *bytes, size_t size,
                               cx_store_origin *out)
{
  const unsigned char *in = bytes;
  if (size != CX_STORE_ORIGIN_BYTES) return false;
  *out = (cx_store_origin){ (int32_t)cx_store_wire_get32(in), get_hash(in + 4),
                            get_hash(in + 20) };
  return out->host >= -1;
}

void cx_store_wire_copy_text(const char *value, size_t size, char *out,
                             size_t out_size)
{
  size_t n = size < out_size ? size : out_size - 1;
  if (n != 0) memcpy(out, value, n);
  out[n] = '\0';
}

void cx_store_wire_format_loss(int64_t silent_ms, char out[CX_STORE_LOSS_BYTES])
{
  snprintf(out, CX_STORE_LOSS_BYTES,
           silent_ms > 0
               ? "silent for %.3g s: stopped, or its host is unreachable"
               : "its connection closed",
           (double)silent_ms / 1000);
}

void cx_store_wire_append(cx_text *list, const void *value, size_t size)
{
  unsigned char head[4];
  cx_store_wire_put32(head, (uint32_t)size);
  cx_text_append_n(list, (const char *)head, sizeof head);
  if (size != 0) cx_text_append_n(list, value, size);
}

bool cx_store_wire_next(const char **list, size_t *left, const char **out_value,
                        size_t *out_size)
{
  if (*left < 4) return false;
  size_t size = cx_store_wire_get32((const unsigned char *)*list);
  if (size > *left - 4) return false;
  *out_value = *list + 4;
  *out_size = size;
  *list += 4 + size;
  *left -= 4 + size;
  return true;
}
