// files: PNG files written by hand and JPEG files by libjpeg, in memory.
#ifndef CX_TESTS_IMAGE_FILES_H
#define CX_TESTS_IMAGE_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include <jpeglib.h>

typedef struct made_file {
  unsigned char *data;  // free()
  unsigned long size;
} made_file;

static inline void made_bytes(made_file *f, const void *data, size_t size)
{
  f->data = realloc(f->data, f->size + size);
  memcpy(f->data + f->size, data, size);
  f->size += size;
}

static inline void made_u32(made_file *f, uint32_t n)
{
  const unsigned char b[] = { (unsigned char)(n >> 24),
                              (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                              (unsigned char)n };
  made_bytes(f, b, 4);
}

static inline void made_chunk(made_file *f, const char *type, const void *data,
                              size_t size)
{
  made_u32(f, (uint32_t)size);
  size_t begin = f->size;
  made_bytes(f, type, 4);
  if (size > 0) made_bytes(f, data, size);
  made_u32(f, (uint32_t)crc32(0, f->data + begin, (uInt)(f->size - begin)));
}

typedef struct made_png {
  uint32_t width, height;
  unsigned char depth, colour;  // of PNG
  const void *palette, *transparent;
  size_t palette_size, transparent_size;
  const unsigned char *rows;  // height rows of row_bytes
  size_t row_bytes;
} made_png;

static inline made_file make_png(const made_png *p)
{
  made_file f = { 0 }, head = { 0 };
  made_bytes(&f, "\x89PNG\r\n\x1a\n", 8);
  made_u32(&head, p->width);
  made_u32(&head, p->height);
  const unsigned char rest[] = { p->depth, p->colour, 0, 0, 0 };
  made_bytes(&head, rest, 5);
  made_chunk(&f, "IHDR", head.data, head.size);
  free(head.data);
  if (p->palette) made_chunk(&f, "PLTE", p->palette, p->palette_size);
  if (p->transparent) {
    made_chunk(&f, "tRNS", p->transparent, p->transparent_size);
  }
  size_t raw_size = (p->row_bytes + 1) * p->height;
  unsigned char *raw = calloc(raw_size + 1, 1);
  for (size_t y = 0; p->rows != NULL && y < p->height; y++) {
    memcpy(raw + y * (p->row_bytes + 1) + 1, p->rows + y * p->row_bytes,
           p->row_bytes);  // behind the filter's number, 0
  }
  uLongf packed_size = compressBound(raw_size);
  unsigned char *packed = malloc(packed_size);
  compress(packed, &packed_size, raw, raw_size);
  made_chunk(&f, "IDAT", packed, packed_size);
  made_chunk(&f, "IEND", NULL, 0);
  free(packed);
  free(raw);
  return f;
}

// Of `components` interleaved values a pixel: 1 grey, 3 RGB, 4 CMYK as Adobe
// stores it.
static inline made_file make_jpeg(int width, int height, int components,
                                  const unsigned char *pixels, int quality,
                                  int progressive)
{
  made_file f = { 0 };
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr errors;
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, &f.data, &f.size);
  c.image_width = (JDIMENSION)width;
  c.image_height = (JDIMENSION)height;
  c.input_components = components;
  c.in_color_space = components == 1   ? JCS_GRAYSCALE
                     : components == 3 ? JCS_RGB
                                       : JCS_CMYK;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, quality, TRUE);
  c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 1;
  if (progressive) jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    JSAMPROW row =
        (JSAMPROW)(uintptr_t)(pixels + (size_t)c.next_scanline *
                                           (size_t)(width * components));
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  return f;
}

#endif
