// pt: PyTorch's zip format, written and read, and files that are refused.
#include <inttypes.h>
#include <zip.h>

#include "calx/io.h"
#include "everything.h"
#include "files.h"
#include "io/pt.h"

static void test_round(void **state)
{
  (void)state;
  const char *const names[] = { "all.pt", "all.pth", "all.v2.ckpt", "all" };
  calx_value *d = everything(), *read;
  for (size_t i = 0; i < 4; i++) {
    const char *path = file_in_folder(names[i]);
    CHECK_STATUS_OK(calx_save(d, path));
    CHECK_STATUS_OK(calx_load(path, &read));
    check_equal(d, read);
    calx_value_free(read);
  }
  // Equal values give equal files.
  char *one, *two;
  size_t n, m;
  CHECK_STATUS_OK(cx_file_read(file_in_folder("all.pt"), 0, &one, &n));
  CHECK_STATUS_OK(calx_save(d, file_in_folder("all.pt")));
  CHECK_STATUS_OK(cx_file_read(file_in_folder("all.pt"), 0, &two, &m));
  assert_int_equal(n, m);
  assert_memory_equal(one, two, n);
  cx_free(one);
  cx_free(two);
  calx_value_free(d);
  const calx_kind scalars[] = { CALX_KIND_NONE, CALX_KIND_INT };
  for (size_t i = 0; i < 2; i++) {
    calx_value *v = scalars[i] == CALX_KIND_NONE ? NULL : calx_value_int(7);
    CHECK_STATUS_OK(calx_save(v, file_in_folder("v.pt")));
    CHECK_STATUS_OK(calx_load(file_in_folder("v.pt"), &read));
    assert_int_equal(calx_value_kind(read), scalars[i]);
    calx_value_free(read);
    calx_value_free(v);
  }
  assert_int_equal(files_in_folder(true), 5);
}

// Entries as PyTorch lays them out: stored, at multiples of 64.
static void test_layout(void **state)
{
  (void)state;
  const char *path = file_in_folder("net.pt");
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  put(d, "a", host(CALX_F32, CALX_SHAPE(7)));
  put(d, "b", host(CALX_I8, CALX_SHAPE(3)));
  put(d, "c", calx_value_tensor(calx_value_as_tensor(calx_value_get(d, "a"))));
  CHECK_STATUS_OK(calx_save(d, path));
  calx_value_free(d);
  static const struct {
    const char *name, *content;
  } entries[] = {
    { "net/data.pkl", NULL },
    { "net/.format_version", "1" },
    { "net/.storage_alignment", "64" },
    { "net/byteorder", "little" },
    { "net/data/0", NULL },
    { "net/data/1", NULL },
    { "net/version", "3\n" },
    { "net/.data/serialization_id", NULL },
  };
  char *file;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 0, &file, &size));
  zip_t *zip = zip_open(path, ZIP_RDONLY | ZIP_CHECKCONS, NULL);
  assert_non_null(zip);
  assert_int_equal(zip_get_num_entries(zip, 0), 8);
  size_t at = 0;
  for (zip_uint64_t i = 0; i < 8; i++) {
    zip_stat_t s;
    assert_int_equal(zip_stat_index(zip, i, 0, &s), 0);
    assert_string_equal(s.name, entries[i].name);
    assert_int_equal(s.comp_method, ZIP_CM_STORE);
    const unsigned char *local = (unsigned char *)file + at;
    assert_memory_equal(local, "PK\3\4", 4);
    at += 30 + local[26] + 256u * local[27] + local[28] + 256u * local[29];
    assert_int_equal(at % 64, 0);
    if (entries[i].content != NULL) {
      assert_int_equal(s.size, strlen(entries[i].content));
      assert_memory_equal(file + at, entries[i].content, s.size);
    }
    at += s.size;
  }
  zip_discard(zip);
  cx_free(file);
  files_in_folder(true);
}

