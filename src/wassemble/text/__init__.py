"""Text generation: several next-word models fused into one, inside any search."""

from wassemble.text.explain import explain_sentence
from wassemble.text.fused import FusedNextWord, StepAccount
from wassemble.text.kernels import keep_apart
from wassemble.text.models import NextWordModel
from wassemble.text.models.adapters import CausalNextWord, EncoderDecoderNextWord, TorchNextWord
from wassemble.text.models.ngrams import NGramModel
from wassemble.text.search import Sentence, beam_search
from wassemble.text.vocabulary import Vocabulary

__all__ = [
    "CausalNextWord",
    "EncoderDecoderNextWord",
    "FusedNextWord",
    "NGramModel",
    "NextWordModel",
    "Sentence",
    "StepAccount",
    "TorchNextWord",
    "Vocabulary",
    "beam_search",
    "explain_sentence",
    "keep_apart",
]
