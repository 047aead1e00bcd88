// api/stubs: what this engine does not do. Each answers with its own name, so
// that whoever meets one knows what was asked for.
#include "api/api.h"

static PJRT_Error *unimplemented(const char *name)
{
  return cx_api_error(cx_error(
      CALX_UNIMPLEMENTED, "%s is not implemented by " CX_API_PLATFORM, name));
}

#define STUB(name)                             \
  PJRT_Error *cx_api_##name(name##_Args *args) \
  {                                            \
    (void)args;                                \
    return unimplemented(#name);               \
  }

STUB(PJRT_Executable_OptimizedProgram)
STUB(PJRT_CopyToDeviceStream_Destroy)
STUB(PJRT_CopyToDeviceStream_AddChunk)
STUB(PJRT_CopyToDeviceStream_TotalBytes)
STUB(PJRT_CopyToDeviceStream_GranuleSize)
STUB(PJRT_CopyToDeviceStream_CurrentBytes)
STUB(PJRT_Client_CreateAliasBuffer)
STUB(PJRT_Client_FulfillAliasBuffer)
STUB(PJRT_Buffer_CopyRawToHostFuture)
STUB(PJRT_Buffer_DonateWithControlDependency)
STUB(PJRT_Device_PoisonExecution)
STUB(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace)
