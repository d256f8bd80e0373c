"""Text generation: several next-word models fused into one, inside any search."""

from wassemble.text.fused import FusedNextWord, StepAccount
from wassemble.text.models import NextWordModel
from wassemble.text.ngrams import NGramModel
from wassemble.text.search import Sentence, beam_search
from wassemble.text.vocabulary import Vocabulary
from wassemble.text.word_kernels import keep_apart

__all__ = [
    "FusedNextWord",
    "NGramModel",
    "NextWordModel",
    "Sentence",
    "StepAccount",
    "Vocabulary",
    "beam_search",
    "keep_apart",
]
