"""The parts that readers of several input formats share: windows, records, columns, batches."""
