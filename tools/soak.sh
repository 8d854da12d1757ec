#!/usr/bin/env bash
# Repeats the fault suite, real brokers beside ours, seeds of the simulated world, and coverage-guided fuzzing until the
# given minutes are over; every round has its own random order, printed by pytest, and its own seeds. Real brokers need
# Maven once.
#
#   tools/soak.sh MINUTES
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:?usage: tools/soak.sh MINUTES}
round=0
while [ "$SECONDS" -lt $((minutes * 60)) ]; do
  round=$((round + 1))
  printf 'round %d, %d of %d minutes\n' "$round" $((SECONDS / 60)) "$minutes"
  INTERPULSE_SOAK=1 .venv/bin/pytest -q tests/durability tests/fuzz \
    tests/unit/storage/bookkeeper/test_histories.py tests/unit/broker/topics/test_topic_reading.py \
    tests/interop/test_rolling_replacement.py tests/interop/test_beside_real_broker.py \
    tests/interop/test_linearizability.py
  first=$((RANDOM * 1000))
  printf 'seeds %d to %d of the simulated world\n' "$first" $((first + 499))
  PYTHONHASHSEED=0 .venv/bin/python -m tests.simulation.play "$first-$((first + 499))" --jobs "$(nproc)" --twice=50
  .venv/bin/python -m tests.fuzz --seconds $((minutes < 10 ? minutes : 60))
done
