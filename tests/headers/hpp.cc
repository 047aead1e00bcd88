// calx/calx.hpp in use: numbers as operands, options by name, call sites, lists
// of sizes in variables, and training steps of a small net.
#include <calx/calx.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

int failures;

void expect(bool good, const char *what, double found)
{
  if (good) return;
  failures++;
  std::printf("failed: %s: %g\n", what, found);
}

void test_operators()
{
  calx::scope step;
  const calx_dims shape = CALX_SHAPE(2, 3);
  calx::tensor x = calx::full(shape, 3);
  calx::tensor y = (2 * x + 1) / 2.0 - x;  // 0.5
  expect(calx::item(calx::sum(y)) == 3, "sum of 6 halves",
         calx::item(calx::sum(y)));
  calx::tensor rows = calx::sum(x, [](auto &o) { o.dims = CALX_DIMS(1); });
  expect(calx_tensor_dim(rows.get(), 0) == 2 && calx_tensor_rank(rows.get()) == 1,
         "sum over the columns", 0);
  calx::options<calx_add_options> half;
  half.alpha = 0.5;
  expect(calx::item(calx::mean(calx::add(x, 4, half))) == 5, "alpha", 0);
  expect(calx::item(calx::mean(-x)) == -3, "minus", 0);
  // what no int64_t holds, and types narrower than it
  calx::tensor three = calx::full(CALX_SHAPE(1), 3);
  expect(calx::item(three * UINT64_MAX) == 0x1.8p65, "beyond int64_t", 0);
  expect(calx::item(three * static_cast<unsigned char>(7)) == 21, "a char", 0);
  expect(calx::item(three * 0.5L) == 1.5, "long double", 0);
  calx::check(step.end());
}

void test_place()
{
  calx::scope step;
  calx::tensor x = calx::ones(CALX_SHAPE(2));
  int line = __LINE__ + 1;
  calx::tensor y = x + calx::ones(CALX_SHAPE(3));
  (void)y;
  calx::status s = step.end();
  std::string wanted = "hpp.cc:" + std::to_string(line) + ":";
  expect(s && s.code() == CALX_INVALID_ARGUMENT, "no error", 0);
  expect(std::strstr(s.message(), wanted.c_str()) != nullptr, s.message(), line);
  bool thrown = false;
  try {
    calx::check(std::move(s));
  } catch (const calx::error &e) {
    thrown = e.code() == CALX_INVALID_ARGUMENT;
  }
  expect(thrown, "an error is thrown", 0);
}

// The place of what has no operand, and of the C functions after here().
template <class Call>
void expect_line(int line, const char *what, Call &&call)
{
  calx::tensor elsewhere = calx::ones(CALX_SHAPE(2));
  (void)elsewhere;
  calx::status s(call());
  const std::string wanted = "hpp.cc:" + std::to_string(line) + ":";
  expect(s && std::strstr(s.message(), wanted.c_str()) != nullptr,
         s ? s.message() : what, line);
}

void test_places_without_operands()
{
  calx_device *device = nullptr;
  expect_line(__LINE__ + 1, "device_open", [&] {
    return calx::device_open("nowhere", &device).release(); });
  expect_line(__LINE__ + 1, "sgd", [] {
    return calx_optimizer_error(calx::sgd(nullptr).get()); });
  expect_line(__LINE__ + 2, "cat", [] {
    calx::scope s;
    calx::cat({ calx::ones(CALX_SHAPE(2)), calx::ones(CALX_SHAPE(3, 3)) }, 0);
    return s.end().release();
  });
  expect_line(__LINE__ + 2, "tensor_from", [] {
    calx::scope s;
    calx::tensor_from(nullptr, CALX_F32, CALX_SHAPE(3));
    return s.end().release();
  });
  expect_line(__LINE__ + 2, "here", [] {
    calx_value *value = nullptr;
    calx::here();
    return calx_load_with("/no/such/file.pt", nullptr, &value);
  });
}

void f32(calx_create_options &o)
{
  o.dtype = CALX_F32;
}

// y = 2 a - b is learnt from 64 drawn points.
void test_training()
{
  calx_manual_seed(1);
  calx::module_ptr model(calx_module_new("net", nullptr, nullptr));
  calx_module *hidden = calx::linear(model.get(), "hidden", 2, 16);
  calx_module *out = calx::linear(model.get(), "out", 16, 1);
  calx::optimizer_ptr opt = calx::adam(model.get(), [](auto &o) { o.lr = 0.02; });
  calx::check(calx_module_error(model.get()));
  calx::check(calx_optimizer_error(opt.get()));
  double first = 0, last = 0;
  for (int i = 0; i < 60; i++) {
    calx::scope step;
    calx::tensor x = calx::rand(CALX_SHAPE(64, 2));
    calx::tensor wanted = calx_linear(
        x.get(), calx::reshape(calx::arange(2, -2, -3, f32), CALX_SHAPE(1, 2)).get(),
        nullptr);
    calx::zero_grad(opt);
    calx::tensor y = calx::forward(out, calx::relu(calx::forward(hidden, x)));
    calx::tensor loss = calx::mean(calx::square(y - wanted));
    calx::backward(loss);
    calx::step(opt);
    calx::sync({ loss });
    last = calx::item(loss);
    if (i == 0) first = last;
    calx::check(step.end());
  }
  expect(std::isfinite(last) && last < 0.1 * first, "loss of the last step", last);
}

