"""Generated schemas and values for the comparison with Pulsar's Java client."""
