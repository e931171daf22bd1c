"""The tokens of a split without shards: the receipt is that of `tokenize` but for its files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from made_text import documents, write
from small_tokenizers import learn

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.shards.numbering import token_counts_file
from bpe_beam.storage import Storage
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import split_tasks
from bpe_beam.workers.token_counter import IdColumns, added_up
from bpe_beam.workers.tokenize_split import TokenizeTask, count_tokens, tokenize_split


def test_the_receipt_is_that_of_tokenize(tmp_path: Path) -> None:
    texts = documents(12, seed=4)
    write(tmp_path / "a.jsonl", texts)
    tokenizer = learn("bytes", (), 50)
    storage = Storage()
    plan = make_plan(storage, [str(tmp_path / "a.jsonl")])
    (element,) = split_tasks(plan)
    receipts = []
    for work, name in ((tokenize_split, "shard"), (count_tokens, "tokens")):
        folder = TaskFolder(storage, str(tmp_path / name), "f")
        (tmp_path / name / "work").mkdir(parents=True)
        (tmp_path / name / "__rejects").mkdir()
        task = TokenizeTask(
            folder=folder,
            reading=ReadSettings(),
            encoding=Encoding.of(tokenizer),
            count_tokens=True,
        )
        (output,) = work(task, element).outputs
        receipt = folder.read_receipt(output)
        assert receipt is not None
        receipts.append(receipt)
        file = token_counts_file(receipt)
        assert file is not None
        (found,) = added_up(folder, [file], IdColumns(tokenizer), None)
        ids = Counter(token for text in texts for token in tokenizer.encode(text))
        assert Counter(dict(zip(found.ids.tolist(), found.counts.tolist(), strict=True))) == ids
    assert receipts[0].stats == receipts[1].stats
