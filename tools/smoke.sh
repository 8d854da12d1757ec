#!/usr/bin/env bash
# The package in environments that are not .venv: a minimal install of each extra, and the unit tests on the newest Python.
#
#   tools/smoke.sh extras           the wheel alone, with [broker], [console] and [spark]: what needs it works, nothing else is there
#   tools/smoke.sh newest PATHS...  these tests on the newest supported Python that is to be had here
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/system.sh

uv="$PWD/.venv/bin/uv"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What has no cached copy comes from the index.
offline_first() { "$uv" --offline "$@" 2>/dev/null || "$uv" "$@"; }

# install NAME REQUIREMENT: an environment of its own with that and nothing else, at the versions of uv.lock.
install() {
  "$uv" -q venv --python .venv/bin/python "$scratch/$1"
  offline_first pip install -q --python "$scratch/$1" -c "$scratch/pins.txt" "$2"
}

# smoke NAME PROGRAM: this Python program ends well there.
smoke() {
  local name=$1 program=$2
  "$scratch/$name/bin/python" -W error -c "$program" || { say "smoke test failed with $name: $program"; return 1; }
}

extras() {
  local wheel broker='
import pathlib, tempfile
from interpulse.testing import InProcessBroker
from interpulse.sync import Client
with tempfile.TemporaryDirectory() as directory, InProcessBroker(pathlib.Path(directory)) as broker:
    with Client(broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"smoke")
        assert consumer.receive().content == b"smoke"
'
  "$uv" export -q --frozen --offline --all-extras --no-emit-project --no-hashes --no-annotate -o "$scratch/pins.txt" >/dev/null
  offline_first build -q --wheel -o "$scratch"
  wheel=$(ls "$scratch"/*.whl)
  install plain "$wheel"
  smoke plain 'import interpulse.client, interpulse.sync, interpulse.cli.main'
  "$scratch/plain/bin/interpulse" --help >/dev/null
  if "$scratch/plain/bin/interpulse" standalone --data-dir "$scratch/data" 2>"$scratch/refused"; then return 1; fi
  grep -q 'interpulse\[broker\]' "$scratch/refused" || { cat "$scratch/refused" >&2; return 1; }
  install broker "$wheel[broker]"
  smoke broker "$broker"
  install console "$wheel[console]"
  smoke console '
import pathlib, tempfile, urllib.request
from interpulse.testing import InProcessBroker
with tempfile.TemporaryDirectory() as directory, InProcessBroker(pathlib.Path(directory)) as broker:
    with urllib.request.urlopen(f"{broker.web_url}/console") as page:
        assert b"Interpulse" in page.read()
'
  install spark "$wheel[spark]"
  smoke spark 'import pyspark_interpulse, interpulse.spark.data_source'
  say 'plain, [broker], [console] and [spark] work alone'
}

# Prints the interpreter of a version: one of this machine, else one that uv can get.
find_version() {
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python "$("$uv" python find --no-project "$1" 2>/dev/null)"; do
    if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
      printf '%s\n' "$candidate"; return
    fi
  done
  if "$uv" python install -q "$1" 2>/dev/null; then "$uv" python find --no-project "$1"; fi
}

newest() {
  local version found=''
  for version in 3.14 3.13 3.12; do
    found=$(find_version "$version")
    if [ -n "$found" ]; then break; fi
    say "Python $version is not to be had here"
  done
  [ -n "$found" ] || refuse "none of Python 3.12 to 3.14 was found, and none could be installed"
  say "testing with Python $version"
  export UV_PROJECT_ENVIRONMENT=$scratch/newest
  offline_first sync -q --frozen --extra broker --python "$found"
  # The native codec is built for every version of Python from 3.11 on: this one takes what `make setup` built.
  find .venv/lib -name 'interpulse_codec.*' -exec cp {} "$scratch/newest/lib/python$version/site-packages" \;
  "$scratch/newest/bin/python" -m pytest -q -m 'not slow' -p no:cacheprovider -n 2 --dist loadfile "$@"
}

case "${1:-}" in
  extras) extras ;;
  newest) shift; newest "$@" ;;
  *) refuse 'usage: tools/smoke.sh extras | newest PATHS...' ;;
esac
