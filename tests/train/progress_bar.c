// Progress bars: their texts beside tqdm's and Rich's, when they are drawn and
// what that costs.
#include "train/bar.h"

#include "boring.h"
#include "lightning_text.h"

// ---- texts ------------------------------------------------------------------

static void check_text(cx_text *out, const char *wanted, const char *what,
                       size_t i)
{
  if (strcmp(cx_text_str(out), wanted) != 0) {
    print_error("%s %zu:\n%s\nis not\n%s\n", what, i, cx_text_str(out), wanted);
    fail();
  }
  cx_text_free(out);
}

static void test_tqdm_numbers(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof tqdm_numbers / sizeof *tqdm_numbers; i++) {
    cx_text out = { 0 };
    cx_train_tqdm_number(&out, tqdm_numbers[i].value,
                         tqdm_numbers[i].is_integer);
    check_text(&out, tqdm_numbers[i].text, "number", i);
  }
}

static void test_tqdm_lines(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof tqdm_lines / sizeof *tqdm_lines; i++) {
    const double elapsed = tqdm_lines[i].elapsed;
    const cx_train_meter m = {
      .description = tqdm_lines[i].description,
      .n = tqdm_lines[i].n,
      .total = tqdm_lines[i].total,
      .elapsed = elapsed,
      .speed = elapsed > 0 ? (double)tqdm_lines[i].n / elapsed : 0,
      .values = tqdm_lines[i].values,
    };
    cx_text out = { 0 };
    cx_train_tqdm_line(&out, &m, tqdm_lines[i].width, tqdm_lines[i].has_utf8);
    check_text(&out, tqdm_lines[i].text, "line", i);
  }
}

// Without the colours, and without blanks that end a line.
static void strip(const char *from, cx_text *out)
{
  size_t kept = 0;
  for (; *from != '\0'; from++) {
    if (*from == '\033') {
      from = strchr(from, 'm');
    } else if (*from == '\n') {
      out->size = kept;
      cx_text_char(out, '\n');
      kept = out->size;
    } else {
      cx_text_char(out, *from);
      if (*from != ' ') kept = out->size;
    }
  }
  if (out->data != NULL) out->data[out->size = kept] = '\0';
}

static void test_rich_tables(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof rich_tables / sizeof *rich_tables; i++) {
    cx_text out = { 0 }, plain = { 0 };
    cx_train_rich_lines(&out, rich_tables[i].rows, rich_tables[i].n,
                        rich_tables[i].width, true);
    strip(cx_text_str(&out), &plain);
    check_text(&plain, rich_tables[i].text, "table", i);
    cx_text_free(&out);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_tqdm_numbers),
    SUPPORT_TEST(test_tqdm_lines),
    SUPPORT_TEST(test_rich_tables),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
