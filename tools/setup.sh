#!/usr/bin/env bash
# Makes the clone ready to run and test: a virtual environment with what the lock file names, and a Java runtime.
# Changes nothing, and takes well under a second, when everything is in place.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/system.sh

venv=.venv
# The uv that the tests run: another version has another cache, and what it downloads here they would download again.
uv_version=$(sed -n '/^name = "uv"$/{n;s/^version = "\(.*\)"$/\1/p;}' uv.lock)

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s\n' "$candidate"; return
    fi
  done
}

# False also for what an interrupted creation left behind.
usable_environment() {
  "$venv/bin/python" -c 'from importlib.util import find_spec as f; raise SystemExit(not (f("pip") or f("uv")))' 2>/dev/null
}

create_environment() {
  local python version
  python=$(find_python)
  [ -n "$python" ] || refuse "Python 3.11 or newer is needed and was not found: install it, or name one with make PYTHON=/path/to/python3."
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    install_first_of "python$version-venv" python3-venv || refuse "Python's venv module is missing:" \
      "install it (on Debian and Ubuntu: sudo apt-get install python$version-venv) and try again."
  fi
  say "creating $venv with Python $version"
  "$python" -m venv --clear "$venv"
}

install_packages() {
  local wanted installed
  wanted=$(cat pyproject.toml uv.lock | cksum)
  installed=$(cat "$venv/.installed" 2>/dev/null || true)
  [ "$wanted" = "$installed" ] && return
  say "installing what uv.lock names (the first time that takes a few minutes)"
  "$venv/bin/python" -c 'import uv' 2>/dev/null || "$venv/bin/python" -m pip install -q "uv==$uv_version"
  UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=$venv \
    "$venv/bin/python" -m uv sync -q --frozen --all-extras --python "$venv/bin/python"
  printf '%s\n' "$wanted" > "$venv/.installed"
}

# The compiled frame codec, where there is a Rust toolchain. Nothing needs it: without it, or when it cannot be built,
# frames are read and written in Python.
install_codec() {
  local wanted
  command -v cargo >/dev/null || return 0
  wanted=$(cat native/Cargo.toml native/Cargo.lock native/src/*.rs native/frames/Cargo.toml native/frames/src/*.rs | cksum)
  [ "$wanted" = "$(cat "$venv/.codec" 2>/dev/null || true)" ] && return
  say "compiling the native frame codec"
  if cargo build -q --release --locked --manifest-path native/Cargo.toml --target-dir native/target 2>"$venv/codec.log"; then
    "$venv/bin/python" - <<'END'
import shutil, sys, sysconfig
from pathlib import Path
library = "libinterpulse_codec.dylib" if sys.platform == "darwin" else "libinterpulse_codec.so"
fresh = Path(sysconfig.get_path("platlib"), "interpulse_codec.fresh")
shutil.copyfile(Path("native/target/release", library), fresh)
fresh.replace(fresh.with_name("interpulse_codec.abi3.so"))  # running brokers keep the file they have
END
  else
    say "the native frame codec could not be built, the one in Python is used: $venv/codec.log says why"
  fi
  printf '%s\n' "$wanted" > "$venv/.codec"
}

usable_environment || create_environment
install_packages
install_codec
java_home=$(tools/ensure_java.sh)
[ "$java_home" = "$(cat "$venv/java-home" 2>/dev/null || true)" ] || printf '%s\n' "$java_home" > "$venv/java-home"
