// runs: see runs.h.
#include "runs.h"

const program programs[] = {
  { "small", 0, REDUCE(ALL, "add", "f32", "300xf32"), SAME("300xf32") },
  { "empty", 0, REDUCE(ALL, "add", "f32", "0xf32"), SAME("0xf32") },
  { "large", 0, REDUCE(ALL, "add", "f32", "200003xf32"), SAME("200003xf32") },
  { "larger", 0, REDUCE(ALL, "add", "f32", "1000003xf32"),
    SAME("1000003xf32") },
  { "bf16", 0, REDUCE(ALL, "add", "bf16", "270001xbf16"), SAME("270001xbf16") },
  { "f16", 0, REDUCE(ALL, "multiply", "f16", "7001xf16"), SAME("7001xf16") },
  { "f64", 0, REDUCE(ALL, "minimum", "f64", "5x31xf64"), SAME("5x31xf64") },
  { "i32", 0, REDUCE(ALL, "maximum", "i32", "77xi32"), SAME("77xi32") },
  { "i8", 0, REDUCE(ALL, "add", "i8", "1000xi8"), SAME("1000xi8") },
  { "i1", 0, REDUCE(ALL, "or", "i1", "100xi1"), SAME("100xi1") },
  { "any region", 0, REDUCE(ALL, "subtract", "f32", "50xf32"), SAME("50xf32") },
  { "pairs", 4,
    REDUCE("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", "add", "f32", "9xf32"),
    SAME("9xf32") },
  { "across", 4,
    REDUCE("dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>", "add", "f32",
           "90000xf32"),
    SAME("90000xf32") },
  { "uneven", 4,
    REDUCE("dense<[[3, 0, 1], [2, -1, -1]]> : tensor<2x3xi64>", "add", "f32",
           "70000xf32"),
    SAME("70000xf32") },
  { "a list",
    0,
    "%r:3 = \"stablehlo.all_reduce\"(%0, %1, %2) <{replica_groups = " ALL
    "}> " REGION(
        "add",
        "f32") " : (tensor<7xf32>, tensor<100000xf32>, tensor<3x5xf32>) -> "
               "(tensor<7xf32>, tensor<100000xf32>, tensor<3x5xf32>)\n"
               "return %r#0, %r#1, %r#2 : tensor<7xf32>, tensor<100000xf32>, "
               "tensor<3x5xf32>",
    { "7xf32", "100000xf32", "3x5xf32" },
    { "7xf32", "100000xf32", "3x5xf32" } },
  { "sum", 0,
    "%r = \"stablehlo.cross-replica-sum\"(%0) <{replica_groups = " ALL
    "}> : (tensor<40xf32>) -> tensor<40xf32>\nreturn %r : tensor<40xf32>",
    SAME("40xf32") },
  { "gather",
    4,
    "%r = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 1 : i64, "
    "replica_groups = dense<[[1, 0], [3, 2]]> : tensor<2x2xi64>}> : "
    "(tensor<6x5xf32>) -> tensor<6x10xf32>\nreturn %r : tensor<6x10xf32>",
    { "6x5xf32" },
    { "6x10xf32" } },
  { "gather across",
    4,
    "%r = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, "
    "replica_groups = dense<[[1, 2], [3, 0]]> : tensor<2x2xi64>}> : "
    "(tensor<6000x50xf32>) -> tensor<12000x50xf32>\nreturn %r : "
    "tensor<12000x50xf32>",
    { "6000x50xf32" },
    { "12000x50xf32" } },
  { "scatter",
    4,
    "%r = \"stablehlo.reduce_scatter\"(%0) <{scatter_dimension = 1 : i64, "
    "replica_groups = dense<[[1, 2], [3, 0]]> : tensor<2x2xi64>}> " REGION(
        "add", "f32") " : (tensor<3x12xf32>) -> tensor<3x6xf32>\n"
                      "return %r : tensor<3x6xf32>",
    { "3x12xf32" },
    { "3x6xf32" } },
  { "to all",
    4,
    "%r = \"stablehlo.all_to_all\"(%0) <{split_dimension = 0 : i64, "
    "concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = "
    "dense<[[0, 3], [2, 1]]> : tensor<2x2xi64>}> : (tensor<12x5xi16>) -> "
    "tensor<6x10xi16>\nreturn %r : tensor<6x10xi16>",
    { "12x5xi16" },
    { "6x10xi16" } },
  { "permute", 0,
    "%r = \"stablehlo.collective_permute\"(%0) <{source_target_pairs = "
    "dense<[[0, 1], [%N1, 0]]> : tensor<2x2xi64>}> : (tensor<7xi64>) "
    "-> tensor<7xi64>\nreturn %r : tensor<7xi64>",
    SAME("7xi64") },
  { "broadcast", 0,
    "%r = \"stablehlo.collective_broadcast\"(%0) <{replica_groups = "
    "dense<[[%N1, 0]]> : tensor<1x2xi64>}> : (tensor<33xui8>) -> "
    "tensor<33xui8>\nreturn %r : tensor<33xui8>",
    SAME("33xui8") },
  { "chain",
    4,
    "%a = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<[[0, 2], [3, "
    "1]]> : tensor<2x2xi64>}> " REGION(
        "add", "f32") " : (tensor<80000xf32>) -> tensor<80000xf32>\n"
                      "%b = \"stablehlo.all_reduce\"(%a) <{replica_groups = "
                      "dense<[[0, 1], [2, "
                      "3]]> : tensor<2x2xi64>}> " REGION(
                          "maximum",
                          "f32") " : (tensor<80000xf32>) -> tensor<80000xf32>\n"
                                 "%r = \"stablehlo.all_gather\"(%b) "
                                 "<{all_gather_dim = 0 : i64, "
                                 "replica_groups = dense<[[0, 3], [2, 1]]> : "
                                 "tensor<2x2xi64>}> : "
                                 "(tensor<80000xf32>) -> tensor<160000xf32>\n"
                                 "return %r : tensor<160000xf32>",
    { "80000xf32" },
    { "160000xf32" } },
};
const int n_programs = sizeof programs / sizeof *programs;
bool runs_exact;