// Whether the bytes lie in a map of the file (proc(5)).
static bool is_mapped(const void *data, const char *path)
{
  char line[1024];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t begin, end;
    found = strstr(line, path) != NULL &&
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2 &&
            begin <= (uintptr_t)data && (uintptr_t)data < end;
  }
  fclose(maps);
  return found;
}

// Tensors of what is not packed lie in the file's map, which lives as long as
// they do; their checksums are compared.
static void test_mapped(void **state)
{
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s", file_in_folder("mapped.pt"));
  calx_value *d = everything(), *read;
  CHECK_STATUS_OK(calx_save(d, path));
  CHECK_STATUS_OK(calx_load(path, &read));
  calx_tensor *t = calx_value_as_tensor(calx_value_get(read, "f64"));
  const void *data = calx_host_data(t);
  assert_true(is_mapped(data, path));
  calx_retain(t);
  calx_value_free(read);
  assert_true(is_mapped(data, path));
  const calx_tensor *own = calx_value_as_tensor(calx_value_get(d, "f64"));
  assert_memory_equal(data, calx_host_data(own), 15 * sizeof(double));
  char *file, *at;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 0, &file, &size));
  at = memmem(file, size, data, 15 * sizeof(double));
  assert_non_null(at);
  *at ^= 1;
  write_file(file_in_folder("bad.pt"), file, size);
  cx_free(file);
  CHECK_STATUS(CALX_DATA_LOSS, calx_load(file_in_folder("bad.pt"), &read),
               "CRC");
  calx_release(t);
  assert_false(is_mapped(data, path));
  calx_value_free(d);
  files_in_folder(true);
}

static void test_too_deep(void **state)
{
  (void)state;
  for (int deep = 60; deep < 70; deep++) {
    calx_value *root = calx_value_container(CALX_KIND_LIST), *v = root, *read;
    for (int i = 1; i < deep; i++) {
      calx_value *next = calx_value_container(CALX_KIND_TUPLE);
      put(v, NULL, next);
      v = next;
    }
    calx_status *status = calx_save(root, file_in_folder("deep.pt"));
    if (deep <= 64) {
      CHECK_STATUS_OK(status);
      CHECK_STATUS_OK(calx_load(file_in_folder("deep.pt"), &read));
      check_equal(root, read);
      calx_value_free(read);
    } else {
      CHECK_STATUS(CALX_INVALID_ARGUMENT, status, "64 deep");
    }
    calx_value_free(root);
  }
  files_in_folder(true);
}

// ---- hand-made pickles ------------------------------------------------------

typedef struct archive {
  const char *pickle;  // protocol's two bytes and the end's '.' are added
  size_t size;
  const char *storage;  // data/0; NULL: none
  size_t storage_size;
  const char *more, *more_content;  // another entry; NULL: none
  bool deflated;
} archive;

static void add(zip_t *zip, const char *name, const void *data, size_t size,
                bool deflated)
{
  zip_source_t *source = zip_source_buffer(zip, data, size, 0);
  assert_non_null(source);
  zip_int64_t at = zip_file_add(zip, name, source, 0);
  assert_true(at >= 0);
  int method = deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)at, method, 0),
                   0);
}

static calx_status *load(const archive *a, calx_value **out)
{
  const char *path = file_in_folder("made.pt");
  char *pickle = test_malloc(a->size + 3);
  memcpy(pickle, "\x80\x02", 2);
  memcpy(pickle + 2, a->pickle, a->size);
  pickle[a->size + 2] = '.';
  zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
  assert_non_null(zip);
  add(zip, "x/data.pkl", pickle, a->size + 3, a->deflated);
  if (a->storage != NULL) {
    add(zip, "x/data/0", a->storage, a->storage_size, a->deflated);
  }
  if (a->more != NULL) {
    add(zip, a->more, a->more_content, strlen(a->more_content), false);
  }
  assert_int_equal(zip_close(zip), 0);
  test_free(pickle);
  return calx_load(path, out);
}

