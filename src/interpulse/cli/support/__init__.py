"""Parts shared by all commands: parameters, output, logs, progress, settings, errors."""
