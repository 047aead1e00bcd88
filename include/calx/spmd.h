/**
 * calx/spmd.h: one program on all devices, with tensors that are split among
 * them (torch_xla.distributed.spmd).
 *
 * One process and one thread drive all devices of the plugin. The program is
 * written as for one device, with the sizes of the whole: after calx_use_spmd()
 * there is one device, "xla:0", that stands for all. Tensors that are marked
 * are split by the axes of a mesh, the compiler splits the rest to fit and
 * inserts the communication, and results stay split. Reading a tensor gathers
 * it.
 *
 *   CALX_TRY(calx_use_spmd());
 *   calx_mesh *mesh =
 *       calx_mesh_new(CALX_SHAPE(2, 4), CALX_AXES("data", "model"));
 *   calx_mark_sharding(weight, mesh, CALX_AXES("model", NULL));
 *   calx_mark_sharding(batch.data, mesh, CALX_AXES("data", NULL));
 */
#ifndef CALX_SPMD_H
#define CALX_SPMD_H

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One program on all devices from here on (xr.use_spmd). Comes before anything
 * else uses a device, and holds until calx_shutdown(). A second call does
 * nothing.
 * @errors  FAILED_PRECONDITION a device was used before  UNIMPLEMENTED the
 *          process is one of several
 * @source  torch_xla.runtime.use_spmd
 */
CALX_API calx_status *calx_use_spmd(void) CALX_MUST_USE;
/** Whether calx_use_spmd() holds. @threads thread-safe */
CALX_API bool calx_is_spmd(void);
/** The devices that calx_device_count() counts as one; without calx_use_spmd()
 *  the same as that. 0 when the plugin can't be opened.
 *  @source torch_xla.runtime.global_runtime_device_count */
CALX_API int calx_spmd_device_count(void);

/** Names of mesh axes. What each stands for is said where the list is taken. */
typedef struct CALX_OPTIONS calx_axes {
  CALX_NO_NUMBER
  CALX_NAMED size_t count;
  CALX_NAMED const char *names[CALX_MAX_RANK];
} calx_axes;

/** A list of names: CALX_AXES("data", NULL). At most CALX_MAX_RANK. */
#ifndef __cplusplus
#define CALX_AXES(...)                                                        \
  ((calx_axes){ .count =                                                      \
                    CALX_FITS_(sizeof((const char *const[]){ __VA_ARGS__ }) / \
                               sizeof(const char *)),                         \
                .names = { __VA_ARGS__ } })
#else
#define CALX_AXES(...) calx_axes_list_(__VA_ARGS__)
#endif

/** The devices as a grid with named axes. Freed with calx_mesh_free(); what was
 *  marked with it stays. @threads thread-safe */
typedef struct calx_mesh calx_mesh;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_mesh_options {
  CALX_NAMED size_t size;
  /* the device at each place of the grid, row by row, as many as the grid has
   * places; copied. NULL = 0, 1, … */
  CALX_NAMED const int64_t *device_ids;
} calx_mesh_options;

/**
 * A mesh of all devices. NULL where it is none; the scope has the error then.
 * @param mesh_shape  its sizes; their product is the number of devices
 * @param axis_names  one for each size, all different; letters, digits and _
 * @errors  FAILED_PRECONDITION calx_use_spmd() was not called
 *          INVALID_ARGUMENT another number of devices, names or ids that are
 *          missing or come twice; through the scope
 * @source  torch_xla.distributed.spmd.Mesh
 */
CALX_API calx_mesh *calx_mesh_new_with(calx_dims mesh_shape,
                                       calx_axes axis_names,
                                       const calx_mesh_options *options);
/** NULL is accepted. */
CALX_API void calx_mesh_free(calx_mesh *mesh);

/**
 * Splits a tensor among the devices: each has an equal block, and devices that
 * differ only along other axes have the same one. A computed value is split at
 * once, through the host; of a pending one the program splits the result. Each
 * later value that is assigned to the tensor is split so too: a parameter stays
 * as it is marked. What is computed from it is split as the compiler sees fit;
 * mark an intermediate result to decide that.
 * @param tensor          @shape any
 * @param partition_spec  for each dimension the axis that splits it, several as
 *                        "data,model", the outermost first; NULL: none
 * @return tensor
 * @errors  FAILED_PRECONDITION calx_use_spmd() was not called, or the tensor is
 *          marked in another way: calx_clear_sharding() first
 *          INVALID_ARGUMENT no such axis, an axis twice, another number of
 *          dimensions, a dimension that the devices do not divide; through the
 *          scope. Marks of two meshes in one program are an error of its sync
 * @grad    tensor, split alike
 * @source  torch_xla.distributed.spmd.mark_sharding, which pads a dimension
 * that does not divide
 */
CALX_API calx_tensor *calx_mark_sharding(calx_tensor *tensor,
                                         const calx_mesh *mesh,
                                         calx_axes partition_spec);
/**
 * Takes the mark away: each device gets the whole value, and later values are
 * split as the compiler sees fit.
 * @shape tensor any
 * @return tensor
 * @errors  those of reading it, through the scope
 * @source  torch_xla.distributed.spmd.clear_sharding
 */
CALX_API calx_tensor *calx_clear_sharding(calx_tensor *tensor);

/**
 * How the tensor is split, as XLA writes it: "{devices=[2,1]0,1}" is two blocks
 * of rows, "{replicated}" the whole on each device. The caller frees it with
 * calx_string_free(). NULL without memory, without calx_use_spmd(), and for a
 * pending tensor that is not marked.
 * @shape   tensor any
 * @errors  none
 * @source  torch_xla._XLAC._get_xla_sharding_spec
 */
CALX_API char *calx_sharding_spec(const calx_tensor *tensor);
/** The sizes of what one device has of the tensor. @shape tensor any
 *  @errors none */
CALX_API calx_dims calx_shard_shape(const calx_tensor *tensor);

#ifdef __cplusplus
}
template <class... Name>
constexpr calx_axes calx_axes_list_(Name... names)
{
  static_assert(sizeof...(names) <= CALX_MAX_RANK,
                "calx_axes holds CALX_MAX_RANK names");
  return { sizeof...(names), { names... } };
}
#else
#ifndef CALX_NO_SITES
#define calx_use_spmd() (calx_at_(CALX_HERE), calx_use_spmd())
#define calx_spmd_device_count() (calx_at_(CALX_HERE), calx_spmd_device_count())
#define calx_mark_sharding(tensor, mesh, ...) \
  (calx_at_(CALX_HERE), calx_mark_sharding(tensor, mesh, __VA_ARGS__))
#define calx_clear_sharding(tensor) \
  (calx_at_(CALX_HERE), calx_clear_sharding(tensor))
#endif
#define calx_mesh_new(mesh_shape, ...) \
  CALX_MESH_NEW_(mesh_shape, __VA_ARGS__, .size = sizeof(calx_mesh_options))
#define CALX_MESH_NEW_(mesh_shape, axis_names, ...) \
  (calx_at_(CALX_HERE),                             \
   calx_mesh_new_with(mesh_shape, axis_names,       \
                      &(calx_mesh_options){ __VA_ARGS__ }))
#endif
#endif
