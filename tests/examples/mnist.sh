#!/usr/bin/env bash
# mnist.sh PROGRAM: the example on drawn and on real digits, and its exit codes.
set -u
cd "$TMPDIR" || exit 1
mnist=$1
failed=0

check() {  # what, condition's status
  if [ "$2" = 0 ]; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi
}

# Real digits: 98 % is the mean of three seeds over ten epochs; one short run
# must come near.
CALX_CPU_STATS=stats.txt "$mnist" --data "$CALX_SHARED/data/mnist" --epochs 3 \
  --target 95 >real.txt 2>&1
check "three epochs of real digits reach 95 %" $?
grep -q '^Max Accuracy: 9[0-9]\.[0-9][0-9]%$' <(tail -n 1 real.txt)
check "the last line is the accuracy" $?
grep -Eq '^Epoch 1 step 20/62 loss [0-9.]+ [0-9.e+]+ images/s ETA [0-9:]+$' real.txt
check "plain progress lines off a terminal" $?
[ "$CALX_PLUGIN" != calx ] || awk '{ n += $(NF - 2); bad += $NF }
  END { exit n == 0 || bad != 0 }' stats.txt
check "our engine interprets nothing" $?
! grep -q recompile real.txt
check "no program is compiled unexpectedly" $?

# Drawn digits: too hard for one epoch.
"$mnist" --epochs 1 --target 95 >drawn.txt 2>&1
test $? = 21
check "one epoch of drawn digits stays below 95 %: exit code 21" $?

"$mnist" --lr 1e9 --epochs 1 >nan.txt 2>&1
test $? = 1 && grep -q 'the loss is NaN' nan.txt
check "a loss that is NaN ends the run" $?
"$mnist" --lr 1e9 --epochs 1 --batch-size 2000 --target 0 >nan_last.txt 2>&1
test $? = 1 && grep -q 'the loss is NaN' nan_last.txt
check "a loss that is NaN in the last steps of an epoch ends the run" $?
"$mnist" --data /nowhere >absent.txt 2>&1
test $? = 1 && grep -q '/nowhere' absent.txt
check "an absent folder is named" $?
"$mnist" --nonsense >usage.txt 2>&1
test $? = 2
check "an unknown option: exit code 2" $?
"$mnist" --help | grep -q -- '--batch-size'
check "--help" $?
exit $failed
