"""Models that speak different languages."""
