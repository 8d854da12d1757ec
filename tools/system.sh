# Sourced by the scripts beside it: speak to the user, and get packages from the system where that is permitted.

say() { printf '%s\n' "$*" >&2; }

# One sentence that says what is missing and what to do about it; exit code 2 as for every wrong surrounding.
refuse() { say "$*"; exit 2; }

# Runs a command as root: directly, or with sudo when it asks no password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() {
  command -v apt-get >/dev/null 2>&1 || return 1
  [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

# install_first_of PACKAGE... installs the first of them that this system offers.
install_first_of() {
  local package
  can_install || return 1
  as_root apt-get update -qq >/dev/null || return 1
  for package in "$@"; do
    [[ "$(apt-cache policy "$package" 2>/dev/null)" == *"Candidate: "[0-9]* ]] || continue
    say "installing $package"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null && return 0
  done
  return 1
}
