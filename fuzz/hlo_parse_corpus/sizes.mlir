func.func @main(%x: tensor<6xf32>, %y: tensor<f32>, %i: tensor<1x4x1xf32>, %k: tensor<2x1x1xf32>, %n: tensor<i32>) {
  %c = stablehlo.constant dense<1> : tensor<1xi64>
  %s = stablehlo.constant dense<6> : tensor<1xi64>
  %d = stablehlo.constant dense<4> : tensor<1xi64>
  %p = stablehlo.constant dense<1> : tensor<1x2xi64>
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<1xi64>) -> tensor<6xf32>
  %1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<6xf32>
  %2 = stablehlo.real_dynamic_slice %x, %c, %d, %c : (tensor<6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>
  %3 = stablehlo.dynamic_pad %x, %y, %c, %c, %c : (tensor<6xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<13xf32>
  %4 = "stablehlo.dynamic_conv"(%i, %k, %p) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x5x1xf32>
  %5 = "stablehlo.dynamic_gather"(%x, %c, %d) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0]>}> : (tensor<6xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>
  %6 = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<6xf32>
  %7 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<6xf32>, tensor<i32>) -> tensor<6xf32>
  %8 = stablehlo.einsum %x, %x, config = "a,a->" : (tensor<6xf32>, tensor<6xf32>) -> tensor<f32>
  %9 = "stablehlo.torch_index_select"(%x, %c) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<6xf32>, tensor<1xi64>) -> tensor<1xf32>
  %10 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<6xf32>):
    %12 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<6xf32>) -> tensor<24xf32>
    stablehlo.return %12 : tensor<24xf32>
  }) : (tensor<6xf32>) -> !stablehlo.future<tensor<24xf32>>
  %11 = "stablehlo.async_done"(%10) : (!stablehlo.future<tensor<24xf32>>) -> tensor<24xf32>
  return
}
