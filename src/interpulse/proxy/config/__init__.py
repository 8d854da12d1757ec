"""Settings of a proxy: `proxy_config` has the table, `pulsar_keys` the keys of Pulsar without effect."""
