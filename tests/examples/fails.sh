#!/usr/bin/env bash
# fails.sh PROGRAM: a launch that fails with OUT_OF_RANGE is exit code 1.
set -u
said=$("$1" --epochs 1 --target 50 2>&1 >/dev/null)
code=$?
printf '%s\n' "$said"
[ $code = 1 ] && [[ $said == *"sample 7 was asked for"*OUT_OF_RANGE* ]] && exit 0
echo "FAILED: exit code $code, 1 is wanted"
exit 1
