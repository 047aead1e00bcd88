#!/usr/bin/env bash
# examples.sh MNIST_DP EFFICIENTNET CALX: the examples of several ranks, as threads and
# as processes, and their exit codes.
set -u
cd "$TMPDIR" || exit 1
mnist_dp=$1 efficientnet=$2 calx=$3
failed=0

check() {  # what, condition's status
  if [ "$2" = 0 ]; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi
}

# With --long the whole training of the documentation on two ranks of our engine,
# else the beginning of it, and on XLA, which compiles for long, on two ranks alone.
worlds=(2 4)
if [ "$CALX_PLUGIN" != calx ] && [ -z "${CALX_TEST_LONG:-}" ]; then worlds=(2); fi
for n in "${worlds[@]}"; do
  epochs=3 target=95
  if [ $n = 2 ] && [ "$CALX_PLUGIN" = calx ] && [ -n "${CALX_TEST_LONG:-}" ]; then
    epochs=18 target=98
  fi
  CPU_NUM_DEVICES=$n "$mnist_dp" --data "$CALX_SHARED/data/mnist" \
    --epochs $epochs --target $target >real.txt 2>&1
  check "$epochs epochs of real digits on $n ranks reach $target %" $?
  test "$(grep -c '^Epoch 1 accuracy ' real.txt)" = 1
  check "one rank of $n prints" $?
  grep -q "^Epoch 1 step 20/$((62 / n)) \|^Epoch 1 step $((62 / n))/" real.txt
  check "a rank of $n has its share of the batches" $?
  grep -q '^Max Accuracy: 9[0-9]\.[0-9][0-9]%$' real.txt
  check "the best accuracy is told" $?
  ! grep -q recompile real.txt
  check "no program is compiled unexpectedly" $?
done

CPU_NUM_DEVICES=2 "$mnist_dp" --epochs 1 --target 95 >drawn.txt 2>&1
test $? = 21
check "one epoch of drawn digits stays below 95 %: exit code 21" $?
"$mnist_dp" --data /nowhere >absent.txt 2>&1
test $? = 1 && grep -q '/nowhere' absent.txt
check "an absent folder is named" $?
"$mnist_dp" --help | grep -q -- '--batch-size'
check "--help" $?

CPU_NUM_DEVICES=2 "$mnist_dp" --epochs 1 --lr 0 --target 60 >still.txt 2>&1
test $? = 21
check "a rate of 0 is no default: nothing is learned" $?

# Processes work together on our engine alone, and XLA's takes minutes for
# EfficientNet.
if [ "$CALX_PLUGIN" = calx ]; then
  train=(--no_dropout --batch-size 16 --lr 1.5e-3)
  CPU_NUM_DEVICES=2 "$efficientnet" "${train[@]}" --epochs 3 --target 70 \
    --save leaves.safetensors >leaves.txt 2>&1
  check "three epochs of leaves on 2 ranks reach 70 %" $?
  test -s leaves.safetensors
  check "the model is saved" $?
  test "$(grep -c '^Epoch 2 accuracy ' leaves.txt)" = 1
  check "one rank prints" $?
  "$calx" run -n 4 "$mnist_dp" --data "$CALX_SHARED/data/mnist" \
    --epochs 3 --target 95 >processes.txt 2>&1
  check "3 epochs of real digits on 4 processes reach 95 %" $?
  test "$(grep -c 'Epoch 1 accuracy ' processes.txt)" = 1
  check "one process prints" $?
  "$calx" run -n 2 "$efficientnet" "${train[@]}" --epochs 1 \
    --save processes.safetensors >processes.txt 2>&1
  check "an epoch of leaves on 2 processes" $?
  grep -qF "$(grep '^Epoch 1 accuracy ' leaves.txt)" processes.txt
  check "2 processes reach what 2 threads do" $?
  test -s processes.safetensors
  check "the model of 2 processes is saved" $?
  "$calx" run -n 2 "$mnist_dp" --epochs 1 --target 100 >below.txt 2>&1
  test $? = 21
  check "the processes' exit code 21 is calx run's" $?
fi
exit $failed
