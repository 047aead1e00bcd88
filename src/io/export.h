// io/export: the files of an exported model.
#ifndef CX_IO_EXPORT_H
#define CX_IO_EXPORT_H

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

#endif
