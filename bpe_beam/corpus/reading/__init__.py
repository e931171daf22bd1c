"""The base of readers of several input formats: buffers, records, columns, batches."""
