"""Inputs: files in, names and arrays out."""

from wassemble.inputs.animals_data import AnimalsData, load_animals

__all__ = ["AnimalsData", "load_animals"]
