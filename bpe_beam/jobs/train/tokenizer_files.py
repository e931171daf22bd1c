"""The files of a trained tokenizer: their names and contents."""

from __future__ import annotations

from collections.abc import Callable

from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.tokenizer.files import sentencepiece_writing
from bpe_beam.tokenizer.files.sentencepiece_writing import ROLES, SENTENCEPIECE_FILE
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

_FILES = {
    "bpe": ("vocab.json", "merges.txt", TOKENIZER_FILE),
    "prefix_bpe": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "wordpiece": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "word_level": ("vocab.json", TOKENIZER_FILE),
}


_FOR_TRANSFORMERS = (CONFIG_FILE, SPECIAL_TOKENS_FILE)


def file_names(plan: TrainingPlan) -> tuple[str, ...]:
    """Return the names of the tokenizer's files."""
    template = () if plan.chat_template is None else (CHAT_TEMPLATE_FILE,)
    sentencepiece = (SENTENCEPIECE_FILE,) if plan.for_sentencepiece else ()
    return (*_FILES[plan.settings.model], *sentencepiece, *_FOR_TRANSFORMERS, *template)


def model_input_of(plan: TrainingPlan) -> ModelInput:
    template = plan.chat_template
    templates = {} if template is None else {"default": template.decode()}
    return ModelInput(plan.settings.roles, plan.settings.model_max_length, templates)


def write_files(
    plan: TrainingPlan, folder: OutputFolder, tokenizer: Tokenizer, warnings: list[str]
) -> list[FileInfo]:
    """Write the tokenizer's files, except those whose format cannot represent its tokens."""
    spec, settings = tokenizer.spec, plan.settings
    model_input = model_input_of(plan)
    contents: dict[str, Callable[[], bytes]] = {
        "vocab.json": tokenizer.vocab_json,
        "vocab.txt": lambda: vocab_txt(spec.model),
        "merges.txt": tokenizer.merges_txt,
        TOKENIZER_FILE: lambda: tokenizer.json_bytes,
        SENTENCEPIECE_FILE: lambda: sentencepiece_writing.write(
            spec, {role: settings.roles[role] for role in ROLES if role in settings.roles}
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
