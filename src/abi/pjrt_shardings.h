// abi/pjrt_shardings: the extension that tells how parameters and results of an
// executable are split, as serialised xla.OpSharding.
#ifndef CX_ABI_PJRT_SHARDINGS_H
#define CX_ABI_PJRT_SHARDINGS_H

#include "abi/pjrt.h"

typedef struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_parameters;         // out
  const char *const *shardings;  // out; NULL: not partitioned
  const size_t *sharding_sizes;  // out, bytes
} PJRT_Shardings_PJRT_Executable_ParameterShardings_Args;
CX_PJRT_SIZE(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args,
             sharding_sizes, 48);

typedef struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  CX_PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;            // out
  const char *const *shardings;  // out; NULL: not partitioned
  const size_t *sharding_sizes;  // out, bytes
} PJRT_Shardings_PJRT_Executable_OutputShardings_Args;
CX_PJRT_SIZE(PJRT_Shardings_PJRT_Executable_OutputShardings_Args,
             sharding_sizes, 48);

typedef struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*PJRT_Shardings_PJRT_Executable_ParameterShardings)(
      PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args);
  PJRT_Error *(*PJRT_Shardings_PJRT_Executable_OutputShardings)(
      PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args);
} PJRT_Shardings_Extension;
CX_PJRT_SIZE(PJRT_Shardings_Extension,
             PJRT_Shardings_PJRT_Executable_OutputShardings, 40);

#endif
