"""Inputs: files in, names and arrays out."""

from wassemble.inputs.files import (
    PredictionWriter,
    open_predictions,
    read_predictions,
    read_truth,
    write_predictions,
)
from wassemble.inputs.formats.sources import PredictionFile
from wassemble.inputs.part_files import DataSet, open_data_set
from wassemble.inputs.predictions.aliases import Aliases, read_aliases
from wassemble.inputs.predictions.describe import describe_predictions
from wassemble.inputs.predictions.frames import frame_from_predictions, predictions_from_frame
from wassemble.inputs.predictions.value import Kind, Predictions, TopLabel
from wassemble.inputs.reading import Reading
from wassemble.inputs.shipped.examples import (
    AnimalsData,
    LanguagesData,
    load_animals,
    load_languages,
)
from wassemble.inputs.words.embeddings import Embeddings, read_embeddings
from wassemble.inputs.words.graphs import Edges, read_edges, read_synonyms
from wassemble.inputs.words.positions import read_positions

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
    "Reading",
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
    "read_positions",
    "read_predictions",
    "read_synonyms",
    "read_truth",
    "write_predictions",
]
