#!/bin/sh
# restarted.sh CALX PROGRAM: a job of two processes whose second rank is lost at
# step 21 of 32. Checkpoints are of every fourth step.
set -eu
cd "$TMPDIR"
CALX_QUIET=1 "$1" run -n 2 --max-restarts 1 "$2" >out 2>err || {
  cat out err
  exit 1
}
sed -n 's/^.*\(begins at step\)/\1/p; s/^.*\(ends at step\)/\1/p' out >got
printf 'begins at step 0\nbegins at step 20\nends at step 32\n' >wanted
diff wanted got || {
  cat out err
  exit 1
}
