// lapack/table: the targets. A new one is a row here, a routine, its name in
// inner.h, and a case of tests/engine/lapack.
#include "lapack/inner.h"

static bool square_fits_side(const cpu_lapack_desc *d)
{
  const int64_t *s = d->sizes;
  return s[CPU_LAPACK_A] ==
         (d->flags[0] == 'L' ? s[CPU_LAPACK_M] : s[CPU_LAPACK_N]);
}

static bool few_reflectors(const cpu_lapack_desc *d)
{
  const int64_t *s = d->sizes;
  return s[CPU_LAPACK_K] <= s[CPU_LAPACK_N] &&
         s[CPU_LAPACK_N] <= s[CPU_LAPACK_M];
}

static bool reflectors_fit_side(const cpu_lapack_desc *d)
{
  const int64_t *s = d->sizes;
  return s[CPU_LAPACK_A] ==
             (d->flags[0] != 0 ? s[CPU_LAPACK_M] : s[CPU_LAPACK_N]) &&
         s[CPU_LAPACK_K] <= s[CPU_LAPACK_A] &&
         s[CPU_LAPACK_K] <= s[CPU_LAPACK_B];
}

// All columns of U and rows of V^H, or min(m, n) of them. Without vectors they
// are not written.
static bool vectors_fit_mode(const cpu_lapack_desc *d)
{
  const int64_t m = d->sizes[CPU_LAPACK_M], n = d->sizes[CPU_LAPACK_N];
  const int64_t least = m < n ? m : n;
  return d->flags[0] == 'N' ||
         (d->sizes[CPU_LAPACK_U] == (d->flags[0] == 'A' ? m : least) &&
          d->sizes[CPU_LAPACK_V] == (d->flags[0] == 'A' ? n : least));
}

static bool rows_are_there(const cpu_lapack_desc *d)
{
  const int64_t n = d->sizes[CPU_LAPACK_N], low = d->flags[0];
  return low >= 1 && d->flags[1] <= n && (n == 0 || low <= d->flags[1]) &&
         (n != 0 || (low == 1 && d->flags[1] == 0));
}

#define UPLO     \
  {              \
    "uplo", "LU" \
  }

