"""Checks of every pipeline of ours, by its description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2

from bpe_beam.transforms.shuffles import RecordBatchCoder, TokensCoder

GROUP = common_urns.primitives.GROUP_BY_KEY.urn
PARDO = common_urns.primitives.PAR_DO.urn
_CODERS = (RecordBatchCoder, TokensCoder)
# Beam's names of a lambda, a file's line, an object's address.
_UNSTABLE = re.compile(r"<lambda|\.py\b|:\d|\bat 0x|object at")
_OURS = re.compile(rb"\n.(%s|%s)\$" % tuple(c.__name__.encode() for c in _CODERS), re.DOTALL)
_STANDARD = re.compile(r"beam:coder:(bool|bytes|iterable|kv|string_utf8|tuple|varint):v1")


def labels(proto: Any) -> list[str]:
    """Return the full labels of all steps, sorted; Beam's own root has none."""
    names = (each.unique_name for each in proto.components.transforms.values())
    return sorted(name for name in names if not name.startswith("ref_AppliedPTransform_"))


def check(proto: Any) -> None:
    """Labels that say something and stay; coders that Beam knows or that are ours; and on what
    crosses a shuffle only those that are deterministic, and known in every language."""
    assert not [name for name in labels(proto) if _UNSTABLE.search(name)]
    components = proto.components
    assert shuffled(proto), "no shuffle was found"
    for name, collection in components.pcollections.items():
        for urn, payload in _coders(components, collection.coder_id):
            ours = _OURS.match(payload) and name not in shuffled(proto)
            assert ours or _STANDARD.fullmatch(urn), (collection.unique_name, urn, payload[:200])


def shuffled(proto: Any) -> set[str]:
    """Return the collections that enter a shuffle, or are side inputs."""
    found: set[str] = set()
    for each in proto.components.transforms.values():
        if each.spec.urn == GROUP:
            found |= set(each.inputs.values())
        if each.spec.urn == PARDO:
            payload = beam_runner_api_pb2.ParDoPayload.FromString(each.spec.payload)
            found |= {each.inputs[tag] for tag in payload.side_inputs}
    return found


def _coders(components: Any, coder_id: str) -> Iterator[tuple[str, bytes]]:
    coder = components.coders[coder_id]
    yield coder.spec.urn, coder.spec.payload
    for each in coder.component_coder_ids:
        yield from _coders(components, each)


class MeasuredGroupByKey(beam.PTransform):  # type: ignore[misc]
    """A shuffle that records how many bytes each element has as it enters."""

    sizes: ClassVar[list[int]] = []
    """Of all shuffles since the last `clear`; of those that ran in this process."""
    group: ClassVar[type[beam.PTransform]] = beam.GroupByKey

    def expand(self, pairs: Any) -> Any:
        """Measure, then group."""
        coder = beam.coders.registry.get_coder(pairs.element_type)
        measure = beam.ParDo(_Measure(coder)).with_output_types(pairs.element_type)
        return pairs | "Measure" >> measure | "Group" >> self.group()


class _Measure(beam.DoFn):  # type: ignore[misc]
    def __init__(self, coder: Any) -> None:
        self.coder = coder

    def process(self, element: Any) -> Iterator[Any]:
        MeasuredGroupByKey.sizes.append(len(self.coder.encode(element)))
        yield element