// ---- texts ----

static void put_members(char *out, int n)
{
  out += sprintf(out, "[");
  for (int i = 0; i < n; i++) out += sprintf(out, "%s%d", i ? ", " : "", i);
  sprintf(out, "]");
}

static void put_types(char *out, const char *const *types)
{
  for (int i = 0; i < ARGS_MOST && types[i] != NULL; i++) {
    sprintf(out + strlen(out), "%stensor<%s>", i ? ", " : "", types[i]);
  }
}

void write_text(const program *p, int n, char *out)
{
  char body[4096];
  char *to = body;
  for (const char *at = p->text; *at != '\0'; at++) {
    if (strncmp(at, "%N1", 3) == 0) {
      to += sprintf(to, "%d", n - 1);
      at += 2;
    } else if (strncmp(at, "%N", 2) == 0) {
      to += sprintf(to, "%d", n);
      at++;
    } else if (strncmp(at, "%A", 2) == 0) {
      put_members(to, n);
      to += strlen(to);
      at++;
    } else {
      *to++ = *at;
    }
  }
  *to = '\0';
  strcpy(out, "func.func @main(");
  for (int i = 0; i < ARGS_MOST && p->types[i] != NULL; i++) {
    sprintf(out + strlen(out), "%s%%%d: tensor<%s>", i ? ", " : "", i,
            p->types[i]);
  }
  strcat(out, ") -> (");
  put_types(out, p->out_types);
  strcat(out, ") {\n");
  strcat(out, body);
  strcat(out, "\n}");
}

bool fits(const program *p, int n)
{
  return p->world == 0 || p->world == n;
}

// ---- data ----

static PJRT_Buffer_Type type_of(const char *type, size_t *bytes)
{
  static const struct {
    const char *name;
    PJRT_Buffer_Type type;
    size_t bytes;
  } types[] = {
    { "xf32", PJRT_Buffer_Type_F32, 4 }, { "xbf16", PJRT_Buffer_Type_BF16, 2 },
    { "xf16", PJRT_Buffer_Type_F16, 2 }, { "xf64", PJRT_Buffer_Type_F64, 8 },
    { "xi32", PJRT_Buffer_Type_S32, 4 }, { "xi64", PJRT_Buffer_Type_S64, 8 },
    { "xi16", PJRT_Buffer_Type_S16, 2 }, { "xui8", PJRT_Buffer_Type_U8, 1 },
    { "xi8", PJRT_Buffer_Type_S8, 1 },   { "xi1", PJRT_Buffer_Type_PRED, 1 }
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strstr(type, types[i].name) == NULL) continue;
    *bytes = types[i].bytes;
    return types[i].type;
  }
  fail_msg("type %s", type);
  return PJRT_Buffer_Type_INVALID;
}

static size_t shape_of(const char *type, int64_t *dims, size_t *rank)
{
  size_t n = 1;
  *rank = 0;
  while (*type >= '0' && *type <= '9') {
    char *end = NULL;
    dims[*rank] = strtoll(type, &end, 10);
    n *= (size_t)dims[(*rank)++];
    type = end + 1;
  }
  return n;
}

static size_t bytes_of(const char *type)
{
  int64_t dims[4];
  size_t rank = 0, bytes = 0;
  const size_t n = shape_of(type, dims, &rank);
  (void)type_of(type, &bytes);
  return n * bytes;
}

