#!/bin/sh
# Read shards with torch and the whole packages of trainers, as their users do.
#
#   scripts/torch_tests.sh FOLDER [options of pytest]
#
# FOLDER gets an environment of 8 GB; 3 GB are downloaded. Run it before a release, and after a change
# of the formats of shards or of bpe_beam.shards. CI reads with the same packages without torch: the
# markers `trainers` and `megatron`.
set -eu
if [ $# -eq 0 ]; then sed -n 's/^# \{0,1\}//; 2,8p' "$0" >&2; exit 2; fi
mkdir -p "$1"
environment=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
python3 -m venv "$environment"
"$environment/bin/pip" install -q -e '.[test]' 'torch>=2.10,<2.14' torchvision 'torchdata>=0.11' \
  'numpy<2.2' 'datasets>=4' humanize loguru lightning-utilities tifffile boto3 rich omegaconf cached-path \
  safetensors requests tqdm brotli python-snappy zstd catalogue transformers dataclass-extensions bettermap \
  addict distro numba posthog psutil accelerate
# Their dependencies exclude one another's, and most are for other things than reading.
"$environment/bin/pip" install -q --no-deps 'megatron-core>=0.16,<0.17' 'datatrove>=0.10,<0.11' \
  'ai2-olmo-core>=3.0,<3.1' 'nemo-automodel>=0.7,<0.8' 'mosaicml-streaming>=0.13,<0.14' \
  'litdata>=0.2.76,<0.3' 'axolotl>=0.19,<0.20' trl peft
"$environment/bin/pytest" -m torch tests/differential/test_readers_with_torch.py "$@"
