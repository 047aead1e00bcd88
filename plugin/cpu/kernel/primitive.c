// kernel/primitive: see primitive.h.
#include "kernel/primitive.h"

dnnl_primitive_attr_t cpu_kernel_primitive_attr(const cpu_kernel_onednn *d)
{
  dnnl_primitive_attr_t attr = NULL;
  if (d->primitive_attr_create(&attr) != dnnl_success) return NULL;
  if (d->primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) ==
      dnnl_success) {
    return attr;
  }
  (void)d->primitive_attr_destroy(attr);
  return NULL;
}

const char *cpu_kernel_primitive_name(const cpu_kernel_onednn *d,
                                      dnnl_primitive_desc_t pd)
{
  const char *name = NULL;
  const dnnl_status_t s =
      d->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
  return s == dnnl_success && name != NULL ? name : "ref";
}

size_t cpu_kernel_primitive_scratch(const cpu_kernel_onednn *d,
                                    dnnl_primitive_desc_t pd)
{
  const dnnl_memory_desc_t *md =
      d->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  return md == NULL ? 0 : d->memory_desc_get_size(md);
}

calx_status *cpu_kernel_primitive_ready(const cpu_kernel_onednn *d,
                                        const char *name, cpu_threads *pool)
{
  const int threads = cpu_threads_size(pool);
  if (cpu_threads_inside() && threads > 1) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "the kernel %s was made for %d threads and is run inside "
                    "of a region, where there is one",
                    name, threads);
  }
  return d->pooled ? cpu_threads_start(pool) : NULL;
}

dnnl_status_t cpu_kernel_primitive_run(const cpu_kernel_onednn *d,
                                       const cpu_kernel_primitive *x,
                                       void *const at[], void *scratch)
{
  dnnl_exec_arg_t args[CPU_KERNEL_PRIMITIVE_ARGUMENTS + 1] = { { 0, NULL } };
  const dnnl_dims_t size = { (dnnl_dim_t)x->scratch };
  const int n = x->scratch == 0 ? x->n : x->n + 1;
  dnnl_memory_desc_t pad;
  (void)d->memory_desc_init_by_tag(&pad, 1, size, dnnl_u8, dnnl_a);
  dnnl_status_t status = dnnl_success;
  int made = 0;
  while (made < n && status == dnnl_success) {
    const bool own = made < x->n;
    args[made].arg = own ? x->names[made] : DNNL_ARG_SCRATCHPAD;
    status = d->memory_create(&args[made].memory, own ? x->md[made] : &pad,
                              d->engine, own ? at[made] : scratch);
    if (status == dnnl_success) made++;
  }
  if (status == dnnl_success) {
    status = d->primitive_execute(x->p, d->stream, n, args);
  }
  if (status == dnnl_success) status = d->stream_wait(d->stream);
  while (made > 0) (void)d->memory_destroy(args[--made].memory);
  return status;
}
