#!/usr/bin/env bash
# leaves.sh EFFICIENTNET FILES: the example on JPEG files beside a CSV file, on two
# ranks and folds, with augmentation; what is missing is named.
set -u
cd "$TMPDIR" || exit 1
efficientnet=$1
failed=0

check() {  # what, condition's status
  if [ "$2" = 0 ]; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi
}

"$2" leaves 160
check "160 leaves are written" $?
CPU_NUM_DEVICES=2 "$efficientnet" --data leaves --image-size 32 --batch-size 16 \
  --epochs 1 --folds 2 --save model.pt >run.txt 2>&1
check "two folds on two ranks" $?
test "$(grep -c '^Fold [01] accuracy [0-9.]*%$' run.txt)" = 2
check "each fold's accuracy is told by one rank" $?
test -s model.pt
check "the model is saved" $?
"$efficientnet" --data leaves --image-size 32 --epochs 1 --target 100 >below.txt 2>&1
test $? = 21
check "an accuracy below the target: exit code 21" $?
rm leaves/images/Train_7.jpg
"$efficientnet" --data leaves --image-size 32 --epochs 1 >missing.txt 2>&1
test $? = 1 && grep -q 'Train_7.jpg' missing.txt
check "a missing image is named" $?
"$efficientnet" --data /nowhere --epochs 1 >absent.txt 2>&1
test $? = 1 && grep -q '/nowhere/train.csv' absent.txt
check "an absent folder is named" $?
"$efficientnet" --model b8 --epochs 1 >model.txt 2>&1
test $? = 1 && grep -q "b0 to b7, found 'b8'" model.txt
check "an unknown model is named" $?
[ $failed = 0 ] || tail -n 5 ./*.txt
exit $failed
