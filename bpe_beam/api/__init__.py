"""What Python calls: training, counting and evaluating, on texts in memory, files or counts."""