#define PICKLE(text) .pickle = text, .size = sizeof text - 1
#define STORAGE(text) .storage = text, .storage_size = sizeof text - 1
// _rebuild_tensor_v2 with a FloatStorage '0' of n elements and what follows.
#define TENSOR(n, rest)                                                       \
  "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage" \
  "\nX\1\0\0\0"                                                               \
  "0"                                                                         \
  "X\3\0\0\0cpuK" n "tQ" rest                                                 \
  "\x89"                                                                      \
  "ccollections\nOrderedDict\n)RtR"

static void test_accepted(void **state)
{
  (void)state;
  calx_value *v;
  float x[] = { 0, 1, 2, 3, 4, 5 };
  char bytes[sizeof x];
  memcpy(bytes, x, sizeof x);
  for (int deflated = 0; deflated < 2; deflated++) {
    // A transposed (3, 2).
    archive a = { PICKLE(TENSOR("\6", "K\0K\3K\2\x86K\1K\3\x86")),
                  .storage = bytes, .storage_size = sizeof bytes,
                  .deflated = deflated != 0 };
    CHECK_STATUS_OK(load(&a, &v));
    calx_tensor *t = calx_value_as_tensor(v);
    assert_int_equal(calx_tensor_dim(t, 0), 3);
    CHECK_VALUES(t, 0, 0, 3, 1, 4, 2, 5);
    calx_value_free(v);
  }
  // A slice, and one that repeats an element.
  archive b = { PICKLE(TENSOR("\6", "K\2K\3\x85K\1\x85") "q\0" TENSOR(
                    "\6", "K\1K\2K\2\x86K\0K\2\x86") "h\0\x87"),
                .storage = bytes, .storage_size = sizeof bytes };
  CHECK_STATUS_OK(load(&b, &v));
  CHECK_VALUES(calx_value_as_tensor(calx_value_item(v, 0)), 0, 2, 3, 4);
  CHECK_VALUES(calx_value_as_tensor(calx_value_item(v, 1)), 0, 1, 3, 1, 3);
  assert_ptr_equal(calx_value_as_tensor(calx_value_item(v, 0)),
                   calx_value_as_tensor(calx_value_item(v, 2)));
  calx_value_free(v);
  // An item that is replaced, and met again later.
  archive c = { PICKLE("}(X\1\0\0\0a" TENSOR(
                    "\6",
                    "K\0K\6\x85K\1\x85") "q\0X\1\0\0\0aK\1X\1\0\0\0bh\0u"),
                .storage = bytes, .storage_size = sizeof bytes };
  CHECK_STATUS_OK(load(&c, &v));
  assert_int_equal(calx_value_as_int(calx_value_get(v, "a")), 1);
  assert_int_equal(
      calx_tensor_numel(calx_value_as_tensor(calx_value_get(v, "b"))), 6);
  calx_value_free(v);
  // Later protocols' instructions.
  archive d = { PICKLE(
      "\x95\0\0\0\0\0\0\0\0]\x94(\x8c\1a\x94"
      "\x8d\2\0\0\0\0\0\0\0bcC\2\0\1\x8f(K\1\x90\x8a\0"
      "\x8a\3\0\0\x80\x8b\2\0\0\0\xff\xff(K\1K\2t)h\1e") };
  CHECK_STATUS_OK(load(&d, &v));
  assert_int_equal(calx_value_count(v), 10);
  assert_string_equal(calx_value_as_string(calx_value_item(v, 1)), "bc");
  assert_int_equal(calx_value_kind(calx_value_item(v, 2)), CALX_KIND_BYTES);
  assert_int_equal(calx_value_kind(calx_value_item(v, 3)), CALX_KIND_SET);
  assert_int_equal(calx_value_as_int(calx_value_item(v, 4)), 0);
  assert_int_equal(calx_value_as_int(calx_value_item(v, 5)), -8388608);
  assert_int_equal(calx_value_as_int(calx_value_item(v, 6)), -1);
  assert_string_equal(calx_value_as_string(calx_value_item(v, 9)), "a");
  calx_value_free(v);
  files_in_folder(true);
}

