// lapack/plan: from a description to a call of the library for each matrix.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lapack/inner.h"

// Sizes are Fortran's integers; a matrix has fewer bytes than MOST, and all of
// them together fewer than 2^48.
#define MOST ((int64_t)1 << 40)
#define MOST_BATCH ((int64_t)1 << 47)

// ---- the letters ------------------------------------------------------------

int cpu_lapack_letter(char letter)
{
  static const char letters[] = "abkmnuv";
  const char *at = letter == '\0' ? NULL : strchr(letters, letter);
  return at == NULL ? -1 : (int)(at - letters);
}

int64_t cpu_lapack_size(const cpu_lapack_desc *d, char letter)
{
  const int64_t m = d->sizes[CPU_LAPACK_M], n = d->sizes[CPU_LAPACK_N];
  if (letter == 'p') return m < n ? m : n;
  if (letter == 'q') return n > 0 ? n - 1 : 0;
  return d->sizes[cpu_lapack_letter(letter)];
}

char cpu_lapack_type_letter(cx_hlo_elem type)
{
  switch (type) {
    case CX_HLO_F32: return 's';
    case CX_HLO_F64: return 'd';
    case CX_HLO_C64: return 'c';
    case CX_HLO_C128: return 'z';
    default: return '\0';
  }
}

cx_hlo_elem cpu_lapack_elem(cx_hlo_elem type, char letter)
{
  const bool wide = type == CX_HLO_F64 || type == CX_HLO_C128;
  switch (letter) {
    case 'I': return CX_HLO_I32;
    case 'R': return wide ? CX_HLO_F64 : CX_HLO_F32;
    case 'C': return wide ? CX_HLO_C128 : CX_HLO_C64;
    default: return type;
  }
}

bool cpu_lapack_next_shape(const char **io_text, cpu_lapack_shape *out)
{
  const char *p = *io_text;
  while (*p == ' ') p++;
  if (*p == '\0') return false;
  *out = (cpu_lapack_shape){ .type = *p++, .from = -1 };
  while (*p != '\0' && *p != ' ' && *p != '=') out->letter[out->rank++] = *p++;
  if (*p == '=') {
    out->from = p[1] - '0';
    p += 2;
  }
  *io_text = p;
  return true;
}

// ---- calls ------------------------------------------------------------------

static cpu_lapack_call call_of(const cpu_lapack_plan *p)
{
  const int64_t *s = p->d.sizes;
  return (cpu_lapack_call){ .d = &p->d,
                            .function = p->function,
                            .a = (int)s[CPU_LAPACK_A],
                            .b = (int)s[CPU_LAPACK_B],
                            .k = (int)s[CPU_LAPACK_K],
                            .m = (int)s[CPU_LAPACK_M],
                            .n = (int)s[CPU_LAPACK_N],
                            .u = (int)s[CPU_LAPACK_U],
                            .v = (int)s[CPU_LAPACK_V],
                            .lwork = p->lwork,
                            .liwork = p->liwork,
                            .lrwork = p->lrwork };
}

// ---- making -----------------------------------------------------------------

bool cpu_lapack_flag_has(const cpu_lapack_flag *f, int64_t v)
{
  if (f->name == NULL) return v == 0;
  if (f->letters == NULL) return v >= INT_MIN && v <= INT_MAX;
  if (f->letters[0] == '\0') return v == 0 || v == 1;
  return v > 0 && v <= 127 && strchr(f->letters, (int)v) != NULL;
}

static bool flags_ok(const cpu_lapack_target *t, const cpu_lapack_desc *d)
{
  for (size_t i = 0; i < CPU_LAPACK_FLAGS; i++) {
    if (!cpu_lapack_flag_has(&t->flags[i], d->flags[i])) return false;
  }
  return true;
}

static bool is_sound(const cpu_lapack_desc *d)
{
  if (d->target < 0 || (uint64_t)d->target >= cpu_lapack_n_targets ||
      d->batch < 0 || d->batch >= MOST_BATCH || d->type < 0 ||
      d->type >= CX_HLO_ELEM_COUNT) {
    return false;
  }
  for (size_t i = 0; i < CPU_LAPACK_SIZES; i++) {
    if (d->sizes[i] < 0 || d->sizes[i] >= INT_MAX) return false;
  }
  const cpu_lapack_target *t = &cpu_lapack_targets[d->target];
  const char type = cpu_lapack_type_letter((cx_hlo_elem)d->type);
  return type != '\0' && strchr(t->types, type) != NULL && flags_ok(t, d) &&
         (t->check == NULL || t->check(d));
}

static size_t reserve(cpu_lapack_plan *p, int64_t elements, int64_t size)
{
  const size_t at = p->scratch;
  p->scratch += ((size_t)(elements * size) + 63) / 64 * 64;
  return at;
}

static bool add_tensors(cpu_lapack_plan *p, const char *text)
{
  cpu_lapack_shape s;
  while (cpu_lapack_next_shape(&text, &s)) {
    cpu_lapack_tensor *t = &p->tensors[p->n_tensors++];
    const cx_hlo_elem type = (cx_hlo_elem)p->d.type;
    t->rows = s.rank > 0 ? cpu_lapack_size(&p->d, s.letter[0]) : 1;
    t->columns = s.rank > 1 ? cpu_lapack_size(&p->d, s.letter[1]) : 1;
    t->bytes = (int64_t)cx_hlo_elem_bytes(cpu_lapack_elem(type, s.type));
    const int64_t n = t->rows * t->columns;  // below 2^62
    if (n >= MOST / 16 || n * t->bytes > MOST_BATCH / (p->d.batch + 1)) {
      return false;
    }
    t->cleared = s.from < 0;
    t->at = s.from >= 0 ? p->tensors[s.from].at
                        : reserve(p, n == 0 ? 1 : n, t->bytes);
  }
  return true;
}

