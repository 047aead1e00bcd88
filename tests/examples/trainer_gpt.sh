#!/usr/bin/env bash
# trainer_gpt.sh PROGRAM: the trainer's flags for the example: accumulation, bf16, a
# checkpoint that a later run goes on from, a text at the end.
set -u
cd "$TMPDIR" || exit 1
gpt=$1
few=(--no_progress_bar --limit_train_batches=8 --limit_val_batches=2)
failed=0

check() {  # what, condition's status
  if [ "$2" = 0 ]; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi
}

"$gpt" "${few[@]}" --accumulate_grad_batches=4 --precision=bf16-mixed >first.txt 2>&1
check "two steps of four batches each in bf16" $?
saved=$(echo lightning_logs/version_0/checkpoints/epoch=0-perplexity=*.ckpt)
test -s "$saved"
check "the checkpoint has the perplexity in its name" $?
grep -q 'Loaded model weights from the checkpoint' first.txt
check "the best checkpoint writes the text" $?
test "$(sed '1,/perplexity  /d' first.txt | tail -n +2 | wc -c)" -gt 64
check "a text is written" $?
"$gpt" "${few[@]}" --max_epochs=2 --config=run.yaml >absent.txt 2>&1
test $? = 2 && grep -q 'run.yaml' absent.txt
check "an absent --config is named" $?
printf 'max_epochs: 2\naccumulate_grad_batches: 4\n' >run.yaml
"$gpt" "${few[@]}" --config=run.yaml >second.txt 2>&1
check "options from a file" $?
grep -q '`max_epochs=2` reached' second.txt
check "two epochs" $?
"$gpt" --fast_dev_run >fast.txt 2>&1
check "--fast_dev_run" $?
[ $failed = 0 ] || tail -n 5 ./*.txt
exit $failed
