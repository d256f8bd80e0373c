"""Labels that no model knows: larger vocabularies."""
