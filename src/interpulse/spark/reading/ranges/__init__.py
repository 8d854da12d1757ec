"""Where ranges of entries begin and end, by times and by filters, and how they are split over tasks."""
