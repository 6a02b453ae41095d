"""All that knows pandas, polars and arrow: rows in memory, and rows in batches."""
