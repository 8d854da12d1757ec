"""The settings of a broker: what there is, where values come from, and those that change while it runs."""
