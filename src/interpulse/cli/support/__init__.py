"""What all commands share: parameters, output, logs, progress, settings, and how errors end a command."""
