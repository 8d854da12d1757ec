"""The parts that all commands share: parameters, output, logs, progress, settings, errors."""
