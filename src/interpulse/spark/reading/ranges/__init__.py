"""Ranges of entries: their begin and end, by times and by filters, and their split over tasks."""
