"""Arrange the documents of shards: in a seeded order, in sequences, for training and validation.

1. `measure.py`: a worker measures the documents of one shard: documents, tokens and lengths of each
   part (training, validation).
2. The driver adds the measures up, so that each worker knows the sums before its shard.
3. `scatter.py`: a worker divides the documents of its shard into slices and writes them to one
   file, in a block for each new shard.
4. `new_shard.py`: a worker reads the blocks of one new shard from all these files, and writes it.

In between, `regroup.py`: of a large corpus these blocks would be many and tiny. So a worker writes
a block for each group of new shards first, and another one divides the blocks of a group.

Only names of files travel. A worker has the slices of one new shard in memory, once, or
BUFFER_BYTES of slices that are not yet written. Every step writes the same bytes however often it
runs.
"""
