"""What several input formats are read with: windows of files, records, columns, batches."""
