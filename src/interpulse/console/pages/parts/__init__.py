"""What several pages are made of: rows, figures, paging, and what the visitor may see."""
