// html: report.html, the page of a run. `test_loggers_html page` writes one and
// has html_read.py read it.
#include <malloc.h>

#include "loggers/curves.h"
#include "pages.h"

// ---- what is in it ----------------------------------------------------------

static void log_run(calx_logger *l)
{
  for (int step = 0; step < 40; step++) {
    LOG(l, step, V("train_loss", 2.0 / (step + 1)),
        { "epoch", step / 10, true });
    if (step % 10 != 9) continue;
    LOG(l, step, V("val_loss", 2.5 / (step + 1)), V("acc", step * 0.0125));
  }
  const calx_hyperparameter values[] = {
    CALX_HYPERPARAMETER("lr", 0.01), CALX_HYPERPARAMETER("layers", 3),
    CALX_HYPERPARAMETER("opt", "adam"),
    CALX_HYPERPARAMETER("nesterov", (bool)true),
    CALX_HYPERPARAMETER("none", (char *)NULL)
  };
  CHECK_STATUS_OK(calx_logger_log_hyperparams(l, values, 5));
  CHECK_STATUS_OK(
      calx_logger_log_text(l, "Model summary", "  | Name\n0 | fc1", 0));
}

static void test_page(void **state)
{
  (void)state;
  calx_logger *l = calx_html_logger(folder);
  log_run(l);
  assert_false(is_there(PAGE));
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_PAGE(PAGE, "<h1>lightning_logs/version_0", "v2\">running<", "step 39,",
             "<td>still running</td>");
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  CHECK_PAGE(
      PAGE, "v1\">success<", "aria-label=\"loss\"", "aria-label=\"acc\"",
      ">train_loss</text>", ">val_loss</text>",
      "<title>val_loss\nstep 19: 0.125</title>",
      "<tr><td>train_loss</td><td>0.05</td><td class=\"dim\">39</td><td>0.05"
      "</td><td class=\"dim\">39</td><td>2</td><td class=\"dim\">0</td>"
      "<td>40</td></tr>",
      "<tr><td>epoch</td><td>3</td>", "<th>lr</th><td>0.01</td>",
      "<th>layers</th><td>3</td>", "<th>opt</th><td>adam</td>",
      "<th>nesterov</th><td>True</td>", "<th>none</th><td>None</td>",
      "<h2>Model summary</h2>\n<pre>  | Name\n0 | fc1</pre>",
      "<th>Exit</th><td>success</td>", "<th>Host</th><td>",
      "<th>Processors</th><td>", "<th>calx</th><td>", "<th>Program</th><td>/",
      "<th>Devices</th><td>none was open</td>");
  check_file("lightning_logs/version_0/hparams.yaml",
             "layers: 3\nlr: 0.01\nnesterov: true\nnone: null\nopt: adam\n");
}

static void test_states(void **state)
{
  (void)state;
  calx_logger *l = calx_html_logger(folder, .name = "n", .version = "v",
                                    .title = "My <run>", .prefix = "p");
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  assert_false(is_there("n"));
  LOG(l, 1, V("train_loss", 1), V("step", 5), V("train_loss", 0.25));
  LOG(l, 1, V("test_loss", 0.5));
  CHECK_STATUS_OK(calx_logger_finalize(l, "failed"));
  CHECK_PAGE("n/v/report.html", "My &lt;run&gt;", "v3\">failed<",
             "<td>p-train_loss</td><td>0.25</td>", "<td>p-step</td><td>5</td>",
             "aria-label=\"loss\"");
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_PAGE("n/v/report.html", "v3\">failed<");
  LOG(l, 2, V("test_loss", 1));
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_PAGE("n/v/report.html", "v2\">running<");
  CHECK_STATUS_OK(calx_logger_finalize(l, "<odd>"));
  CHECK_PAGE("n/v/report.html", "v2\">&lt;odd&gt;<");
  calx_logger_free(l);
}