// Layers with options by name; those without options are called as in C.
void test_layers()
{
  calx::scope step;
  calx::module_ptr model(calx_nn_sequential(nullptr, nullptr));
  calx_module *m = model.get();
  calx::nn::conv2d(m, nullptr, 1, 4, 3, [](auto &o) { o.padding[0] = 1; });
  calx::nn::batch_norm2d(m, nullptr, 4, [](auto &o) { o.eps = 1e-3; });
  calx_nn_relu(m, nullptr);
  calx::nn::max_pool2d(m, nullptr, 2);
  calx::nn::flatten(m, nullptr);
  calx::nn::linear(m, nullptr, 16, 2, [](auto &o) { o.no_bias = true; });
  const calx::tensor y = calx::forward(m, calx::ones(CALX_SHAPE(3, 1, 4, 4)));
  expect(calx_tensor_dim(y.get(), 0) == 3 && calx_tensor_dim(y.get(), 1) == 2,
         "rows of layers", (double)calx_tensor_dim(y.get(), 0));
  expect(calx_module_find(m, "5.bias") == nullptr, "a bias", 1);
  calx::check(calx_module_error(m));
  calx::check(step.end());
}

// Regions end with their objects; losses, schedules and the scaling of losses.
void test_regions_and_losses()
{
  calx::scope step;
  {
    calx::no_grad off;
    expect(!calx_is_grad_enabled(), "gradients in no_grad", 1);
    calx::enable_grad on;
    expect(calx_is_grad_enabled(), "gradients in enable_grad", 0);
  }
  expect(calx_is_grad_enabled(), "gradients behind no_grad", 0);
  {
    calx::inference_mode off;
    expect(!calx_is_grad_enabled(), "gradients in inference_mode", 1);
    calx::autocast half(CALX_BF16);
    expect(calx_autocast_dtype() == CALX_BF16, "type in autocast",
           (double)calx_autocast_dtype());
  }
  expect(calx_autocast_dtype() == CALX_DTYPE_DEFAULT, "type behind autocast",
         (double)calx_autocast_dtype());
  calx::tensor x = calx::full(CALX_SHAPE(2, 3), 3);
  const double mse = calx::item(calx::mse_loss(x, 1));
  expect(mse == 4, "mse_loss", mse);
  const double sum = calx::item(
      calx::l1_loss(x, 1, [](auto &o) { o.reduction = CALX_SUM; }));
  expect(sum == 12, "l1_loss", sum);
  calx::module_ptr m(calx_nn_triplet_margin_loss_with(nullptr, nullptr, nullptr));
  const double triplet = calx::item(calx::forward(m.get(), x, x, x));
  expect(triplet == 1, "a layer of three tensors", triplet);
  calx::check(step.end());
}

void test_scaler_and_schedule()
{
  calx::module_ptr m(calx_nn_linear_with(nullptr, nullptr, 2, 1, nullptr));
  calx::optimizer_ptr opt = calx::sgd(m.get(), [](auto &o) { o.lr = 0.5; });
  calx::lr_scheduler_ptr lr =
      calx::step_lr(opt, 1, [](auto &o) { o.gamma = 0.5; });
  calx::grad_scaler_ptr scaler =
      calx::grad_scaler([](auto &o) { o.init_scale = 8; });
  calx::scope step;
  calx::tensor y = calx::forward(m.get(), calx::ones(CALX_SHAPE(1, 2)));
  calx::backward(calx::scale(scaler, calx::sum(y)));
  calx::step(scaler, opt);
  calx::update(scaler);
  calx::sync();
  calx_lr_scheduler_step(lr.get());
  calx::check(step.end());
  expect(calx_optimizer_steps(opt.get()) == 1, "steps",
         (double)calx_optimizer_steps(opt.get()));
  expect(calx_grad_scaler_get_scale(scaler.get()) == 8, "scale",
         calx_grad_scaler_get_scale(scaler.get()));
  expect(calx_optimizer_lr(opt.get()) == 0.25, "learning rate",
         calx_optimizer_lr(opt.get()));
}

}  // namespace

int main()
{
  try {
    test_operators();
    test_place();
    test_places_without_operands();
    test_training();
    test_layers();
    test_regions_and_losses();
    test_scaler_and_schedule();
  } catch (const calx::error &e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
  return failures != 0;
}
