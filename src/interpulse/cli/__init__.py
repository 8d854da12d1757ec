"""Command line: `interpulse`, and `interpulse-admin` with the commands of pulsar-admin."""
