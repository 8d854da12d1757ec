"""The settings of a broker, at its start and while it runs, and the keys of Pulsar without effect."""
