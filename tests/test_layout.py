"""Where the tests of a module are: in a file of its name, or in the file that a table names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import bpe_beam

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent
TESTS = Path(__file__).parent

ELSEWHERE = {
    "unused_packages.py": "test_imports.py",
    # Parts of one thing, which its tests take apart.
    "corpus/streams/": "corpus/test_streams.py",
    "settings/": "settings/test_settings.py",
    "tokenizer/regex/": "tokenizer/regex/test_syntax.py",
    "workers/rounds/": "jobs/train/test_rounds.py",
    # What several modules share, tested through one of them.
    "api/job_calls.py": "api/test_train.py",
    "cli/parser.py": "cli/test_main.py",
    "corpus/batches.py": "corpus/test_read_split.py",
    "corpus/formats/arrow.py": "corpus/reading/test_columns.py",
    "corpus/formats/interface.py": "corpus/test_formats.py",
    "corpus/reading/slice_reader.py": "corpus/test_read_split.py",
    "corpus/slices.py": "corpus/test_boundaries.py",
    "evaluation/report.py": "jobs/evaluate/test_evaluate.py",
    "folders/artifact_names.py": "workers/test_split_shards.py",
    "folders/claim.py": "folders/test_output_folder.py",
    "folders/file_info.py": "folders/test_receipts.py",
    "folders/folder_kind.py": "jobs/test_inspect.py",
    "jobs/arranged_shards.py": "jobs/tokenize/test_arrange.py",
    "jobs/doctor/": "jobs/doctor/test_doctor.py",
    "jobs/mix/": "jobs/mix/test_mix.py",
    "jobs/counts/shared.py": "jobs/counts/test_merge.py",
    "jobs/train/local_or_distributed.py": "jobs/train/test_trainer.py",
    "jobs/train/summary.py": "jobs/train/test_train.py",
    "shards/mixture_folders.py": "shards/test_mixed_reader.py",
    "shards/mixture_documents.py": "jobs/mix/test_mix.py",
    "shards/folder_reader.py": "shards/test_dataset.py",
    "shards/torch_dataset.py": "differential/test_dataset_vs_loaders.py",
    "shards/formats/": "shards/formats/test_megatron.py",
    "shards/token_view.py": "shards/test_dataset.py",
    "shards/shard_rows.py": "shards/test_manifest.py",
    "html_report/samples.py": "html_report/test_page.py",
    "shards/stored_shard.py": "shards/test_dataset.py",
    "storage/hashing.py": "shards/test_verify.py",
    "storage/json_file.py": "shards/test_manifest.py",
    "storage/stored_file.py": "storage/test_client.py",
    "tokenizer/files/json_node.py": "tokenizer/files/test_tokenizer_json.py",
    "tokenizer/components/models.py": "tokenizer/files/test_tokenizer_json.py",
    "tokenizer/encoding/native_encoder.py": "tokenizer/test_tokenizer.py",
    "tokenizer/text_codec.py": "tokenizer/test_tokenizer.py",
    "tokenizer/spec.py": "tokenizer/files/test_tokenizer_json.py",
    "tokenizer/encoding/text_encoder.py": "tokenizer/test_tokenizer.py",
    "tokenizer/text_input.py": "tokenizer/test_tokenizer.py",
    "transforms/counted_words.py": "transforms/test_write_counts.py",
    "transforms/document_chunks.py": "transforms/test_write_tokens.py",
    "transforms/document_order.py": "transforms/test_arrange_tokens.py",
    "transforms/document_fn.py": "transforms/test_elements.py",
    "transforms/metrics.py": "transforms/test_tokenize.py",
    "transforms/pane_log.py": "transforms/test_write_windows.py",
    "transforms/ml_transform.py": "transforms/test_documented.py",
    "transforms/producers.py": "transforms/test_token_origin.py",
    "transforms/read_counts.py": "transforms/test_write_counts.py",
    "transforms/tokenize_new_files.py": "workers/stream/test_handing_out.py",
    "transforms/tokens_folder.py": "transforms/test_write_tokens.py",
    "workers/arrange/": "jobs/tokenize/test_arrange.py",
    "workers/mix/": "jobs/mix/test_mix.py",
    "training/merges/merge_training.py": "training/test_learn.py",
    "workers/task_results.py": "engines/test_run.py",
    "workers/split_reader.py": "workers/test_count_split.py",
    "workers/split_task.py": "workers/test_count_split.py",
    # What only whole jobs and real servers show.
    "engines/steps.py": "engines/test_run.py",
    "jobs/corpus/input.py": "end_to_end/test_jobs.py",
    "jobs/corpus/job.py": "end_to_end/test_jobs.py",
    "jobs/corpus/summary.py": "end_to_end/test_sources.py",
    "jobs/shard_folder_files.py": "jobs/tokenize/test_arrange.py",
    "jobs/dry_run/sample.py": "jobs/dry_run/test_dry_run.py",
    "jobs/dry_run/trial.py": "jobs/dry_run/test_dry_run.py",
    "jobs/stream_figures.py": "jobs/test_stream_output.py",
    "jobs/tokenize/arrange_steps.py": "jobs/tokenize/test_arrange.py",
    "jobs/tokenize/documents.py": "end_to_end/test_jobs.py",
    "jobs/train/plan.py": "jobs/train/test_train.py",
    "jobs/train/round_learning.py": "jobs/train/test_rounds.py",
    "storage/remote_store.py": "servers/test_stores.py",
    "storage/web.py": "servers/test_web.py",
    "workers/answer_calls.py": "workers/test_processes.py",
    "workers/reject_limits.py": "end_to_end/test_unusable_corpora.py",
    "workers/verify_split.py": "end_to_end/test_jobs.py",
}
"""Modules, and folders of modules, that are tested through another one: what tests them."""


def modules() -> list[str]:
    """Return the package's modules, relative to it."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return [str(path.relative_to(PACKAGE)) for path in paths if not path.stem.startswith("__")]


