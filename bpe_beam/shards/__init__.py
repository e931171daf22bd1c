"""Where tokens go: shards in the formats that trainers read, their manifest, and their proof.

`formats/` holds a writer and a reader a format, `manifest` says what a run wrote, from what and
with which tokenizer, and `verify` reads all of it back. The room is plain Python over
`bpe_beam.storage`; it knows neither Beam nor the rooms that make the tokens.
"""
