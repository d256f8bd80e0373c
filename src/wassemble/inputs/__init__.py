"""Inputs: files in, names and arrays out."""

from wassemble.inputs.aliases import Aliases, read_aliases
from wassemble.inputs.animals_data import AnimalsData, load_animals
from wassemble.inputs.data_sets import DataSet, open_data_set
from wassemble.inputs.describe import describe_predictions
from wassemble.inputs.embeddings import Embeddings, read_embeddings
from wassemble.inputs.files import (
    PredictionFile,
    PredictionWriter,
    open_predictions,
    read_predictions,
    read_truth,
    write_predictions,
)
from wassemble.inputs.frames import frame_from_predictions, predictions_from_frame
from wassemble.inputs.graphs import Edges, read_edges
from wassemble.inputs.languages_data import LanguagesData, load_languages
from wassemble.inputs.predictions import Kind, Predictions, TopLabel
from wassemble.inputs.synonyms import read_synonyms

__all__ = [
    "Aliases",
    "AnimalsData",
    "DataSet",
    "Edges",
    "Embeddings",
    "Kind",
    "LanguagesData",
    "PredictionFile",
    "PredictionWriter",
    "Predictions",
    "TopLabel",
    "describe_predictions",
    "frame_from_predictions",
    "load_animals",
    "load_languages",
    "open_data_set",
    "open_predictions",
    "predictions_from_frame",
    "read_aliases",
    "read_edges",
    "read_embeddings",
    "read_predictions",
    "read_synonyms",
    "read_truth",
    "write_predictions",
]
