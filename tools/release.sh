#!/usr/bin/env bash
# Build sdist, wheel and the codec's wheel into dist/, check them with twine, and install each in an empty environment.
#
#   tools/release.sh          of the present version
#   tools/release.sh 0.2.0    set that version and write its part of CHANGELOG.md first
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/system.sh

: "${UV_RUN:?start this with make release}"
version=${1:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

set_version() {
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+((a|b|rc)[0-9]+)?$ ]] || refuse "'$version' is no version: use x.y.z, or x.y.zrc1 for a candidate."
  [ -z "$(git status --porcelain)" ] || refuse "There are uncommitted changes: commit or stash them, then run make release again."
  $UV_RUN towncrier build --yes --version "$version"
  sed -i "s/^__version__ = .*/__version__ = \"$version\"/" src/interpulse/__init__.py
  sed -i "0,/^version = .*/s//version = \"$version\"/" native/Cargo.toml native/frames/Cargo.toml
  if command -v cargo >/dev/null; then cargo update -q --workspace --offline --manifest-path native/Cargo.toml; fi
}

build_all() {
  rm -rf dist
  .venv/bin/uv build -q -o dist
  if command -v cargo >/dev/null; then
    $UV_RUN maturin build -q --release --locked --manifest-path native/Cargo.toml -o dist
  else
    say 'No cargo here: the wheel of the codec is not built.'
  fi
  $UV_RUN twine check --strict dist/*
}

# installs NAME FILE...: in an empty environment, with the command line and the client.
installs() {
  local name=$1
  shift
  .venv/bin/uv -q venv --python .venv/bin/python "$scratch/$name"
  .venv/bin/uv pip install -q --python "$scratch/$name" "$@"
  "$scratch/$name/bin/python" -W error -c 'import interpulse.client, interpulse.sync'
  say "$name: $("$scratch/$name/bin/interpulse" --version)"
}

[ -z "$version" ] || set_version
build_all
for file in dist/interpulse-*.whl dist/interpulse-*.tar.gz; do installs "${file##*.}" "$file"; done
for codec in dist/interpulse_codec-*.whl; do
  [ ! -e "$codec" ] || installs codec dist/interpulse-*.whl "$codec"
done
say "built and installed: $(cd dist && echo *)"
[ -z "$version" ] || say "Review the changes, commit them, and tag the commit v$version."
