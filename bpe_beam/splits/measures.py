"""Names of what is measured: sums, and values of each split. They end with, or are, their unit."""

from __future__ import annotations

DOCUMENTS_READ = "documents_read"
TEXT_BYTES_READ = "text_bytes_read"
RECORDS_REJECTED = "records_rejected"
WORDS_COUNTED = "words_counted"
COUNT_BLOCKS = "count_blocks"
COUNT_BLOCK_BYTES = "count_block_bytes"
UNIQUE_WORDS = "unique_words"
DOCUMENTS_TOKENIZED = "documents_tokenized"
TEXT_BYTES_TOKENIZED = "text_bytes_tokenized"
TOKENS_MADE = "tokens_made"
DOCUMENTS_WRITTEN = "documents_written"
TOKENS_WRITTEN = "tokens_written"
FILES_TAKEN = "files_taken"
FILES_CHANGED = "files_changed"
WINDOWS_FINISHED = "windows_finished"

SPLIT_DOCUMENTS = "split_documents"
SPLIT_TEXT_BYTES = "split_text_bytes"
SPLIT_MILLISECONDS = "split_milliseconds"