static calx_status *add_work(cpu_lapack_plan *p)
{
  cpu_lapack_call c = call_of(p);
  // Some routines write to their first element while they are asked.
  double some[8] = { 0 };
  int ints[8] = { 0 };
  c.query = true;
  c.rwork = some;
  c.iwork = ints;
  for (size_t i = 0; i < CPU_LAPACK_BUFFERS; i++) c.t[i] = some;
  cpu_lapack_targets[p->d.target].run(&c);
  if (c.lwork < 0 || c.liwork < 0 || c.lrwork < 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "LAPACK's workspace for a matrix of %d x %d is larger than "
                    "its integers",
                    c.m, c.n);
  }
  const int64_t size = (int64_t)cx_hlo_elem_bytes((cx_hlo_elem)p->d.type);
  p->lwork = c.lwork > 1 ? c.lwork : 1;
  p->liwork = c.liwork > 1 ? c.liwork : 1;
  p->lrwork = c.lrwork > 1 ? c.lrwork : 1;
  p->work_at = reserve(p, p->lwork, size);
  p->iwork_at = reserve(p, p->liwork, sizeof(int));
  p->rwork_at = reserve(p, p->lrwork, sizeof(double));
  return NULL;
}

static void symbol_of(const cpu_lapack_desc *d, char *out, size_t room)
{
  snprintf(out, room, "%c%s", cpu_lapack_type_letter((cx_hlo_elem)d->type),
           cpu_lapack_targets[d->target].symbol + 1);
}

calx_status *cpu_lapack_plan_make(const cpu_lapack_desc *d,
                                  cpu_lapack_plan *out)
{
  *out = (cpu_lapack_plan){ .d = *d };
  if (!is_sound(d)) {
    return cx_invalid("a description of a call of LAPACK contradicts itself");
  }
  const cpu_lapack_target *t = &cpu_lapack_targets[d->target];
  bool fits = add_tensors(out, t->operands);
  out->n_operands = out->n_tensors;
  fits = fits && add_tensors(out, t->results);
  char symbol[32];
  symbol_of(d, symbol, sizeof symbol);
  if (!fits) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "matrices of %s are too large",
                    symbol);
  }
  CALX_TRY(cpu_lapack_symbol(symbol, &out->function));
  return add_work(out);
}

size_t cpu_lapack_plan_bytes(const cpu_lapack_plan *p, size_t i)
{
  const cpu_lapack_tensor *t = &p->tensors[i];
  return (size_t)(p->d.batch * t->rows * t->columns * t->bytes);
}

void cpu_lapack_plan_name(const cpu_lapack_plan *p, char *out, size_t room)
{
  symbol_of(&p->d, out, room);
  out[strlen(out) - 1] = '\0';  // Fortran's underscore
}

double cpu_lapack_flops(const cpu_lapack_desc *d)
{
  if (!is_sound(d)) return 0;
  const double n = (double)d->sizes[CPU_LAPACK_N];
  const double rows =
      d->sizes[CPU_LAPACK_M] > 0 ? (double)d->sizes[CPU_LAPACK_M] : n;
  return (double)d->batch * rows * n * (rows < n ? rows : n);
}

// ---- running ----------------------------------------------------------------

// Rows and columns of a tile that is transposed.
#define TILE 16

static void transpose(const unsigned char *from, unsigned char *to,
                      int64_t rows, int64_t columns, int64_t bytes)
{
  for (int64_t i = 0; i < rows; i += TILE) {
    for (int64_t j = 0; j < columns; j += TILE) {
      const int64_t last_row = i + TILE < rows ? i + TILE : rows;
      const int64_t last = j + TILE < columns ? j + TILE : columns;
      for (int64_t k = i; k < last_row; k++) {
        for (int64_t l = j; l < last; l++) {
          const unsigned char *p = from + (k * columns + l) * bytes;
          unsigned char *q = to + (l * rows + k) * bytes;
          if (bytes == 4) {
            memcpy(q, p, 4);
          } else if (bytes == 8) {
            memcpy(q, p, 8);
          } else {
            memcpy(q, p, 16);
          }
        }
      }
    }
  }
}

static void run_one(const cpu_lapack_plan *p, cpu_lapack_call *c,
                    void *const *buffers, int64_t i, unsigned char *scratch)
{
  for (size_t k = 0; k < p->n_tensors; k++) {
    const cpu_lapack_tensor *t = &p->tensors[k];
    const int64_t bytes = t->rows * t->columns * t->bytes;
    c->t[k] = scratch + t->at;
    if (k < p->n_operands) {
      transpose((const unsigned char *)buffers[k] + i * bytes, c->t[k], t->rows,
                t->columns, t->bytes);
    } else if (t->cleared) {
      memset(c->t[k], 0, (size_t)bytes);  // not all routines write all
    }
  }
  cpu_lapack_targets[p->d.target].run(c);
  for (size_t k = p->n_operands; k < p->n_tensors; k++) {
    const cpu_lapack_tensor *t = &p->tensors[k];
    const int64_t bytes = t->rows * t->columns * t->bytes;
    transpose(c->t[k], (unsigned char *)buffers[k] + i * bytes, t->columns,
              t->rows, t->bytes);
  }
}

void cpu_lapack_run(const cpu_lapack_plan *p, void *const *buffers, int64_t lo,
                    int64_t hi, unsigned char *scratch)
{
  cpu_lapack_call c = call_of(p);
  c.work = scratch + p->work_at;
  c.rwork = scratch + p->rwork_at;
  c.iwork = (int *)(void *)(scratch + p->iwork_at);
  for (int64_t i = lo; i < hi; i++) run_one(p, &c, buffers, i, scratch);
}
