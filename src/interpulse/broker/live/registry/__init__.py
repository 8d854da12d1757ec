"""The loaded topics of a broker: loaded once, unloaded, and looked after from time to time."""
