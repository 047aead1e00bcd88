// abi/pjrt_layouts: the extension by which a plugin tells how the elements of a
// tensor lie in memory, as XLA writes it: "{1,0}", fastest dimension first.
//
// Extensions are outside the promise of the version number: base.struct_size
// tells which functions are there.
#ifndef CX_ABI_PJRT_LAYOUTS_H
#define CX_ABI_PJRT_LAYOUTS_H

#include "abi/pjrt_types.h"

typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;

CX_PJRT_OBJECT_ARGS(PJRT_Layouts_MemoryLayout_Destroy,
                    PJRT_Layouts_MemoryLayout, layout);

typedef struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  CX_PJRT_HEAD;
  PJRT_Layouts_MemoryLayout *layout;
  const char *serialized_bytes;                      // out
  size_t serialized_bytes_size;                      // out
  PJRT_Layouts_SerializedLayout *serialized_layout;  // out
  void (*serialized_layout_deleter)(
      PJRT_Layouts_SerializedLayout *layout);  // out
} PJRT_Layouts_MemoryLayout_Serialize_Args;
CX_PJRT_SIZE(PJRT_Layouts_MemoryLayout_Serialize_Args,
             serialized_layout_deleter, 56);

typedef struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  CX_PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout *layout;  // out
} PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args;
CX_PJRT_SIZE(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout, 56);

CX_PJRT_VALUE_ARGS(PJRT_Layouts_PJRT_Buffer_MemoryLayout, PJRT_Buffer, buffer,
                   PJRT_Layouts_MemoryLayout *, layout);

typedef struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  CX_PJRT_HEAD;
  PJRT_TopologyDescription *topology_description;
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout *layout;  // out
} PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args;
CX_PJRT_SIZE(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, layout, 56);

// The lists belong to the executable; each layout in them too.
typedef struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;                   // out
  PJRT_Layouts_MemoryLayout **layouts;  // out
} PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args;
CX_PJRT_SIZE(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts, 40);

typedef struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_parameters;                // out
  PJRT_Layouts_MemoryLayout **layouts;  // out
} PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args;
CX_PJRT_SIZE(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, layouts,
             40);

#define CX_PJRT_LAYOUTS_FUNCTIONS(F)               \
  F(PJRT_Layouts_MemoryLayout_Destroy)             \
  F(PJRT_Layouts_MemoryLayout_Serialize)           \
  F(PJRT_Layouts_PJRT_Client_GetDefaultLayout)     \
  F(PJRT_Layouts_PJRT_Buffer_MemoryLayout)         \
  F(PJRT_Layouts_PJRT_Topology_GetDefaultLayout)   \
  F(PJRT_Layouts_PJRT_Executable_GetOutputLayouts) \
  F(PJRT_Layouts_PJRT_Executable_GetParameterLayouts)

#define CX_PJRT_LAYOUTS_SLOT(name) PJRT_Error *(*name)(name##_Args * args);
typedef struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  CX_PJRT_LAYOUTS_FUNCTIONS(CX_PJRT_LAYOUTS_SLOT)
} PJRT_Layouts_Extension;
CX_PJRT_SIZE(PJRT_Layouts_Extension,
             PJRT_Layouts_PJRT_Executable_GetParameterLayouts, 80);

#endif
