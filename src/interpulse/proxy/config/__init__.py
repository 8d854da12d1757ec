"""The settings of a proxy: `proxy_config` is their table, `pulsar_keys` lists the keys of Pulsar without effect."""
