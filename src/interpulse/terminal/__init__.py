"""The parts of commands on a terminal: lazy groups, options, forms of output, progress, logs."""
