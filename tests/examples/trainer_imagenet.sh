#!/usr/bin/env bash
# trainer_imagenet.sh PROGRAM: three epochs of one step on 1, 2 and 4 ranks learn their
# fake images; flags that are wrong are named.
set -u
cd "$TMPDIR" || exit 1
imagenet=$1
failed=0

check() {  # what, condition's status
  if [ "$2" = 0 ]; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi
}

for ranks in 1 2 4; do
  CPU_NUM_DEVICES=$ranks "$imagenet" --fake_data --image_size 32 --blocks 1 \
    --batch_size 4 --test_set_batch_size 4 --lr 0.01 --num_epochs 3 \
    --limit_train_batches 1 --limit_val_batches 1 --no_progress_bar \
    --default_root_dir=$ranks >$ranks.txt 2>&1
  check "$ranks ranks" $?
  awk '/^Loss: / { n += $2 < 6.9 } END { exit n != 1 }' $ranks.txt
  check "the loss falls below ln 1000" $?
  test -s $ranks/lightning_logs/version_0/checkpoints/epoch=2-step=3.ckpt
  check "as many steps on $ranks ranks" $?
done
"$imagenet" >none.txt 2>&1
test $? = 2 && grep -q -- '--fake_data is wanted' none.txt
check "no data: exit code 2" $?
"$imagenet" --fake_data --batch_size=0 >size.txt 2>&1
test $? = 2 && grep -q -- "--batch_size wants .* found '0'" size.txt
check "a batch size of 0: exit code 2" $?
"$imagenet" --fake_data --precision=7 >option.txt 2>&1
test $? = 2 && grep -q 'Precision 7 is invalid' option.txt
check "a wrong precision is named" $?
[ $failed = 0 ] || tail -n 5 ./*.txt
exit $failed
