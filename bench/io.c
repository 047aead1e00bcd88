// bench/io: MB/s at which values are saved and loaded.
//
//   io [--mb=256] [--tensors=16] [--rounds=5] [--folder=N: 0 /tmp, 1 /dev/shm]
//
// Host tensors of equal size, once in each format. A save ends when the file is
// on the disk (fsync); a load, when every byte was read once by the program.
// bench/peers/io.py does the same with torch.save and safetensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calx/io.h"
#include "measure.h"

static calx_value *make(int tensors, int64_t elements)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  float *data = malloc((size_t)elements * sizeof *data);
  if (data == NULL) exit(1);
  for (int64_t i = 0; i < elements; i++) data[i] = (float)i;
  calx_scope *s = calx_scope_begin();
  for (int i = 0; i < tensors; i++) {
    char key[32];
    snprintf(key, sizeof key, "layer%d.weight", i);
    calx_tensor *t = calx_host_tensor(data, CALX_F32, CALX_SHAPE(elements));
    bench_need(calx_value_set(d, key, calx_value_tensor(t)));
  }
  bench_need(calx_scope_end(s));
  free(data);
  return d;
}

// Reads all of it, so that a map's pages are there.
static double sum(const calx_value *d)
{
  uint64_t total = 0;
  for (size_t i = 0; i < calx_value_count(d); i++) {
    const calx_tensor *t = calx_value_as_tensor(calx_value_item(d, i));
    const uint32_t *data = calx_host_data(t);
    const int64_t n = calx_tensor_numel(t);
    for (int64_t k = 0; k < n; k++) total += data[k];
  }
  return (double)total;
}

static void measure(const calx_value *d, const char *path, double mb,
                    int rounds)
{
  bench_series saves = { .count = 0 }, loads = { .count = 0 };
  double checked = 0;
  for (int i = 0; i < rounds; i++) {
    int64_t begin = bench_now();
    bench_need(calx_save(d, path));
    int64_t saved = bench_now();
    calx_value *read;
    bench_need(calx_load(path, &read));
    checked += sum(read);
    int64_t loaded = bench_now();
    calx_value_free(read);
    bench_add(&saves, mb * 1e9 / (double)(saved - begin));
    bench_add(&loads, mb * 1e9 / (double)(loaded - saved));
  }
  printf("%-28s save %6.0f MB/s   load %6.0f MB/s   (sum %g)\n", path,
         bench_median(&saves), bench_median(&loads), checked / rounds);
  remove(path);
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "mb", "tensors", "rounds", "folder",
                                       NULL };
  bench_check_options(argc, argv, names,
                      "io [--mb=256] [--tensors=16] [--rounds=5] [--folder=0]");
  double mb = bench_option(argc, argv, "mb", 256, 1, 1e6);
  int tensors = (int)bench_count(argc, argv, "tensors", 16, 1, 100000);
  int rounds = (int)bench_count(argc, argv, "rounds", 5, 1, 100000);
  bool memory = bench_count(argc, argv, "folder", 0, 0, 1) != 0;
  int64_t elements = (int64_t)(mb * 1e6 / tensors / sizeof(float));
  calx_value *d = make(tensors, elements);
  static const char *const endings[] = { "pt", "safetensors" };
  for (int i = 0; i < 2; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/calx_bench.%s",
             memory ? "/dev/shm" : "/tmp", endings[i]);
    measure(d, path, mb, rounds);
  }
  calx_value_free(d);
  return 0;
}
