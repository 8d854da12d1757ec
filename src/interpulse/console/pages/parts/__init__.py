"""Parts of several pages: rows, totals, paging, and the namespaces that a visitor may see."""
