"""Parts of commands on a terminal: lazy groups, options, output formats, progress, logs."""
