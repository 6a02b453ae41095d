"""The engine: from training rows to an additive part, and from its scores to bands."""
