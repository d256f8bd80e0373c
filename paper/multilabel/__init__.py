"""Objects in images: several labels at once, and weights by performance."""
