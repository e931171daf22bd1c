"""One reader a format: a slice of a file to Arrow batches of documents."""
