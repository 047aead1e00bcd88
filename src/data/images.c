// data/images: pixel values from a table of 256, which costs one load for each.
#include "data/images.h"

void cx_data_levels_init(cx_data_levels *levels, float mean, float std)
{
  for (int x = 0; x < 256; x++) {
    levels->of[x] = ((float)x / 255.0f - mean) / std;
  }
}

void cx_data_levels_apply(const cx_data_levels *levels, const uint8_t *pixels,
                          size_t count, float *out)
{
  for (size_t i = 0; i < count; i++) out[i] = levels->of[pixels[i]];
}
