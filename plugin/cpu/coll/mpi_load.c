// coll/mpi_load: see mpi_load.h. The shim is searched for as the compiler is,
// by kernel/library.h.
#include "coll/mpi_load.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kernel/library.h"

static bool is_set(const char *name)
{
  const char *text = getenv(name);
  return text != NULL && text[0] != '\0';
}

static calx_status *choose(const char **out)
{
  const char *asked = getenv("CALX_MPI");
  if (is_set("CALX_MPI")) {
    *out = asked;
    if (strcmp(asked, "mpich") == 0 || strcmp(asked, "openmpi") == 0) {
      return NULL;
    }
    return cx_invalid("CALX_MPI is '%s', mpich or openmpi is wanted", asked);
  }
  // Processes of Open MPI's launchers have none of MPICH's variables.
  const bool theirs = is_set("OMPI_COMM_WORLD_RANK") ||
                      is_set("PMIX_NAMESPACE") || is_set("PMIX_RANK");
  const bool pmi = is_set("PMI_FD") || is_set("PMI_PORT");
  *out = theirs && !pmi ? "openmpi" : "mpich";
  if (theirs || pmi) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "between hosts the CPU engine needs MPI, and does not know "
                  "MPI's ranks: none of PMI_FD, PMI_PORT, "
                  "OMPI_COMM_WORLD_RANK, PMIX_NAMESPACE and PMIX_RANK is set, "
                  "nor CALX_MPI, which names the implementation");
}

static void *open_shim(const char *flavour, cx_text *looked)
{
  cx_text file = { 0 }, path = { 0 };
  void *handle = NULL;
  cx_text_format(&file, "libcalx_mpi_%s.so", flavour);
  for (size_t i = 0;
       handle == NULL && cpu_kernel_library_path(i, cx_text_str(&file), &path);
       i++) {
    // MPI loads plugins that use its symbols.
    handle = cpu_kernel_library_open(&path, RTLD_GLOBAL, looked);
  }
  cx_text_free(&file);
  cx_text_free(&path);
  return handle;
}

calx_status *cpu_coll_mpi_load(const cpu_coll_mpi_api **out)
{
  const char *flavour = NULL;
  CALX_TRY(choose(&flavour));
  // UCX reads its settings when it is loaded. By default it handles SIGSEGV,
  // and SIGHUP for diagnostics, so that no rank would end with its terminal.
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_DEBUG_SIGNO", "0", 0);
  setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
  cpu_coll_mpi_choose_net();
  cx_text looked = { 0 };
  void *handle = open_shim(flavour, &looked);
  void *symbol = handle == NULL ? NULL : dlsym(handle, "cpu_coll_mpi_get_api");
  const cpu_coll_mpi_api *(*get)(void) = NULL;
  memcpy(&get, &symbol, sizeof symbol);
  calx_status *status = NULL;
  if (get == NULL) {
    status = cx_error(CALX_NOT_FOUND,
                      "between hosts the CPU engine needs MPI, and "
                      "libcalx_mpi_%s.so does not load: %s; it is built where "
                      "Debian's lib%s-dev is installed",
                      flavour, cx_text_str(&looked), flavour);
  } else if ((*out = get())->struct_size != sizeof(cpu_coll_mpi_api)) {
    status =
        cx_error(CALX_FAILED_PRECONDITION,
                 "libcalx_mpi_%s.so is of another version of calx", flavour);
  }
  cx_text_free(&looked);
  return status;
}
