"""The option `--cluster`: the workers for which a dry run predicts the time and cost of a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from bpe_beam.messages import did_you_mean
from bpe_beam.settings.field import option
from bpe_beam.settings.parsing import BadValueError, parse_integer, parse_size

_MAX = 10**15


class Cluster(Struct, frozen=True):
    """Equal workers, and the store that they share."""

    workers: int
    cores: int = 1  # of a worker
    memory: int = 4 * 10**9  # bytes of a worker
    network: int = 100 * 10**6  # bytes a second between a worker and the store
    latency: int = 50  # milliseconds until a request is answered
    speed: int = 100  # of a core, in percent of a core of this machine
    start: int = 120  # seconds until the workers of a pipeline run
    prices: str = ""  # the file of prices

    @property
    def slots(self) -> int:
        """The number of tasks that run at once."""
        return self.workers * self.cores


def _percent(text: str) -> int:
    if re.fullmatch("[0-9]{1,6}%", text) is None:
        raise BadValueError(f"must be a percentage such as 80%, got {text!r}")
    return int(text[:-1])


_PARSERS: dict[str, Callable[[str], int | str]] = {
    **dict.fromkeys(("workers", "cores", "latency", "start"), parse_integer),
    **dict.fromkeys(("memory", "network"), parse_size),
    "speed": _percent,
    "prices": str,
}
_MAY_BE_ZERO = ("latency", "start")


def parse_cluster(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the fields of lists such as `workers=100,cores=4`, and their values as texts."""
    pairs: dict[str, str] = {}
    for item in (item for text in texts for item in text.split(",")):
        name, equals, value = item.partition("=")
        if not equals or not value:
            raise BadValueError(f"must be FIELD=VALUE,..., got {item!r}; {_fields()}")
        if name in pairs:
            raise BadValueError(f"must have {name} once, got it twice")
        pairs[name] = value
    return tuple(pairs.items())


def cluster_of(pairs: Sequence[tuple[str, str]]) -> Cluster:
    """Return the cluster that the fields describe; raise BadValueError if they do not."""
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name not in _PARSERS:
            raise BadValueError(f"has no field {name!r}{did_you_mean(name, _PARSERS)}; {_fields()}")
        try:
            value = values[name] = _PARSERS[name](text)
        except BadValueError as error:
            raise BadValueError(f"field {name} {error}; {_fields()}") from None
        if isinstance(value, int):
            minimum = int(name not in _MAY_BE_ZERO)
            if not minimum <= value <= _MAX:
                raise BadValueError(
                    f"field {name} must be from {minimum} to {_MAX:,}, got {text}; {_fields()}"
                )
    if "workers" not in values:
        raise BadValueError(f"must have the field workers, such as workers=100; {_fields()}")
    return Cluster(**values)


def _fields() -> str:
    return f"the fields are {', '.join(_PARSERS)}"


def cluster_option() -> Any:
    return option(
        (),
        metavar="FIELD=VALUE,...",
        kind="pairs",
        help="With --dry-run: predict stages, hours and cost on a cluster that shares an object "
        "store, such as workers=100,cores=4. More fields: memory and network (bytes a second) of a "
        "worker, such as 16GB and 100MB; latency of the store in milliseconds; speed of a core, "
        "such as 80% of a core here; start of a pipeline in seconds; prices=F.yaml.",
        parse=parse_cluster,
        check=cluster_of,
    )
