func.func @main(%x: tensor<2xf32>, %y: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>) {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.abs %x : tensor<2xf32>
  %1 = stablehlo.concatenate %y, %y, dim = 0 : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<0x3xf32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1, %2 : tensor<0x3xf32>, tensor<3xf32>
}
