"""Commands about policies of namespaces and topics."""
