#!/usr/bin/env bash
# Prints the home of a Java runtime new enough for Spark; installs one when there is none and that is permitted.
#
#   tools/ensure_java.sh          a runtime
#   tools/ensure_java.sh --jdk    one that can also compile (the checks with Pulsar's Java clients are Java source)
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/system.sh

java_min=17
compiler_needed=no
[ "${1:-}" = --jdk ] && compiler_needed=yes

# Prints the home of the given `java` if it is new enough, otherwise nothing.
home_of() {
  local settings version home
  settings=$("$1" -XshowSettings:properties -version 2>&1) || return 0
  version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$settings")
  home=$(sed -n 's/^ *java\.home = //p' <<<"$settings")
  [[ $version =~ ^[0-9]+$ ]] && [ "$version" -ge "$java_min" ] || return 0
  if [ "$compiler_needed" = yes ] && [[ "$("$home/bin/java" --list-modules 2>/dev/null)" != *jdk.compiler* ]]; then return 0; fi
  printf '%s\n' "$home"
}

find_home() {
  local candidate home
  for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    home=$(home_of "$candidate")
    if [ -n "$home" ]; then printf '%s\n' "$home"; return; fi
  done
}

home=$(find_home)
if [ -z "$home" ]; then
  if [ "$compiler_needed" = yes ]; then kind=jdk; what=JDK; else kind=jre; what=runtime; fi
  install_first_of "openjdk-17-$kind-headless" "openjdk-21-$kind-headless" "default-$kind-headless" || true
  home=$(find_home)
  [ -n "$home" ] || refuse "Java $java_min or newer is needed for Spark and was not found: install a Java $what" \
    "(on Debian and Ubuntu: sudo apt-get install openjdk-17-$kind-headless), or set JAVA_HOME to one, and try again."
fi
printf '%s\n' "$home"
