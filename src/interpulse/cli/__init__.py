"""The command line: `interpulse`, and `interpulse-admin` with the tree of pulsar-admin."""
