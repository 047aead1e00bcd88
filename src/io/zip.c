// io/zip: zip archives, written entry by entry.
#include "io/zip.h"

#include <string.h>

#include "base/status.h"
#include "io/crc.h"

enum {
  ALIGNED = 64,
  UTF8 = 0x0800,  // a flag: names are UTF-8
  ZIP64 = 45,     // version needed
  DATE = 0x0021   // 1980-01-01: equal contents give equal files
};
#define LIMIT ((uint64_t)0xffffffff)

static void put(cx_text *out, uint64_t n, int bytes)
{
  for (int i = 0; i < bytes; i++) cx_text_char(out, (char)(n >> (8 * i)));
}

static uint64_t at_most(uint64_t n)
{
  return n < LIMIT ? n : LIMIT;
}

typedef struct zip_entry {
  const char *name;  // whole
  uint64_t offset, size;
  uint32_t crc;
} zip_entry;

// What both headers of an entry have in the middle.
static void put_common(cx_text *out, const zip_entry *e, bool large)
{
  put(out, large ? ZIP64 : 0, 2);
  put(out, UTF8, 2);
  put(out, 0, 2);  // stored
  put(out, 0, 2);  // time
  put(out, DATE, 2);
  put(out, e->crc, 4);
  put(out, at_most(e->size), 4);
  put(out, at_most(e->size), 4);
  put(out, strlen(e->name), 2);
}

static void put_local(cx_text *out, const zip_entry *e)
{
  bool large = e->size >= LIMIT;
  uint64_t name = strlen(e->name), extra = large ? 20 : 0;
  uint64_t begin = e->offset + 30 + name + extra + 4;
  uint64_t padding = (ALIGNED - begin % ALIGNED) % ALIGNED;
  put(out, 0x04034b50, 4);
  put_common(out, e, large);
  put(out, extra + 4 + padding, 2);
  cx_text_append(out, e->name);
  if (large) {
    put(out, 1, 2);
    put(out, 16, 2);
    put(out, e->size, 8);
    put(out, e->size, 8);
  }
  cx_text_append(out, "FB");
  put(out, padding, 2);
  for (uint64_t i = 0; i < padding; i++) cx_text_char(out, 'Z');
}

static void put_central(cx_text *out, const zip_entry *e)
{
  bool size = e->size >= LIMIT, offset = e->offset >= LIMIT;
  uint64_t extra = (size ? 16u : 0u) + (offset ? 8u : 0u);
  put(out, 0x02014b50, 4);
  put(out, size || offset ? ZIP64 : 0, 2);  // made by
  put_common(out, e, size || offset);
  put(out, extra != 0 ? extra + 4 : 0, 2);
  put(out, 0, 2 + 2 + 2);  // comment, disk, internal attributes
  put(out, 0, 4);          // external attributes
  put(out, at_most(e->offset), 4);
  cx_text_append(out, e->name);
  if (extra == 0) return;
  put(out, 1, 2);
  put(out, extra, 2);
  if (size) put(out, e->size, 8);
  if (size) put(out, e->size, 8);
  if (offset) put(out, e->offset, 8);
}

calx_status *cx_io_zip_add(cx_io_zip *zip, const char *name, const void *data,
                           size_t size)
{
  cx_text full = { 0 }, header = { 0 };
  if (zip->prefix != NULL) cx_text_format(&full, "%s/", zip->prefix);
  cx_text_append(&full, name);
  zip_entry e = { .name = cx_text_str(&full),
                  .offset = cx_writer_size(zip->w),
                  .size = size,
                  .crc = cx_io_crc32(0, data, size) };
  put_local(&header, &e);
  put_central(&zip->central, &e);
  zip->entries++;
  zip->names = cx_io_crc32(zip->names, name, strlen(name));
  zip->checks = cx_io_crc32(zip->checks, &e.crc, sizeof e.crc);
  calx_status *status = cx_text_failed(&full) || cx_text_failed(&header)
                            ? cx_out_of_memory()
                            : cx_writer_put(zip->w, header.data, header.size);
  cx_text_free(&full);
  cx_text_free(&header);
  if (status == NULL) status = cx_writer_put(zip->w, data, size);
  return status;
}

static void put_end(cx_text *out, uint64_t entries, uint64_t offset,
                    uint64_t size)
{
  if (entries >= 0xffff || offset >= LIMIT || size >= LIMIT) {
    uint64_t end = offset + size;
    put(out, 0x06064b50, 4);
    put(out, 44, 8);
    put(out, ZIP64, 2);
    put(out, ZIP64, 2);
    put(out, 0, 8);  // disks
    put(out, entries, 8);
    put(out, entries, 8);
    put(out, size, 8);
    put(out, offset, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, end, 8);
    put(out, 1, 4);
  }
  uint64_t n = entries < 0xffff ? entries : 0xffff;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, n, 2);
  put(out, n, 2);
  put(out, at_most(size), 4);
  put(out, at_most(offset), 4);
  put(out, 0, 2);
}

calx_status *cx_io_zip_end(cx_io_zip *zip, calx_status *status)
{
  if (status == NULL) {
    put_end(&zip->central, zip->entries, cx_writer_size(zip->w),
            zip->central.size);
    status = cx_text_failed(&zip->central)
                 ? cx_out_of_memory()
                 : cx_writer_put(zip->w, zip->central.data, zip->central.size);
  }
  cx_text_free(&zip->central);
  return status;
}
