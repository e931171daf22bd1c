"""Mix documents by tokens: which of them are taken, and in which order.

1. `index.py`: a worker writes a table of the documents of one shard, in a block for each group of
   identities. Another one numbers the equal documents of a group.
2. The driver knows the tokens of each source, and so the epochs that are needed. `select.py`: a
   worker writes the keys of a group, in a block for each range of keys.
3. The driver knows the tokens of each source before each range. A worker selects the documents of
   one range, in the order of their keys, and measures them as `workers/arrange/` measures a shard.
4. The driver plans new shards as for `tokenize`. `place.py`: a worker computes where each document
   of a range goes, in a block for each shard that is read. Another one reads the documents of a
   shard and writes them in a block for each new shard; `workers/arrange/new_shard.py` writes those.

Ids are read in the first and in the last step only. A worker has the table of a shard, a group or a
range in memory: some 150 bytes for each document, with the copies in another order.
"""
