/**
 * calx/calx.h: all of calx's public API.
 */
#ifndef CALX_CALX_H
#define CALX_CALX_H

#include "calx/amp.h"
#include "calx/autocast.h"
#include "calx/autograd.h"
#include "calx/collate.h"
#include "calx/collective.h"
#include "calx/creation.h"
#include "calx/data.h"
#include "calx/dataset.h"
#include "calx/debug.h"
#include "calx/device.h"
#include "calx/dist.h"
#include "calx/dtype.h"
#include "calx/export.h"
#include "calx/function.h"
#include "calx/image.h"
#include "calx/image_dataset.h"
#include "calx/init.h"
#include "calx/io.h"
#include "calx/iterable.h"
#include "calx/layers.h"
#include "calx/lr_scheduler.h"
#include "calx/nn.h"
#include "calx/ops.h"
#include "calx/optim.h"
#include "calx/optimizers.h"
#include "calx/progress.h"
#include "calx/rnn.h"
#include "calx/rnn_utils.h"
#include "calx/sampler.h"
#include "calx/scope.h"
#include "calx/status.h"
#include "calx/swa_utils.h"
#include "calx/tensor.h"
#include "calx/text.h"
#include "calx/transformer.h"
#include "calx/transforms.h"

#endif
