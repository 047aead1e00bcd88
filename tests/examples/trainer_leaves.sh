#!/usr/bin/env bash
# trainer_leaves.sh PROGRAM FILES: the example on JPEG files beside CSV files, on two
# ranks and folds, in bf16: a row of probabilities for each unknown leaf.
set -u
cd "$TMPDIR" || exit 1
leaves=$1
failed=0

check() {  # what, condition's status
  if [ "$2" = 0 ]; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi
}

"$2" leaves 160
check "160 leaves are written" $?
CPU_NUM_DEVICES=2 "$leaves" --data leaves --image-size 32 --batch-size 16 \
  --max_epochs=1 --folds 2 --precision=bf16-mixed >run.txt 2>&1
check "two folds on two ranks" $?
grep -Eq '^auroc [01]\.[0-9]{4}$' run.txt
check "the area under the curves is told" $?
ls lightning_logs/version_[01]/checkpoints/epoch=0-step=4.ckpt >/dev/null
check "each fold has a checkpoint" $?
cut -d, -f1 leaves/sample_submission.csv | cmp - <(cut -d, -f1 submission.csv)
check "a row for each unknown leaf, in the file's order" $?
head -n 1 leaves/sample_submission.csv | cmp - <(head -n 1 submission.csv)
check "the columns are the classes" $?
awk -F, 'NR > 1 { s = $2 + $3 + $4 + $5; bad += s < 0.98 || s > 1.02 }
  END { exit bad != 0 }' submission.csv
check "probabilities" $?
"$leaves" --data leaves --image-size 32 --batch-size 8 --fast_dev_run \
  --save few.csv >fast.txt 2>&1
check "--fast_dev_run" $?
test "$(wc -l <few.csv)" = 41 && ! grep -q nan few.csv
check "as many rows, although few are predicted" $?
"$leaves" --data /nowhere >absent.txt 2>&1
test $? = 1 && grep -q '/nowhere/train.csv' absent.txt
check "an absent folder is named" $?
"$leaves" --model b8 --max_epochs=1 >model.txt 2>&1
test $? = 1 && grep -q "b0 to b7, found 'b8'" model.txt
check "an unknown model is named" $?
"$leaves" --max_epoch=1 >option.txt 2>&1
test $? = 2 && grep -q 'the nearest is --max_epochs' option.txt
check "an option that is nearly the trainer's: exit code 2" $?
[ $failed = 0 ] || tail -n 5 ./*.txt
exit $failed