def own_tests_of(module: str) -> Path:
    """Return the path that a module's own tests have."""
    path = TESTS / module
    return path.with_name(f"test_{path.name}")


def only_declares(source: str) -> bool:
    """Return whether no function of a source does anything: constants, protocols, records."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                value = statement.value if isinstance(statement, ast.Expr) else None
                if not isinstance(value, ast.Constant):
                    return False
    return True


def entry_of(module: str) -> str | None:
    """Return the key of ELSEWHERE that covers a module: itself, or a folder around it."""
    folders = [f"{parent}/" for parent in Path(module).parents]
    return next((key for key in (module, *folders) if key in ELSEWHERE), None)


def test_each_module_has_its_tests() -> None:
    missing = [
        module
        for module in modules()
        if not own_tests_of(module).exists()
        and entry_of(module) is None
        and not only_declares((PACKAGE / module).read_text("utf-8"))
    ]
    assert not missing


def test_the_table_is_true() -> None:
    for key, test in ELSEWHERE.items():
        assert (TESTS / test).exists(), test
        covered = [module for module in modules() if entry_of(module) == key]
        assert any(not own_tests_of(module).exists() for module in covered), f"{key} needs no entry"


def test_no_test_imports_another() -> None:
    tests = {path.stem for path in TESTS.rglob("test_*.py")} | {"conftest"}
    wrong = []
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            wrong += [f"{path.relative_to(TESTS)}: {name}" for name in names if name in tests]
    assert not wrong


@pytest.mark.parametrize(
    ("source", "declares"),
    [
        ("LIMIT = 3\n", True),
        ("class A:\n    x: int\n    def f(self) -> int:\n        '''The x.'''\n", True),
        ("class A:\n    def f(self) -> int: ...\n", True),
        ("def f() -> int:\n    '''Return 3.'''\n    return 3\n", False),
    ],
)
def test_what_only_declares(source: str, declares: bool) -> None:
    assert only_declares(source) is declares
