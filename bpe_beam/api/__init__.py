"""The functions for calls from Python: train, count, evaluate, tokenize."""
