// kernel/conv_lanes: tensors with 16 lanes, for the convolutions that use
// them.
#ifndef CPU_KERNEL_CONV_LANES_H
#define CPU_KERNEL_CONV_LANES_H

#include "kernel/conv.h"
#include "kernel/lanes.h"

// A tensor seen as channels of images; `count` of them are spread over lanes,
// 16 in a block. Strides in elements.
typedef struct cpu_kernel_lanes_images {
  int64_t count;
  int64_t channels, rows, columns;
  int64_t block, lane, channel, row, column;
  int64_t first;  // the offset of the first element
} cpu_kernel_lanes_images;

// The tensor with these strides, as `count` images of `channels` channels; its
// dimension `lane` (0 or 1) counts the images, the other one the channels. Of
// three spatial dimensions the first one counts blocks of 16 images.
cpu_kernel_lanes_images cpu_kernel_lanes_images_of(
    const cpu_kernel_conv_desc *d, const int64_t *strides, int lane,
    int64_t count, int64_t channels, const int64_t size[2]);
// Reverses the spatial dimensions that the description says.
void cpu_kernel_lanes_reverse(const cpu_kernel_conv_desc *d,
                              cpu_kernel_lanes_images *io);
// Where a tensor lies among lanes: (rows, width, channels, 16), with columns
// from `low` on that are `hole` apart. There may be more channels than the
// tensor has.
typedef struct cpu_kernel_lanes_layout {
  int64_t width, low, hole, channels;
} cpu_kernel_lanes_layout;

// Whether each block of the tensor has this layout already.
bool cpu_kernel_lanes_are_there(const cpu_kernel_lanes_images *m,
                                const cpu_kernel_lanes_layout *layout);
// Copies a block of the tensor to this layout, with zeros where it has no
// element, and in lanes without an image.
void cpu_kernel_lanes_pack(const cpu_kernel_lanes_images *m, const float *from,
                           int64_t block, const cpu_kernel_lanes_layout *layout,
                           float *to);
// Copies (rows, columns, channels, 16) to a block of the tensor.
void cpu_kernel_lanes_unpack(const cpu_kernel_lanes_images *m,
                             const float *from, int64_t block, float *to);

// Whether it is of f32 and of moderate sizes.
bool cpu_kernel_lanes_are_near(const cpu_kernel_conv_desc *d);
// Sets all of l but channels and outs.
void cpu_kernel_lanes_of(const cpu_kernel_conv_desc *d, cpu_kernel_lanes *l);
// The layout of the input, and of a tensor without padding.
cpu_kernel_lanes_layout cpu_kernel_lanes_input(const cpu_kernel_lanes *l);
cpu_kernel_lanes_layout cpu_kernel_lanes_dense(
    const cpu_kernel_lanes_images *m);

#endif
