"builtin.module"() <{sym_name = "random"}> ({
  "func.func"() <{function_type = (tensor<5xi16>, tensor<1x5x7xf64>) -> (tensor<5xi16>, tensor<5xi16>, tensor<5xi16>, tensor<5xi16>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5xi16>, %arg1: tensor<1x5x7xf64>):
    %0 = "stablehlo.subtract"(%arg1, %arg1) : (tensor<1x5x7xf64>, tensor<1x5x7xf64>) -> tensor<1x5x7xf64>
    %1 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<1x5x7xf64>) -> tensor<3x2x5x7xf64>
    %2 = "stablehlo.shift_right_arithmetic"(%arg0, %arg0) : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
    %3 = "stablehlo.constant"() <{value = dense<1> : tensor<5xi16>}> : () -> tensor<5xi16>
    %4 = "stablehlo.or"(%arg0, %3) : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
    %5 = "stablehlo.remainder"(%arg0, %4) : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
    %6 = "stablehlo.clamp"(%2, %2, %2) : (tensor<5xi16>, tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
    %7 = "stablehlo.add"(%5, %5) : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
    %8 = "stablehlo.constant"() <{value = dense<-5> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.case"(%8) ({
      "stablehlo.return"(%arg1) : (tensor<1x5x7xf64>) -> ()
    }, {
      %10 = "stablehlo.tanh"(%arg1) : (tensor<1x5x7xf64>) -> tensor<1x5x7xf64>
      "stablehlo.return"(%10) : (tensor<1x5x7xf64>) -> ()
    }, {
      %11 = "stablehlo.maximum"(%arg1, %0) : (tensor<1x5x7xf64>, tensor<1x5x7xf64>) -> tensor<1x5x7xf64>
      "stablehlo.return"(%11) : (tensor<1x5x7xf64>) -> ()
    }) : (tensor<i32>) -> tensor<1x5x7xf64>
    %12 = "stablehlo.constant"() <{value = dense<"0x020003000200FEFFFFFFFFFF0200FCFF01000000040004000100FDFF010002000000FDFF0400FEFFFDFFFEFFFDFF0100FFFFFCFFFEFF0100FFFFFDFFFFFF04000500FCFF0400FBFFFBFF01000000050005000200FBFF0400020001000000040003000300FDFF01000500FFFFFEFF04000200050002000200FFFFFCFF050005000000FCFF02000500040003000100FFFF02000400FFFFFBFF05000500FCFF0100FEFF0500FFFFFFFF010003000100FCFF050002000000FCFFFEFFFCFFFEFF0000FFFFFFFFFDFF04000100FCFF000000000200010003000200FEFFFEFF0300FBFFFDFF020002000200FFFF040002000200010000000200FDFFFFFF02000500FBFFFDFFFEFF05000300FEFFFCFFFFFFFDFF03000200FFFF0100FCFF00000300FDFF0300FCFF0400FCFF010003000000FBFF0100FFFF0500FCFFFCFFFDFF0500FCFFFBFF01000400040002000000FEFF0200FEFF00000300FCFF0500FEFFFDFFFDFF040004000000040002000200FDFFFBFF00000500FFFF01000400FBFF020005000400FEFF02000200FCFF0000FDFFFBFF01000000FCFF0000FBFF0000FDFF0100FEFFFCFFFDFF0300FEFFFBFFFFFFFDFF010005000400FBFFFDFFFEFFFBFF020001000200000000000000FCFF04000300FFFFFCFF02000300FEFFFFFFFBFFFFFFFEFF010001000400FDFFFDFF050005000100FDFFFFFFFEFF0300FCFF0000FFFFFFFF03000200FFFF0000FCFFFCFFFFFF0000FEFFFDFFFDFFFFFF0300FEFFFDFF0200FBFF0300FCFF05000000FFFFFFFF"> : tensor<8x5x7xi16>}> : () -> tensor<8x5x7xi16>
    %13 = "stablehlo.dot_general"(%2, %12) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>}> : (tensor<5xi16>, tensor<8x5x7xi16>) -> tensor<8x7xi16>
    %14 = "stablehlo.compare"(%2, %5) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi1>
    %15 = "stablehlo.and"(%7, %7) : (tensor<5xi16>, tensor<5xi16>) -> tensor<5xi16>
    "func.return"(%15, %6, %5, %7) : (tensor<5xi16>, tensor<5xi16>, tensor<5xi16>, tensor<5xi16>) -> ()
  }) : () -> ()
}) : () -> ()
