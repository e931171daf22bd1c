"""Beam transforms: public ones for users' own pipelines, and the transforms of our jobs."""

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.training.recipe import (
    BpeRecipe,
    MinGramRecipe,
    UnigramRecipe,
    WordLevelRecipe,
    WordPieceRecipe,
)
from bpe_beam.transforms.count_pairs import CountPairs, PairCountsFn
from bpe_beam.transforms.count_words import CountWords
from bpe_beam.transforms.divide_documents import DivideDocuments
from bpe_beam.transforms.learn_merges import LearnMerges
from bpe_beam.transforms.read_all_documents import ReadAllDocuments
from bpe_beam.transforms.read_counts import ReadCounts
from bpe_beam.transforms.read_documents import ReadDocuments
from bpe_beam.transforms.shuffles import disable_timed_flush
from bpe_beam.transforms.tokenize import Tokenize
from bpe_beam.transforms.write_counts import WriteCounts
from bpe_beam.transforms.write_tokens import WriteTokens

disable_timed_flush()

__all__ = [
    "BpeRecipe",
    "CountPairs",
    "CountWords",
    "DivideDocuments",
    "LearnMerges",
    "MinGramRecipe",
    "PairCountsFn",
    "ReadAllDocuments",
    "ReadCounts",
    "ReadDocuments",
    "ReadSettings",
    "Tokenize",
    "UnigramRecipe",
    "WordLevelRecipe",
    "WordPieceRecipe",
    "WriteCounts",
    "WriteTokens",
]
