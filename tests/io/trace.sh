#!/usr/bin/env bash
# trace.sh SAVE_ONCE: the system calls of a save, in their order: all writes, the
# file's fsync, the rename to its name, the folder's fsync, and nothing of the
# file after it.
set -u
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What the calls on $1's content, name and folder are, one letter each: w f r d.
letters() {
  awk -v path="$1" -v folder="$folder" '
    index($0, "unfinished") { next }
    # A file without a name is FOLDER/#123, with its name PATH.calx-….
    /^write\(/ && index($0, "<" folder "/") { printf "w"; next }
    /^fsync\(/ && index($0, "<" folder ">)") && / = 0$/ { printf "d"; next }
    /^fsync\(/ && index($0, "<" folder "/") && / = 0$/ { printf "f"; next }
    /^rename/ && index($0, "\"" path "\")") && / = 0$/ { printf "r"; next }
    /^(ftruncate|unlink|truncate)/ && index($0, folder) { printf "x" }
  ' "$folder/trace" | tr -s w
}

failed=0
for name in m.pt m.safetensors; do
  for time in first second; do
    path=$folder/$name
    strace -y -e trace=write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,unlink,ftruncate,truncate \
      -o "$folder/trace" "$program" "$path" || failed=1
    found=$(letters "$path")
    echo "$name, the $time time: $found"
    if [ "$found" != wfrd ]; then
      cat "$folder/trace"
      failed=1
    fi
  done
done
exit $failed
