"""Policies: the documents of a namespace and of a topic, the policies in them, and their fields in Pulsar's JSON."""
