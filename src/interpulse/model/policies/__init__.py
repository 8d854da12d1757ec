"""Policies: the documents of a namespace and of a topic, and their fields in Pulsar's JSON."""
