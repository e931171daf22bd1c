"""A trained tokenizer, and the names and contents of its files."""

from __future__ import annotations

from collections.abc import Callable

from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.tokenizer.files import sentencepiece_file
from bpe_beam.tokenizer.files.sentencepiece_file import ROLES, SENTENCEPIECE_FILE
from bpe_beam.tokenizer.files.transformers_files import (
    CHAT_TEMPLATE_FILE,
    CONFIG_FILE,
    SPECIAL_TOKENS_FILE,
    ModelInput,
    special_tokens_map,
    tokenizer_config,
)
from bpe_beam.tokenizer.files.vocab_files import vocab_txt
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.tokenizer_parts import continued, tokenizer_of

_FILES = {
    "bpe": ("vocab.json", "merges.txt", TOKENIZER_FILE),
    "prefix_bpe": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "wordpiece": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "word_level": ("vocab.json", TOKENIZER_FILE),
}


_FOR_TRANSFORMERS = (CONFIG_FILE, SPECIAL_TOKENS_FILE)


def file_names(plan: TrainingPlan) -> tuple[str, ...]:
    template = () if plan.chat_template is None else (CHAT_TEMPLATE_FILE,)
    sentencepiece = (SENTENCEPIECE_FILE,) if plan.for_sentencepiece else ()
    return (*_FILES[plan.settings.model], *sentencepiece, *_FOR_TRANSFORMERS, *template)


def learned_tokenizer(plan: TrainingPlan, learned: TrainingResult) -> Tokenizer:
    settings, recipe, base, counts = plan.settings, plan.recipe, plan.base_tokenizer, plan.counts
    assert counts is not None
    if base is not None and isinstance(recipe, BpeRecipe):
        tokenizer = continued(base, learned, recipe)
    else:
        manifest = counts.manifest
        tokenizer = tokenizer_of(learned, recipe, manifest.normalizer, manifest.pretokenizer)
    template = plan.chat_template
    templates = {} if template is None else {"default": template.decode()}
    model_input = ModelInput(settings.roles, settings.model_max_length, templates)
    return Tokenizer(tokenizer.spec, model_input)


def write_files(
    plan: TrainingPlan, folder: OutputFolder, tokenizer: Tokenizer, warnings: list[str]
) -> list[FileInfo]:
    """Write the tokenizer's files, except those whose format cannot represent its tokens."""
    spec, roles, model_input = tokenizer.spec, plan.settings.roles, tokenizer.model_input
    contents: dict[str, Callable[[], bytes]] = {
        "vocab.json": tokenizer.vocab_json,
        "vocab.txt": lambda: vocab_txt(spec.model),
        "merges.txt": tokenizer.merges_txt,
        TOKENIZER_FILE: lambda: tokenizer.json_bytes,
        SENTENCEPIECE_FILE: lambda: sentencepiece_file.write(
            spec, {role: roles[role] for role in ROLES if role in roles}
        ),
        CONFIG_FILE: lambda: tokenizer_config(spec, model_input),
        SPECIAL_TOKENS_FILE: lambda: special_tokens_map(spec, model_input),
        CHAT_TEMPLATE_FILE: lambda: plan.chat_template or b"",
    }
    files = []
    for name in file_names(plan):
        try:
            data = contents[name]()
        except UsageError as error:
            warnings.append(f"not written: {error}; tokenizer.json contains everything")
            continue
        plan.storage.write_bytes(folder.path(name), data)
        files.append(FileInfo.of(name, data))
    return files