static void test_empty(void **state)
{
  (void)state;
  calx_logger *l = calx_html_logger(folder);
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_PAGE(PAGE, "No metric was logged.", "<h2>Environment</h2>");
  LOG(l, 0, V("a", nan("")), V("b", 1));
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  CHECK_PAGE(PAGE, "<td>a</td><td>nan</td>", "no finite value", "<td>1</td>",
             "<th>not finite</th>");
  char *page = page_of(PAGE);
  assert_null(strstr(page, "aria-label=\"a\""));
  assert_null(strstr(page, "<h2>Hyperparameters</h2>"));
  test_free(page);
}

static void test_texts(void **state)
{
  (void)state;
  char name[16];
  static char big[300000];
  calx_logger *l = calx_html_logger(folder, .no_profile = true);
  memset(big, 'x', sizeof big - 1);
  CHECK_STATUS_OK(calx_logger_log_text(l, "note", "old", 0));
  CHECK_STATUS_OK(calx_logger_log_text(l, "note", "<new>", 1));
  CHECK_STATUS_OK(calx_logger_log_text(l, "big", big, 1));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_log_text(l, NULL, "a", 0),
               "the name is NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_log_text(l, "a", NULL, 0),
               "the text is NULL");
  calx_log_set(keep_line, NULL);
  for (int i = 0; i < 70; i++) {
    snprintf(name, sizeof name, "t%d", i);
    CHECK_STATUS_OK(calx_logger_log_text(l, name, "", 0));
  }
  calx_log_set(NULL, NULL);
  assert_non_null(strstr(said, "the text 't62' is left out"));
  CHECK_STATUS_OK(calx_logger_save(l));
  calx_logger_free(l);
  CHECK_PAGE(PAGE, "<pre>&lt;new&gt;</pre>",
             "xx\n\xe2\x80\xa6 and 37855 bytes more</pre>", "<h2>t61</h2>");
  char *page = page_of(PAGE);
  assert_null(strstr(page, ">old<"));
  assert_null(strstr(page, "<h2>t62</h2>"));
  test_free(page);
  // Others have no place for a text.
  l = calx_csv_logger(folder);
  CHECK_STATUS_OK(calx_logger_log_text(l, "a", "b", 0));
  calx_logger_free(l);
}

// ---- bounds -----------------------------------------------------------------

static void test_many_rows(void **state)
{
  (void)state;
  enum { ROWS = 1000000 };
  calx_logger *l = calx_html_logger(folder);
  LOG(l, 0, V("loss", 9), V("acc", 0), V("lr", 1));
  const size_t before = mallinfo2().uordblks;
  for (int step = 1; step < ROWS; step++) {
    calx_logged_value row[] = { V("loss", 1e6 / (step + 1e5)),
                                V("acc", step * 1e-6), V("lr", 1e-3) };
    CHECK_STATUS_OK(calx_logger_log_metrics(l, row, 3, step));
  }
  assert_true(mallinfo2().uordblks - before < 200000);
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  CHECK_PAGE(PAGE, "<tr><td>acc</td><td>0.999999</td><td class=\"dim\">999999",
             "\nstep 999999: 0.999999</title>", "<td>1000000</td>");
  assert_in_range(size_of(PAGE), 10000, 150000);
}

static void test_many_names(void **state)
{
  (void)state;
  char name[32];
  calx_log_set(keep_line, NULL);
  calx_logger *l = calx_html_logger(folder);
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < 600; i++) {
      snprintf(name, sizeof name, "metric_%d", i);
      LOG(l, step, V(name, i));
    }
  }
  calx_log_set(NULL, NULL);
  assert_non_null(strstr(said, "'metric_512' is left out"));
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  CHECK_PAGE(PAGE, "<td>metric_511</td>", "More than 512 metrics");
  assert_true(size_of(PAGE) < 4000000);
}

static void test_thinning(void **state)
{
  (void)state;
  cx_loggers_curves all = { 0 };
  for (int step = 0; step < 10000; step++) {
    const calx_logged_value v = V("a", step == 7 ? nan("") : step);
    CHECK_STATUS_OK(cx_loggers_curves_add(&all, "", &v, 1, step));
    const cx_loggers_curve *c = &all.items[0];
    assert_true(c->count <= CX_LOGGERS_POINTS + 1);
    assert_true(c->x[c->count - 1] == step);
  }
  const cx_loggers_curve *c = &all.items[0];
  assert_int_equal(c->stride, 16);
  assert_int_equal(c->count, 626);  // 0, 16, … 9984, and 9999
  for (size_t i = 0; i + 1 < c->count; i++)
    assert_true(c->x[i] == 16.0 * (double)i);
  assert_int_equal(c->not_finite, 1);
  assert_true(c->least.step == 0 && c->most.step == 9999);
  cx_loggers_curves_free(&all);
}

