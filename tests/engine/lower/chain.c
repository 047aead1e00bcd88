#include "chain.h"

#include <stdbool.h>
#include <stdio.h>

#define M "tensor<128x128xf32>"
#define H "tensor<256x128xf32>"

static void put_groups(cx_text *out, uint32_t n_devices)
{
  for (uint32_t i = 0; i < n_devices; i++) {
    cx_text_format(out, "%s%u", i == 0 ? "[[" : ", ", i);
  }
  cx_text_format(out, "]]> : tensor<1x%uxi64>", n_devices);
}

static void put_collective(cx_text *out, const char *op, const char *to,
                           const char *from, const char *attrs, bool sums,
                           const char *types, uint32_t n_devices)
{
  cx_text_format(out, "%s = \"stablehlo.%s\"(%s) <{%sreplica_groups = dense<",
                 to, op, from, attrs);
  put_groups(out, n_devices);
  cx_text_append(out, "}>");
  if (sums) {
    cx_text_append(out,
                   " ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                   "%z = stablehlo.add %x, %y : tensor<f32>\n"
                   "stablehlo.return %z : tensor<f32> })");
  }
  cx_text_format(out, " : %s\n", types);
}

void chain_all_reduce(cx_text *out, const char *to, const char *from,
                      const char *type, uint32_t n_devices)
{
  char types[160];
  snprintf(types, sizeof types, "(%s) -> %s", type, type);
  put_collective(out, "all_reduce", to, from, "", true, types, n_devices);
}

static void put_products(cx_text *out, int layers)
{
  for (int i = 0; i < layers; i++) {
    cx_text_format(out,
                   "%%h%d = stablehlo.dot_general %%h%d, %%w%d, "
                   "contracting_dims = [1] x [0] : (" H ", " M ") -> " H "\n",
                   i + 1, i, i);
  }
  for (int i = layers; i-- > 0;) {
    const char *d = i == layers - 1 ? "h" : "d";
    cx_text_format(out,
                   "%%g%d = stablehlo.dot_general %%h%d, %%%s%d, "
                   "contracting_dims = [0] x [0] : (" H ", " H ") -> " M "\n",
                   i, i, d, i + 1);
    if (i == 0) break;
    cx_text_format(out,
                   "%%d%d = stablehlo.dot_general %%%s%d, %%w%d, "
                   "contracting_dims = [1] x [1] : (" H ", " M ") -> " H "\n",
                   i, d, i + 1, i);
  }
}

// Two gradients in one bucket, whose halves update two matrices.
static void put_updates(cx_text *out, int layers, uint32_t n_devices)
{
  for (int i = layers - 2; i >= 0; i -= 2) {
    char to[16], from[16];
    snprintf(to, sizeof to, "%%b%d", i);
    snprintf(from, sizeof from, "%%c%d", i);
    cx_text_format(out,
                   "%s = stablehlo.concatenate %%g%d, %%g%d, dim = 0 : (" M
                   ", " M ") -> " H "\n",
                   from, i + 1, i);
    chain_all_reduce(out, to, from, H, n_devices);
  }
  for (int i = 0; i < layers; i++) {
    const int at = i % 2 == 0 ? WIDTH : 0;
    cx_text_format(out,
                   "%%p%d = stablehlo.slice %%b%d [%d:%d, 0:%d] : (" H ") -> " M
                   "\n%%s%d = stablehlo.subtract %%w%d, %%p%d : " M "\n",
                   i, i / 2 * 2, at, at + WIDTH, WIDTH, i, i, i);
  }
}

static void put_shares(cx_text *out, int layers, uint32_t n_devices)
{
  char share[48], scatter[120], gather[120], to[16], from[16];
  snprintf(share, sizeof share, "tensor<%ux128xf32>", WIDTH / n_devices);
  snprintf(scatter, sizeof scatter, "(" M ") -> %s", share);
  snprintf(gather, sizeof gather, "(%s) -> " M, share);
  for (int i = layers; i-- > 0;) {
    snprintf(to, sizeof to, "%%b%d", i);
    snprintf(from, sizeof from, "%%g%d", i);
    put_collective(out, "reduce_scatter", to, from,
                   "scatter_dimension = 0 : i64, ", true, scatter, n_devices);
  }
  for (int i = layers; i-- > 0;) {
    snprintf(to, sizeof to, "%%s%d", i);
    snprintf(from, sizeof from, "%%b%d", i);
    put_collective(out, "all_gather", to, from, "all_gather_dim = 0 : i64, ",
                   false, gather, n_devices);
  }
}

static void put_each(cx_text *out, int layers, const char *format)
{
  for (int i = 0; i < layers; i++) {
    if (i > 0) cx_text_append(out, ", ");
    cx_text_format(out, format, i, i);
  }
}

void chain_text(cx_text *out, int layers, uint32_t n_devices, chain_end end)
{
  cx_text_append(out, "func.func @main(%h0: " H ", ");
  put_each(out, layers,
           end == CHAIN_UPDATES ? "%%w%d: " M " {tf.aliasing_output = %d : i32}"
                                : "%%w%d: " M);
  cx_text_append(out, ") -> (");
  put_each(out, layers, M);
  cx_text_append(out, ") {\n");
  put_products(out, layers);
  char to[16], from[16];
  switch (end) {
    case CHAIN_SUMS:
      for (int i = layers; i-- > 0;) {
        snprintf(to, sizeof to, "%%s%d", i);
        snprintf(from, sizeof from, "%%g%d", i);
        chain_all_reduce(out, to, from, M, n_devices);
      }
      break;
    case CHAIN_UPDATES: put_updates(out, layers, n_devices); break;
    case CHAIN_SHARES: put_shares(out, layers, n_devices); break;
  }
  cx_text_append(out, "return ");
  put_each(out, layers, "%%s%d");
  cx_text_append(out, " : ");
  put_each(out, layers, M);
  cx_text_append(out, " }");
}