static const struct {
  archive archive;
  calx_code code;
  const char *message;
} refused[] = {
  { { PICKLE("cos\nsystem\nX\2\0\0\0ls\x85R") },
    CALX_UNIMPLEMENTED,
    "data.pkl byte 2: it wants 'os.system', and nothing in a file is run" },
  { { PICKLE("X\2\0\0\0osX\6\0\0\0system\x93") },
    CALX_UNIMPLEMENTED,
    "'os.system'" },
  { { PICKLE("cbuiltins\neval\n") }, CALX_UNIMPLEMENTED, "'builtins.eval'" },
  { { PICKLE("ctorch\nFloatStorage\n)\x81") },
    CALX_UNIMPLEMENTED,
    "an object of a class" },
  { { PICKLE("ctorch\nFloatStorage\n)R") },
    CALX_UNIMPLEMENTED,
    "a call of a type" },
  { { PICKLE("ctorch\nfloat32\n") }, CALX_UNIMPLEMENTED, "a type as a value" },
  { { PICKLE("K\1)R") }, CALX_DATA_LOSS, "no name" },
  { { PICKLE("]}b") }, CALX_UNIMPLEMENTED, "the state of an object" },
  { { PICKLE("I1\n") }, CALX_UNIMPLEMENTED, "the instruction 0x49" },
  { { PICKLE("P1\n") }, CALX_UNIMPLEMENTED, "0x50" },
  { { PICKLE("\x8a\x09\0\0\0\0\0\0\0\0\1") },
    CALX_UNIMPLEMENTED,
    "an integer of 9 bytes" },
  { { PICKLE("") }, CALX_DATA_LOSS, "other than one value" },
  { { PICKLE("NN") }, CALX_DATA_LOSS, "other than one value" },
  { { PICKLE("(N") }, CALX_DATA_LOSS, "other than one value" },
  { { PICKLE("0") }, CALX_DATA_LOSS, "the stack is empty" },
  { { PICKLE("1") }, CALX_DATA_LOSS, "no mark" },
  { { PICKLE("t") }, CALX_DATA_LOSS, "no mark" },
  { { PICKLE("]s") }, CALX_DATA_LOSS, "the stack is empty" },
  { { PICKLE("]NNs") }, CALX_DATA_LOSS, "items for a dict" },
  { { PICKLE("}Na") }, CALX_DATA_LOSS, "items for a list" },
  { { PICKLE("}(Nu") }, CALX_DATA_LOSS, "half an item" },
  { { PICKLE("(Nd") }, CALX_DATA_LOSS, "half an item" },
  { { PICKLE("](a") }, CALX_DATA_LOSS, "the stack is empty" },
  { { PICKLE("h\0") }, CALX_DATA_LOSS, "no such number" },
  { { PICKLE("Nq\1") }, CALX_DATA_LOSS, "out of order" },
  { { PICKLE("Nr\xff\xff\xff\xff") }, CALX_DATA_LOSS, "out of order" },
  { { PICKLE("X\xff\xff\xff\xff") },
    CALX_DATA_LOSS,
    "ends inside an instruction" },
  { { PICKLE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff") },
    CALX_DATA_LOSS,
    "ends inside an instruction" },
  { { PICKLE("cos") }, CALX_DATA_LOSS, "ends inside a name" },
  { { PICKLE("}NNs") }, CALX_UNIMPLEMENTED, "a dict with a None as key" },
  { { PICKLE("})Ns") }, CALX_UNIMPLEMENTED, "a dict with a tuple as key" },
  { { PICKLE("}X\2\0\0\0a\0Ns") }, CALX_UNIMPLEMENTED, "zero byte" },
  { { PICKLE("]q\0h\0a") }, CALX_UNIMPLEMENTED, "in a cycle" },
  { { PICKLE("Nq\0"
             "Q") },
    CALX_DATA_LOSS,
    "names no storage" },
  { { PICKLE(TENSOR("\1", "K\0))")) },
    CALX_DATA_LOSS,
    "no storage 'x/data/0'" },
  { { PICKLE(TENSOR("\1", "K\0))")), STORAGE("12345") },
    CALX_DATA_LOSS,
    "has 5 bytes, 1 elements of 4" },
  { { PICKLE(TENSOR("\1", "K\2))")), STORAGE("1234") },
    CALX_DATA_LOSS,
    "reaches past its storage of 1 elements" },
  { { PICKLE(TENSOR("\1", "K\0K\2\x85K\1\x85")), STORAGE("1234") },
    CALX_DATA_LOSS,
    "f32[2] at element 0 reaches past" },
  { { PICKLE(TENSOR("\1", "K\0K\2\x85)")), STORAGE("1234") },
    CALX_DATA_LOSS,
    "other arguments" },
  { { PICKLE("ctorch._utils\n_rebuild_parameter\n)R") },
    CALX_DATA_LOSS,
    "_rebuild_parameter with" },
  { { PICKLE("ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n)R") },
    CALX_DATA_LOSS,
    "_rebuild_device_tensor_from_cpu_tensor with" },
  { { PICKLE(TENSOR("\1", "K\0J\xff\xff\xff\xff\x85K\1\x85")),
      STORAGE("1234") },
    CALX_DATA_LOSS,
    "other arguments" },
  { { PICKLE(TENSOR("\1", "K\0(KKKKKKKKKtN")), STORAGE("1234") },
    CALX_DATA_LOSS,
    "" },
  { { PICKLE(TENSOR("\1",
                    "K\0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85"
                    "K\2\x85")),
      STORAGE("1234") },
    CALX_DATA_LOSS,
    "reaches past" },
  { { PICKLE(TENSOR("\1", "K\0J\xff\xff\xff\x7f\x85K\0\x85")),
      STORAGE("1234") },
    CALX_RESOURCE_EXHAUSTED,
    "much more than the file" },
  { { PICKLE("N"), .more = "x/byteorder", .more_content = "big" },
    CALX_UNIMPLEMENTED,
    "little-endian" },
  { { PICKLE("N"), .more = "x/constants.pkl", .more_content = "" },
    CALX_UNIMPLEMENTED,
    "TorchScript" },
};

static void test_refused(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    calx_value *v;
    calx_status *status = load(&refused[i].archive, &v);
    assert_true((v == NULL) == (status != NULL));
    if (calx_status_code(status) != refused[i].code) {
      print_error("case %zu, for '%s'\n", i, refused[i].message);
    }
    CHECK_STATUS(refused[i].code, status, refused[i].message);
  }
  files_in_folder(true);
}

