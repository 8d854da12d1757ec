# What stands between the text of a page and this machine while a test follows the page. Sourced before it.
set -euo pipefail

# The ordinary package client: what its cache has, it takes from there; the rest comes from the index.
pip() { "$WALK_UV" --offline pip "$@" 2>>"$WALK_LOGS/pip.log" || "$WALK_UV" pip "$@"; }

# "In a terminal of its own": the broker goes to the background once it is ready. What a page itself puts there is
# the program and no shell around it, so that the page can end it.
interpulse() {
  if [ "${1:-}" = standalone ] || [ "${1:-}" = broker ]; then serve "$@"
  elif [ "${1:-}" = check ]; then command interpulse "$@" || [ $? = 1 ] # 1: the machine of the tests is busy
  elif [ "$BASHPID" != "$$" ]; then exec interpulse "$@"
  else command interpulse "$@"; fi
}

serve() {
  local log="$WALK_LOGS/broker-$((++brokers)).log"
  command interpulse "$@" >"$log" 2>&1 &
  running+=($!)
  until grep -qx ready "$log"; do
    kill -0 $! 2>/dev/null || { cat "$log" >&2; return 1; }
    sleep 0.1
  done
}

# Ctrl-C in the terminals of all brokers.
stop_brokers() {
  [ ${#running[@]} != 0 ] || return 0
  kill -INT "${running[@]}" 2>/dev/null || true
  wait "${running[@]}" 2>/dev/null || true
}

brokers=0
running=()
trap stop_brokers EXIT
