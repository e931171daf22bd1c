"""What Python calls beside `Tokenizer`: training and counting, on texts in memory or on files."""
