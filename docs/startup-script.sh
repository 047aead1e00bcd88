#!/bin/bash
# startup-script.sh: makes a worker of a TPU ready for `calx run --tpu`.
#
# Every VM of a TPU runs it as root when it starts (docs/tpu-pods.md): it installs
# libtpu and what programs of calx need, and fetches the program and its data. What
# it shall fetch stands in the TPU's metadata:
#
#   calx-code   an archive (.tar.gz) with the program, gs://… or https://…
#   calx-data   a folder, gs://…; may be missing
#
# They are in /opt/calx/code and /opt/calx/data; /opt/calx/ready is written last.
# What is there is not fetched again. A failure ends the script; the log is
#   sudo journalctl -u google-startup-scripts
set -euo pipefail

root=${CALX_ROOT:-} # before all paths; tests set it
opt=$root/opt/calx

say() { printf 'startup-script: %s\n' "$*"; }

# An attribute of the metadata, or nothing.
attribute() {
  curl -sf -H 'Metadata-Flavor: Google' \
    "http://metadata.google.internal/computeMetadata/v1/instance/attributes/$1" ||
    true
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o DPkg::Lock::Timeout=600 update
  apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends \
    ca-certificates curl python3-pip zlib1g libxxhash0 libprotobuf-c1 \
    libjansson4 libzip4
}

# The plugin for TPUs. Images that have it keep theirs.
install_libtpu() {
  local found
  [ ! -e "$root/usr/lib/libtpu.so" ] || return 0
  python3 -m pip install --quiet --no-deps --target "$opt/libtpu" libtpu
  found=$(find "$opt/libtpu" -name libtpu.so | head -n 1)
  [ -n "$found" ] || {
    say "the package libtpu has no libtpu.so"
    return 1
  }
  mkdir -p "$root/usr/lib"
  ln -s "$found" "$root/usr/lib/libtpu.so"
}

# A file of a bucket or of a web server.
fetch() { # FROM TO
  case $1 in
    gs://*) gcloud storage cp "$1" "$2" ;;
    https://*) curl -sfL -o "$2" "$1" ;;
    *)
      say "'$1' is neither gs://… nor https://…"
      return 1
      ;;
  esac
}

# Unpacked beside the place and then moved there: it is whole, or not there.
fetch_code() {
  local from
  from=$(attribute calx-code)
  [ -n "$from" ] || {
    say "the metadata has no calx-code: gcloud … --metadata=calx-code=gs://…"
    return 1
  }
  [ ! -e "$opt/code" ] || return 0
  rm -rf "$opt/new"
  mkdir -p "$opt/new"
  fetch "$from" "$opt/code.tar.gz"
  tar -xzf "$opt/code.tar.gz" -C "$opt/new"
  mv "$opt/new" "$opt/code"
  rm "$opt/code.tar.gz"
}

fetch_data() {
  local from
  from=$(attribute calx-data)
  [ -n "$from" ] || return 0
  mkdir -p "$opt/data"
  gcloud storage rsync --recursive "$from" "$opt/data"
}

main() {
  [ ! -e "$opt/ready" ] || {
    say "$opt/ready is there: nothing to do"
    return 0
  }
  mkdir -p "$opt"
  # A command of its own each, so that its failure ends the script.
  install_packages
  install_libtpu
  fetch_code
  fetch_data
  chmod -R a+rX "$opt"
  date >"$opt/ready"
  say "this worker is ready"
}

main