const cpu_lapack_target cpu_lapack_targets[] = {
  { .name = "lapack_?trsm_ffi",
    .symbol = "?trsm_",
    .types = "sdcz",
    .operands = "Taa Tmn",
    .results = "Tmn=1",
    .flags = { { "side", "LR" }, UPLO, { "trans_x", "NTC" }, { "diag", "NU" } },
    .check = square_fits_side,
    .run = cpu_lapack_trsm },
  { .name = "lapack_?getrf_ffi",
    .symbol = "?getrf_",
    .types = "sdcz",
    .operands = "Tmn",
    .results = "Tmn=0 Ip I",
    .run = cpu_lapack_getrf },
  { .name = "lapack_?potrf_ffi",
    .symbol = "?potrf_",
    .types = "sdcz",
    .operands = "Tnn",
    .results = "Tnn=0 I",
    .flags = { UPLO },
    .run = cpu_lapack_potrf },
  { .name = "lapack_?gtsv_ffi",
    .symbol = "?gtsv_",
    .types = "sdcz",
    .operands = "Tn Tn Tn Tnk",
    .results = "Tn=0 Tn=1 Tn=2 Tnk=3 I",
    .run = cpu_lapack_gtsv },
  { .name = "lapack_?geqrf_ffi",
    .symbol = "?geqrf_",
    .types = "sdcz",
    .operands = "Tmn",
    .results = "Tmn=0 Tp",
    .run = cpu_lapack_geqrf },
  { .name = "lapack_?geqp3_ffi",
    .symbol = "?geqp3_",
    .types = "sdcz",
    .operands = "Tmn In",
    .results = "Tmn=0 In=1 Tp",
    .run = cpu_lapack_geqp3 },
  { .name = "lapack_?orgqr_ffi",
    .symbol = "?orgqr_",
    .types = "sd",
    .operands = "Tmn Tk",
    .results = "Tmn=0",
    .check = few_reflectors,
    .run = cpu_lapack_orgqr },
  { .name = "lapack_?ungqr_ffi",
    .symbol = "?ungqr_",
    .types = "cz",
    .operands = "Tmn Tk",
    .results = "Tmn=0",
    .check = few_reflectors,
    .run = cpu_lapack_orgqr },
  { .name = "lapack_?ormqr_ffi",
    .symbol = "?ormqr_",
    .types = "sd",
    .operands = "Tab Tk Tmn",
    .results = "Tmn=2",
    .flags = { { "left", "" }, { "transpose", "" } },
    .check = reflectors_fit_side,
    .run = cpu_lapack_ormqr },
  { .name = "lapack_?unmqr_ffi",
    .symbol = "?unmqr_",
    .types = "cz",
    .operands = "Tab Tk Tmn",
    .results = "Tmn=2",
    .flags = { { "left", "" }, { "transpose", "" } },
    .check = reflectors_fit_side,
    .run = cpu_lapack_ormqr },
  { .name = "lapack_?syevd_ffi",
    .symbol = "?syevd_",
    .types = "sd",
    .operands = "Tnn",
    .results = "Tnn=0 Rn I",
    .flags = { { "mode", "NV" }, UPLO },
    .run = cpu_lapack_syevd },
  { .name = "lapack_?heevd_ffi",
    .symbol = "?heevd_",
    .types = "cz",
    .operands = "Tnn",
    .results = "Tnn=0 Rn I",
    .flags = { { "mode", "NV" }, UPLO },
    .run = cpu_lapack_syevd },
  { .name = "lapack_?sytrd_ffi",
    .symbol = "?sytrd_",
    .types = "sd",
    .operands = "Tnn",
    .results = "Tnn=0 Rn Rq Tq I",
    .flags = { UPLO },
    .run = cpu_lapack_sytrd },
  { .name = "lapack_?hetrd_ffi",
    .symbol = "?hetrd_",
    .types = "cz",
    .operands = "Tnn",
    .results = "Tnn=0 Rn Rq Tq I",
    .flags = { UPLO },
    .run = cpu_lapack_sytrd },
  { .name = "lapack_?gesdd_ffi",
    .symbol = "?gesdd_",
    .types = "sdcz",
    .operands = "Tmn",
    .results = "Tmn=0 Rp Tmu Tvn I",
    .flags = { { "mode", "ASN" } },
    .check = vectors_fit_mode,
    .run = cpu_lapack_gesdd },
  { .name = "lapack_?gesvd_ffi",
    .symbol = "?gesvd_",
    .types = "sdcz",
    .operands = "Tmn",
    .results = "Tmn=0 Rp Tmu Tvn I",
    .flags = { { "mode", "ASN" } },
    .check = vectors_fit_mode,
    .run = cpu_lapack_gesvd },
  { .name = "lapack_?geev_ffi",
    .symbol = "?geev_",
    .types = "sd",
    .operands = "Tnn",
    .results = "Rn Rn Cnn Cnn I",
    .flags = { { "compute_left", "NV" }, { "compute_right", "NV" } },
    .run = cpu_lapack_geev },
  { .name = "lapack_?geev_ffi",
    .symbol = "?geev_",
    .types = "cz",
    .operands = "Tnn",
    .results = "Tn Tnn Tnn I",
    .flags = { { "compute_left", "NV" }, { "compute_right", "NV" } },
    .run = cpu_lapack_geev },
  { .name = "lapack_?gees_ffi",
    .symbol = "?gees_",
    .types = "sd",
    .operands = "Tnn",
    .results = "Tnn=0 Tnn Rn Rn I I",
    .flags = { { "mode", "NV" }, { "sort", "N" } },
    .run = cpu_lapack_gees },
  { .name = "lapack_?gees_ffi",
    .symbol = "?gees_",
    .types = "cz",
    .operands = "Tnn",
    .results = "Tnn=0 Tnn Tn I I",
    .flags = { { "mode", "NV" }, { "sort", "N" } },
    .run = cpu_lapack_gees },
  { .name = "lapack_?gehrd_ffi",
    .symbol = "?gehrd_",
    .types = "sdcz",
    .operands = "Tnn",
    .results = "Tnn=0 Tq I",
    .flags = { { "low", NULL }, { "high", NULL } },
    .check = rows_are_there,
    .run = cpu_lapack_gehrd },
  // What JAX calls on platforms that it does not know.
  { .name = "Qr",
    .symbol = "?geqrf_",
    .types = "sdcz",
    .operands = "Tmn",
    .results = "Tmn=0 Tp",
    .run = cpu_lapack_geqrf,
    .layout_optional = true },
  { .name = "ProductOfElementaryHouseholderReflectors",
    .symbol = "?orgqr_",
    .types = "sd",
    .operands = "Tmn Tk",
    .results = "Tmn=0",
    .check = few_reflectors,
    .run = cpu_lapack_orgqr,
    .layout_optional = true },
  { .name = "ProductOfElementaryHouseholderReflectors",
    .symbol = "?ungqr_",
    .types = "cz",
    .operands = "Tmn Tk",
    .results = "Tmn=0",
    .check = few_reflectors,
    .run = cpu_lapack_orgqr,
    .layout_optional = true },
};
const size_t cpu_lapack_n_targets =
    sizeof cpu_lapack_targets / sizeof *cpu_lapack_targets;
