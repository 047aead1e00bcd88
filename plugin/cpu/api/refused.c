// api/refused: the functions that have nothing to answer in this engine. Each
// returns UNIMPLEMENTED with its own name and the reason.
#include "api/api.h"

static PJRT_Error *refuse(const char *name, const char *reason)
{
  return cpu_api_error(cx_error(CALX_UNIMPLEMENTED, "%s: %s", name, reason));
}

#define REFUSED(name, reason)                   \
  PJRT_Error *cpu_api_##name(name##_Args *args) \
  {                                             \
    (void)args;                                 \
    return refuse(#name, reason);               \
  }

#define NO_STREAMS                                                         \
  "only callbacks of recv operations have streams, and execution refuses " \
  "these callbacks"

REFUSED(PJRT_CopyToDeviceStream_Destroy, NO_STREAMS)
REFUSED(PJRT_CopyToDeviceStream_AddChunk, NO_STREAMS)
REFUSED(PJRT_CopyToDeviceStream_TotalBytes, NO_STREAMS)
REFUSED(PJRT_CopyToDeviceStream_GranuleSize, NO_STREAMS)
REFUSED(PJRT_CopyToDeviceStream_CurrentBytes, NO_STREAMS)
REFUSED(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace,
        "the answer is a serialised xla.ShapeProto, which this engine does not "
        "have")
