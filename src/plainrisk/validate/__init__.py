"""What a model is worth on rows that it was not fitted to, and what its rules cost there."""