// Lists of one list, each twice in the next: a small file, a huge value.
static void test_shared_items(void **state)
{
  (void)state;
  char pickle[1024];
  size_t n = 0;
  n += (size_t)sprintf(pickle, "]");
  for (int i = 0; i < 40; i++) {
    pickle[n++] = 'q';
    pickle[n++] = (char)i;
    pickle[n++] = 'h';
    pickle[n++] = (char)i;
    pickle[n++] = '\x86';
  }
  calx_value *v;
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
               load(&(archive){ .pickle = pickle, .size = n }, &v),
               "more than the file has");
  files_in_folder(true);
}

// One text, named again and again: as an item and as a key.
static void test_shared_texts(void **state)
{
  (void)state;
  enum { SIZE = 1 << 20, TIMES = 200 };
  for (int key = 0; key < 2; key++) {
    char *pickle = test_malloc(SIZE + 16 + 5 * TIMES);
    size_t n = 0;
    memcpy(pickle, "](X\0\0\x10\0", 7);
    n += 7;
    memset(pickle + n, 'a', SIZE);
    n += SIZE;
    memcpy(pickle + n, "q\0", 2);
    n += 2;
    for (int i = 0; i < TIMES; i++) {
      memcpy(pickle + n, key ? "}h\0Ns" : "h\0", key ? 5 : 2);
      n += key ? 5 : 2;
    }
    pickle[n++] = 'e';
    calx_value *v;
    CHECK_STATUS(CALX_RESOURCE_EXHAUSTED,
                 load(&(archive){ .pickle = pickle, .size = n }, &v),
                 "more than the file has");
    test_free(pickle);
  }
  files_in_folder(true);
}

