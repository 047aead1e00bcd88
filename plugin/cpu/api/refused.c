// api/refused: the functions that this engine does not implement. Each returns
// an error with its own name.
#include "api/api.h"

static PJRT_Error *refuse(const char *name)
{
  return cpu_api_error(cx_error(
      CALX_UNIMPLEMENTED, "%s is not implemented by " CPU_API_PLATFORM, name));
}

#define REFUSED(name)                           \
  PJRT_Error *cpu_api_##name(name##_Args *args) \
  {                                             \
    (void)args;                                 \
    return refuse(#name);                       \
  }

// A compiled program is a list of steps; the StableHLO that it was made of is
// freed after the compilation.
REFUSED(PJRT_Executable_OptimizedProgram)
// Streams exist only for the callbacks of recv operations, which Execute
// refuses.
REFUSED(PJRT_CopyToDeviceStream_Destroy)
REFUSED(PJRT_CopyToDeviceStream_AddChunk)
REFUSED(PJRT_CopyToDeviceStream_TotalBytes)
REFUSED(PJRT_CopyToDeviceStream_GranuleSize)
REFUSED(PJRT_CopyToDeviceStream_CurrentBytes)
// The answer is a serialised xla.ShapeProto, which this engine does not have.
REFUSED(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace)
