"""Short texts in several languages and notations, whose tokens the page of a report shows."""

from __future__ import annotations

import codecs

from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, redact

SAMPLES = {
    "English": "The harbour's lights weren't visible; nobody had expected a thunderstorm so early.",
    "German": "Die Straßenbahnhaltestelle liegt gegenüber dem Überseemuseum, fünf Minuten zu Fuß.",
    "French": "L'été dernier, j'ai goûté aux crêpes qu'on préparait près de la cathédrale.",
    "Turkish": "Evlerimizdekilerden hangisini görmüştünüz?",
    "Russian": "Вечером дождь закончился, и над рекой появилась радуга.",
    "Arabic": "وصل القطار إلى المدينة قبل شروق الشمس.",
    "Hindi": "बच्चे नदी के किनारे पतंग उड़ा रहे थे।",
    "Chinese": "昨天晚上下了一场大雨\uff0c今天空气很清新。",
    "Japanese": "駅前のパン屋は、朝七時から開いています。",
    "Korean": "도서관에서 빌린 책을 내일까지 돌려줘야 합니다.",
    "Numbers": "On 2024-03-17 at 09:45 it cost 1,234,567.89 or 3.14159e-10.",
    "Code": "def area(radius: float) -> float:\n    return 3.14159 * radius ** 2  # in metres\n",
    "Signs": "¿Qué? → “x² ≤ 10” 👍🏽 🏳️‍🌈 \t…",
}
"""The texts that are shown without others, by title."""

MAX_SAMPLE = 10_000
"""The most characters of a text that is shown; the rest is left out."""


def read_samples(storage: Storage, paths: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of files by the files' names, or SAMPLES without files."""
    if not paths:
        return SAMPLES
    samples = {}
    for path in paths:
        if not storage.exists(path):
            raise UsageError(f"{redact(path)}: no such file", ("samples",))
        data = storage.read_head(path, 4 * MAX_SAMPLE)
        whole = len(data) < 4 * MAX_SAMPLE  # otherwise its last character may be cut
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
        except UnicodeDecodeError:
            raise UsageError(f"{redact(path)}: not UTF-8", ("samples",)) from None
        samples[redact(path)] = text[:MAX_SAMPLE]
    return samples
