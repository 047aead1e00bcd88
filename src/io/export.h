// io/export: the files of an exported model.
#ifndef CX_IO_EXPORT_H
#define CX_IO_EXPORT_H

#include "calx/export.h"
#include "lazy/lazy.h"

// manifest.json, version 1:
//   {"format": "calx-export", "version": 1,
//    "program": the hash of model.mlir's bytes, which the metadata of
//               weights.safetensors has too,
//    "inputs": [{"dtype": "f32", "shape": [1, 28, 28]}, …], "outputs": the
//    same, "arguments": what main takes in turn: {"input": 0} or {"weight":
//    "fc.bias"};
//                 an input that the program does not use is none}
#define CX_IO_EXPORT_FORMAT "calx-export"
#define CX_IO_EXPORT_PROGRAM "model.mlir"
#define CX_IO_EXPORT_WEIGHTS "weights.safetensors"
#define CX_IO_EXPORT_MANIFEST "manifest.json"
enum { CX_IO_EXPORT_VERSION = 1 };

// One argument of the program: an input, or a weight.
typedef struct cx_io_argument {
  calx_tensor *weight;  // owned; NULL: an input
  size_t input;
} cx_io_argument;

struct calx_exported {
  calx_device *device;
  cx_pjrt_executable *executable;
  cx_io_argument *arguments;
  size_t n_arguments;
  cx_graph_shape *in, *out;
  size_t n_in, n_out;
};

#endif
