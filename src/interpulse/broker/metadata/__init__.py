"""The metadata of a broker: the layout of its records, and the commit of every decision about them."""
