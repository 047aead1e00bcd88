#!/bin/sh
# fetch.sh: tools/fetch-plugins with a list of its own and a Python whose pip
# "downloads" from a folder: what it takes, leaves alone, refuses.
set -eu

source=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CALX_PLUGIN_DIR
mkdir -p "$work/root/tools" "$work/index"
cp "$source/tools/fetch-plugins" "$work/root/tools/"
fetch=$work/root/tools/fetch-plugins

fail() { echo "fetch.sh: $*" >&2; cat "$work/output" >&2; exit 1; }

# Runs it; expects this exit status and this text in what it says.
expect() { # STATUS TEXT ARGUMENT...
  status=0
  wanted=$1 text=$2
  shift 2
  PYTHON=$work/python "$fetch" "$@" >"$work/output" 2>&1 || status=$?
  [ $status = "$wanted" ] || fail "$*: exit status $status, wanted $wanted"
  grep -qF -- "$text" "$work/output" || fail "$*: does not say '$text'"
}

cat >"$work/python" <<EOF
#!/bin/sh
case "\$*" in
  '-m pip --version') exit 0 ;;
  '-m venv --without-pip '*) mkdir -p "\$4/bin"; exit ;;
  '-m pip --python '*)
    echo "\$*" >>"$work/installs"
    case "\$*" in *" \$(cat "$work/has") "*) ;; *) exit 1 ;; esac
    cp /bin/true "\$4"; exit ;;
  '-m pip download '*)
    echo "\$*" >>"$work/calls"
    while [ \$# -gt 0 ]; do
      case \$1 in --dest) cp "$work/index"/*.whl "\$2" || exit 1; exit 0 ;; esac
      shift
    done
    exit 1 ;;
esac
exec python3 "\$@"
EOF
chmod +x "$work/python"

# A wheel with one plugin.
printf 'a plugin' >"$work/plugin.so"
python3 - "$work" <<'EOF'
import sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(work + "/index/one-1.whl", "w") as z:
    z.write(work + "/plugin.so", "inside/plugin.so")
EOF
sum=$(sha256sum "$work/plugin.so" | cut -d' ' -f1)
list() { # SUM
  printf '# a comment\none one==1 inside/plugin.so %s folder/one.so\n' "$1"
}
file=$work/root/.cache/plugins/folder/one.so

list "$sum" >"$work/root/tools/plugins.txt"
expect 0 'fetch-plugins [' --help
expect 0 'one==1' --help
expect 1 "no plugin is called 'two'" two
expect 0 "one: $file" one
cmp -s "$work/plugin.so" "$file" || fail "the file is not the wheel's"
grep -q -- '--require-hashes --no-deps --only-binary=:all:' "$work/calls" ||
  fail "pip was not told to check hashes"
grep -q -- "--requirement $work/root/tools/requirements-one.txt" "$work/calls" ||
  fail "pip was not given the pinned requirement"

expect 0 'is there' all
[ "$(wc -l <"$work/calls")" = 1 ] || fail "downloaded twice"
printf 'changed' >"$file"
expect 0 "one: $file" all # a file with another sum is replaced
cmp -s "$work/plugin.so" "$file" || fail "the changed file stayed"

list "$(printf '' | sha256sum | cut -d' ' -f1)" >"$work/root/tools/plugins.txt"
expect 1 'has the wrong sha256' one
cmp -s "$work/plugin.so" "$file" || fail "a wrong file was put in place"
rm "$work/index"/*.whl
expect 1 'pip could not download one==1' one
[ -z "$(find "$work/root/.cache" -name '.fetch.*')" ] || fail "left over"

# A virtual environment: from the configured index, else from PyTorch's; made
# again when the pins are others; nothing is there after a failure.
venv=$work/root/.cache/plugins/env-1
echo 'env env==1 venv - env-1/bin/python' >"$work/root/tools/plugins.txt"
pins=$work/root/tools/requirements-env.txt
echo 'env==1' >"$pins"
echo nowhere >"$work/has"
expect 1 'env: pip could not install' env
[ -z "$(find "$work/root/.cache" -name 'env-1*')" ] || fail "left over"
: >"$work/installs"
echo '--requirement' >"$work/has"  # both indexes have it
expect 0 "env: $venv" env
[ -x "$venv/bin/python" ] || fail "no Python in the virtual environment"
grep -q -- '--require-hashes --no-deps --only-binary=:all:' "$work/installs" ||
  fail "pip was not told to check hashes"
expect 0 'is there' env
[ "$(wc -l <"$work/installs")" = 1 ] || fail "installed twice"
echo 'https://download.pytorch.org/whl/cpu' >"$work/has"
echo 'env==1 # other pins' >"$pins"
expect 0 "env: $venv" env
[ "$(wc -l <"$work/installs")" = 3 ] || fail "not from PyTorch's index"

# Every plugin of the real list is pinned by hash.
grep -v '^#' "$source/tools/plugins.txt" | while read -r name wheel _ _ _; do
  grep -qF "$wheel" "$source/tools/requirements-$name.txt" &&
    grep -q -- '--hash=sha256:[0-9a-f]\{64\}$' \
      "$source/tools/requirements-$name.txt" || exit 1
  [ "$(grep -c '==' "$source/tools/requirements-$name.txt")" = \
    "$(grep -c -- '--hash=' "$source/tools/requirements-$name.txt")" ] || exit 1
done || fail "a plugin of tools/plugins.txt is not pinned"
echo "fetch-plugins: ok"
