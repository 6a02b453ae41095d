"""A model on rows that it was not fitted to: folds, held-out rows, refits, challengers, the price of rules."""
