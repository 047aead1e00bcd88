// world/origin: see origin.h.
#include "world/origin.h"
#include "base/env.h"

#include <string.h>

#include "world/endpoint.h"

static cx_hash hash_of(const char *text)
{
  return text != NULL ? cx_hash_bytes(text, strlen(text), 0) : (cx_hash){ 0 };
}

// Where hosts are started one by one, only CALX_JOB is the same on all.
cx_hash cx_world_origin_job(cx_world_launcher launcher)
{
  const char *given = cx_env_text("CALX_JOB");
  if (given != NULL) return hash_of(given);
  switch (launcher) {
    case CX_WORLD_LAUNCHER_TORCHRUN:
      return hash_of(cx_env_text("TORCHELASTIC_RUN_ID"));
    case CX_WORLD_LAUNCHER_OPENMPI:
      return hash_of(cx_env_text("OMPI_MCA_ess_base_jobid"));
    case CX_WORLD_LAUNCHER_PMIX: return hash_of(cx_env_text("PMIX_NAMESPACE"));
    default: return (cx_hash){ 0 };
  }
}

cx_hash cx_world_origin_launch(const char *text)
{
  return hash_of(text);
}

cx_store_origin cx_world_origin_read(const cx_world_info *info)
{
  const bool ours = info->launcher == CX_WORLD_LAUNCHER_CALX;
  return (cx_store_origin){
    .host = ours ? info->host : -1,
    .launch = hash_of(ours ? cx_env_text("CALX_LAUNCH") : NULL),
    .job = cx_world_origin_job(info->launcher),
  };
}