// No elements, and sizes whose product has no number: read and written.
static void test_empty_and_huge(void **state)
{
  (void)state;
#define VAST "\x8a\6\0\0\0\0\0\1"
  static const char *const pickles[] = {
    TENSOR("\1", "K\0" VAST VAST "K\0\x87K\0K\0K\1\x87"),
    TENSOR("\1", "K\0K\0" VAST VAST "\x87K\0K\0K\1\x87"),
  };
  const size_t sizes[] = {
    sizeof TENSOR("\1", "K\0" VAST VAST "K\0\x87K\0K\0K\1\x87") - 1,
    sizeof TENSOR("\1", "K\0K\0" VAST VAST "\x87K\0K\0K\1\x87") - 1
  };
  for (int i = 0; i < 2; i++) {
    archive a = { .pickle = pickles[i], .size = sizes[i], STORAGE("1234") };
    calx_value *v, *again;
    CHECK_STATUS_OK(load(&a, &v));
    calx_tensor *t = calx_value_as_tensor(v);
    assert_int_equal(calx_tensor_numel(t), 0);
    assert_true(calx_tensor_dim(t, 1) == (int64_t)1 << 40);
    CHECK_STATUS_OK(calx_save(v, file_in_folder("again.pt")));
    CHECK_STATUS_OK(calx_load(file_in_folder("again.pt"), &again));
    check_equal(v, again);
    calx_value_free(again);
    calx_value_free(v);
  }
  files_in_folder(true);
}

static void test_damaged(void **state)
{
  (void)state;
  const char *path = file_in_folder("a.pt"), *other = file_in_folder("b.pt");
  calx_value *d = everything(), *v;
  CHECK_STATUS_OK(calx_save(d, path));
  calx_value_free(d);
  char *file;
  size_t size, found = 0;
  CHECK_STATUS_OK(cx_file_read(path, 0, &file, &size));
  for (size_t i = 0; i < size; i += 97) {
    write_file(other, file, i);
    CHECK_STATUS(CALX_DATA_LOSS, calx_load(other, &v), "");
    file[i] ^= 0x55;
    write_file(other, file, size);
    file[i] ^= 0x55;
    calx_status *status = calx_load(other, &v);
    found += status != NULL;
    calx_value_free(v);
    calx_status_free(status);
  }
  assert_true(found > size / 97 / 4);
  cx_free(file);
  write_file(other, "no zip at all", 13);
  CHECK_STATUS(CALX_UNIMPLEMENTED,
               calx_load(other, &v, .format = CALX_FORMAT_PT),
               "no zip archive");
  files_in_folder(true);
}

static void test_without_memory(void **state)
{
  (void)state;
  const char *path = file_in_folder("c.pt");
  calx_value *d = everything(), *read;
  for (int loads = 0; loads < 2; loads++) {
    bool done = false;
    for (long n = 0; !done; n++) {
      assert_true(n < 3000);
      cx_alloc_fail_at(n);
      calx_status *status = loads ? calx_load(path, &read) : calx_save(d, path);
      cx_alloc_fail_at(-1);
      done = status == NULL;
      if (done && loads) calx_value_free(read);
      calx_status_free(status);
      CHECK_STATUS_OK(calx_scope_take_error());
    }
  }
  calx_value_free(d);
  assert_int_equal(files_in_folder(true), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_round),          SUPPORT_TEST(test_layout),
    SUPPORT_TEST(test_mapped),         SUPPORT_TEST(test_too_deep),
    SUPPORT_TEST(test_accepted),       SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_shared_texts),   SUPPORT_TEST(test_empty_and_huge),
    SUPPORT_TEST(test_shared_items),   SUPPORT_TEST(test_damaged),
    SUPPORT_TEST(test_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, files_end);
}
