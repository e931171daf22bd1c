"""nanoGPT shards: the `.bin` of ids without a header that nanoGPT maps as `train.bin`.

The files are flat shards: nanoGPT reads the `.bin` alone, and the offsets keep what it has
no place for, the documents. Shards joined in their order are one `train.bin`. nanoGPT's own data
has uint16 and ends each document with the end-of-text token, which the setting `append` gives.
"""

from __future__ import annotations

from msgspec.structs import replace

from bpe_beam.shards.formats import flat

FORMAT = replace(flat.FORMAT, name="nanogpt")