static void test_subjects(void **state)
{
  (void)state;
  static const char *const names[][2] = {
    { "train_loss", "loss" },
    { "val_loss", "loss" },
    { "loss", "loss" },
    { "train_loss_epoch", "loss" },
    { "loss/test", "loss" },
    { "val/loss", "loss" },
    { "valid.loss", "loss" },
    { "validation-loss", "loss" },
    { "lr-Adam", "lr-Adam" },
    { "train", "train" },
    { "_step", "_step" },
    { "val_", "val_" },
    { "training_acc", "acc" },
    { "trainloss", "trainloss" },
    { "val_f1/dataloader_idx_12", "f1" },
    { "x/dataloader_idx_", "x/dataloader_idx_" },
    { "", "" },
    { "test_val_acc", "val_acc" },
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const cx_loggers_subject s = cx_loggers_subject_of(names[i][0]);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)s.size, s.text);
    assert_string_equal(text, names[i][1]);
  }
}

// ---- failures ---------------------------------------------------------------

static void test_bad_folder(void **state)
{
  (void)state;
  calx_logger *l = calx_html_logger(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_save(l),
               "calx_html_logger: save_dir is NULL");
  calx_logger_free(l);
  put_file("file", "");
  l = calx_html_logger(in_folder("file"));
  const calx_logged_value v = V("a", 1);
  CHECK_STATUS(CALX_NOT_FOUND, calx_logger_log_metrics(l, &v, 1, 0),
               "cannot make folder", "name 'lightning_logs'");
  calx_logger_free(l);
  l = calx_html_logger(folder);
  LOG(l, 0, V("a", 1));
  CHECK_STATUS_OK(calx_logger_save(l));
  assert_int_equal(remove(in_folder(PAGE)), 0);
  assert_int_equal(mkdir(in_folder(PAGE), 0777), 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_logger_finalize(l, "success"),
               "report.html");
  calx_logger_free(l);
}

// ---- read back --------------------------------------------------------------

static void test_read(void **state)
{
  (void)state;
  char command[1024];
  calx_logger *l =
      calx_html_logger(folder, .title = "<script>alert(0)</script>");
  log_run(l);
  for (int step = 0; step < 50; step++) {
    LOG(l, step, V("<script>alert(\"1\")</script> & 'x'", step),
        V("gaps", step % 10 == 5   ? nan("")
                  : step % 17 == 4 ? HUGE_VAL
                                   : step),
        V("\xc3\xa9\x01\x1b[31m\xff\n\xe2\x80\xae", -step));
  }
  CHECK_STATUS_OK(calx_logger_log_hyperparams(
      l,
      (calx_hyperparameter[]){
          CALX_HYPERPARAMETER("\"<img src=x onerror=y>\"", "</td><b>'\xfe") },
      1));
  CHECK_STATUS_OK(calx_logger_log_text(
      l, "</h2><i>", "</pre><script>\x02]]>\xed\xa0\x80</script>", 0));
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  snprintf(command, sizeof command, "python3 -B '%s/html_read.py' '%s'",
           CX_TEST_DIR, in_folder(PAGE));
  assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
  (void)argv;
  const struct CMUnitTest page[] = { FOLDER_TEST(test_read) };
  const struct CMUnitTest tests[] = {
    FOLDER_TEST(test_page),       FOLDER_TEST(test_states),
    FOLDER_TEST(test_empty),      FOLDER_TEST(test_texts),
    FOLDER_TEST(test_many_rows),  FOLDER_TEST(test_many_names),
    FOLDER_TEST(test_thinning),   FOLDER_TEST(test_subjects),
    FOLDER_TEST(test_bad_folder),
  };
  if (argc > 1) return cmocka_run_group_tests(page, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
