#!/usr/bin/env bash
# sharded.sh PROGRAM: on four devices the example learns, split by rows and by
# columns, and each device has a quarter of a weight; one step teaches nothing.
set -u
export CPU_NUM_DEVICES=4
cd "${TMPDIR:-/tmp}" || exit 1
for option in "" --tensor; do
  "$1" $option >run.txt || { cat run.txt; echo "FAILED: $option"; exit 1; }
  cat run.txt
  grep -q '^4 devices, each with 64 of 256 rows' run.txt || exit 1
done
"$1" --steps 1 && { echo "FAILED: one step is enough"; exit 1; }
"$1" --steps x 2>/dev/null
[ $? = 2 ] || { echo "FAILED: a wrong option ends with 2"; exit 1; }