// Numbers whose sums are rounded, different on each device.
PJRT_Buffer *make_argument(PJRT_Device *device, int id, int argument,
                           const char *type)
{
  int64_t dims[4];
  size_t rank = 0, bytes = 0;
  const size_t n = shape_of(type, dims, &rank);
  const PJRT_Buffer_Type t = type_of(type, &bytes);
  unsigned char *data = malloc(n * bytes + 1);
  uint64_t state = (uint64_t)(1 + id * 7 + argument) * 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double rough = (double)(state >> 40) / 3e6 - 2.5;
    const double x = runs_exact ? (double)((state >> 40) % 17) - 8 : rough;
    float f = (float)x;
    uint32_t bits = 0;
    memcpy(&bits, &f, 4);
    uint64_t word = state >> 33;
    if (t == PJRT_Buffer_Type_F32) word = bits;
    if (t == PJRT_Buffer_Type_BF16) word = bits >> 16;
    if (t == PJRT_Buffer_Type_F16) {
      word = 0x3800 | (word & (runs_exact ? 0x8000 : 0x83ff));
    }
    if (t == PJRT_Buffer_Type_F64) memcpy(&word, &x, 8);
    if (t == PJRT_Buffer_Type_PRED) word &= 1;
    memcpy(data + i * bytes, &word, bytes);
  }
  PJRT_Buffer *b = host_buffer(device, t, data, rank, dims);
  free(data);
  return b;
}

// ---- running ----

size_t result_bytes(const program *p)
{
  size_t n = 0;
  for (int i = 0; i < ARGS_MOST && p->out_types[i] != NULL; i++) {
    n += bytes_of(p->out_types[i]);
  }
  return n;
}

void run_program(const program *p, int n, PJRT_Client *client, int first,
                 int n_local, unsigned char *out)
{
  char text[8192];
  write_text(p, n, text);
  PJRT_LoadedExecutable *e = world_program(client, text, n);
  PJRT_Buffer *in[DEVICES_MOST][ARGS_MOST];
  PJRT_Buffer *results[RUNS][DEVICES_MOST][ARGS_MOST];
  PJRT_Buffer *const *in_lists[DEVICES_MOST];
  PJRT_Buffer **out_lists[DEVICES_MOST];
  size_t n_args = 0;
  while (n_args < ARGS_MOST && p->types[n_args] != NULL) n_args++;
  for (int d = 0; d < n_local; d++) {
    in_lists[d] = in[d];
    for (size_t i = 0; i < n_args; i++) {
      in[d][i] = make_argument(host_device(client, (size_t)d), first + d,
                               (int)i, p->types[i]);
    }
  }
  for (int k = 0; k < RUNS; k++) {
    for (int d = 0; d < n_local; d++) out_lists[d] = results[k][d];
    HOST_OK(world_run(e, (size_t)n_local, n_args, in_lists, out_lists));
  }
  for (int k = 0; k < RUNS; k++) {
    unsigned char *to = out;
    for (int d = 0; d < n_local; d++) {
      for (int i = 0; i < ARGS_MOST && p->out_types[i] != NULL; i++) {
        const size_t bytes = bytes_of(p->out_types[i]);
        host_read(results[k][d][i], to, bytes);
        to += bytes;
        host_free(results[k][d][i]);
      }
    }
  }
  for (int d = 0; d < n_local; d++) {
    for (size_t i = 0; i < n_args; i++) host_free(in[d][i]);
  }
  host_program_free(e);
}

void run_all(peer *self)
{
  const int n = self->world->processes * self->world->devices;
  const int first = self->process * self->world->devices;
  size_t at = 0;
  for (int i = 0; i < n_programs; i++) {
    if (!fits(&programs[i], n)) continue;
    const size_t bytes = result_bytes(&programs[i]);
    run_program(&programs[i], n, self->client, first, self->world->devices,
                self->world->shared + at + (size_t)first * bytes);
    at += (size_t)n * bytes;
  }
}

size_t all_bytes(int n)
{
  size_t total = 0;
  for (int i = 0; i < n_programs; i++) {
    total += (size_t)n * result_bytes(&programs[i]);
  }
  return total;
}

void compare_with_one(const world *w)
{
  const int n = w->processes * w->devices;
  PJRT_Client *client = host_client(n);
  unsigned char *wanted = malloc(all_bytes(n) + 1);
  size_t at = 0;
  int ran = 0;
  for (int i = 0; i < n_programs; i++) {
    if (!fits(&programs[i], n)) continue;
    run_program(&programs[i], n, client, 0, n, wanted);
    const size_t bytes = (size_t)n * result_bytes(&programs[i]);
    if (memcmp(wanted, w->shared + at, bytes) != 0) {
      fail_msg("%s: other bits than in one process", programs[i].name);
    }
    at += bytes;
    ran++;
  }
  print_message("%d programs\n", ran);
  free(wanted);
  host_client_free(client);
}
