// fuzz/image: any bytes as a JPEG or PNG file, in every mode.
//
// What is accepted has the sizes that it says, within the limit, and all of its
// elements are readable. What is refused says why and leaves nothing. Built
// with -fsanitize=fuzzer this is libFuzzer's entry; fuzz/idx_main.c runs it
// over a corpus without one.
#include <stdlib.h>

#include "base/alloc.h"
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 1 << 14 };

static void check(int right)
{
  if (!right) abort();
}

static void decode(const uint8_t *data, size_t size, calx_image_mode mode)
{
  long blocks = cx_alloc_live();
  const cx_image_source source = { "input", data, size, mode, MOST_PIXELS };
  cx_image image;
  calx_status *status = cx_image_decode(&source, &image);
  if (status == NULL) {
    check(image.height > 0 && image.width > 0);
    check(image.height * image.width <= MOST_PIXELS);
    check(mode == CALX_IMAGE_UNCHANGED || image.channels == (int64_t)mode);
    volatile uint8_t last = 0;
    const uint8_t *pixels = image.data;
    for (size_t i = 0; i < cx_image_count(&image); i++) last = pixels[i];
    (void)last;
  } else {
    calx_code code = calx_status_code(status);
    check(image.data == NULL);
    check(code == CALX_DATA_LOSS || code == CALX_RESOURCE_EXHAUSTED ||
          code == CALX_INVALID_ARGUMENT || code == CALX_UNIMPLEMENTED);
    check(calx_status_message(status)[0] != '\0');
  }
  cx_image_free(&image);
  calx_status_free(status);
  check(cx_alloc_live() == blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const calx_image_mode modes[] = { CALX_IMAGE_UNCHANGED,
                                           CALX_IMAGE_GRAY_ALPHA,
                                           CALX_IMAGE_RGB };
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    decode(data, size, modes[i]);
  }
  return 0;
}
