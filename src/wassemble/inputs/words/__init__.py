"""Words: their vectors, graphs and synonyms, from files."""
