// data/images: what one-channel u8 images become as network input.
#ifndef CX_DATA_IMAGES_H
#define CX_DATA_IMAGES_H

#include <stddef.h>
#include <stdint.h>

// The mean and standard deviation of MNIST's training pixels, in units of 255:
// the constants of PyTorch's MNIST example.
#define CX_DATA_MNIST_MEAN 0.1307f
#define CX_DATA_MNIST_STD 0.3081f

// (x/255 - mean)/std for each of the 256 values of x.
typedef struct cx_data_levels {
  float of[256];
} cx_data_levels;

void cx_data_levels_init(cx_data_levels *levels, float mean, float std);
void cx_data_levels_apply(const cx_data_levels *levels, const uint8_t *pixels,
                          size_t count, float *out);

#endif
