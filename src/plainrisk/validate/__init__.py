"""What the rules of a model cost on rows that it was not fitted to."""
