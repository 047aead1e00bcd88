// api/refused: what this engine does not do. Each answers with its own name, so
// that whoever meets one knows what was asked for.
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

REFUSED(PJRT_Executable_OptimizedProgram)
REFUSED(PJRT_CopyToDeviceStream_Destroy)
REFUSED(PJRT_CopyToDeviceStream_AddChunk)
REFUSED(PJRT_CopyToDeviceStream_TotalBytes)
REFUSED(PJRT_CopyToDeviceStream_GranuleSize)
REFUSED(PJRT_CopyToDeviceStream_CurrentBytes)
REFUSED(PJRT_Client_CreateAliasBuffer)
REFUSED(PJRT_Client_FulfillAliasBuffer)
REFUSED(PJRT_Buffer_CopyRawToHostFuture)
REFUSED(PJRT_Buffer_DonateWithControlDependency)
REFUSED(PJRT_Device_PoisonExecution)
REFUSED(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace)
