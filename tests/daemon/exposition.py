"""A strict reader of Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
KINDS = {"counter", "gauge", "histogram", "summary", "untyped"}


@dataclass
class Family:
    """One metric: its kind, its help, and its samples by name and labels."""

    kind: str
    about: str
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, tuple(sorted(labels.items()))]


def read(text: str) -> dict[str, Family]:
    """Read all of it. Raises `ValueError` at whatever is not as it should be."""
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    families: dict[str, Family] = {}
    about: dict[str, str] = {}
    name = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, name, about_it = line.split(" ", 3)
            if name in about:
                raise ValueError(f"a second HELP: {line}")
            about[name] = about_it
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            if typed != name or typed in families or kind not in KINDS:
                raise ValueError(f"a TYPE out of place: {line}")
            families[name] = Family(kind, about[name])
        else:
            _take(families, name, line)
    for name, family in families.items():
        if family.kind == "histogram":
            _check_histogram(name, family)
    return families


def _take(families: dict[str, Family], current: str, line: str) -> None:
    found = SAMPLE.fullmatch(line)
    if not found:
        raise ValueError(f"no sample: {line!r}")
    name, inside, value = found.groups()
    family = families[current]
    suffixes = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
    if name not in {current + suffix for suffix in suffixes}:
        raise ValueError(f"a sample of another metric: {line!r}")
    labels = LABEL.findall(inside or "")
    if "".join(f'{key}="{text}",' for key, text in labels).rstrip(",") != (inside or "").rstrip(","):
        raise ValueError(f"labels that cannot be read: {line!r}")
    key = name, tuple(sorted((label, _unescaped(text)) for label, text in labels))
    if key in family.samples:
        raise ValueError(f"twice: {line!r}")
    family.samples[key] = float(value)
    if family.kind == "counter" and (float(value) < 0 or not name.endswith("_total")):
        raise ValueError(f"no counter: {line!r}")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def _check_histogram(name: str, family: Family) -> None:
    buckets = [
        (dict(labels)["le"], value) for (own, labels), value in family.samples.items() if own == f"{name}_bucket"
    ]
    limits = [float(limit) for limit, _ in buckets]
    counts = [count for _, count in buckets]
    if limits != sorted(limits) or counts != sorted(counts) or limits[-1] != float("inf"):
        raise ValueError(f"{name}: buckets out of order")
    if family.value(f"{name}_count") != counts[-1]:
        raise ValueError(f"{name}: the count is not that of the last bucket")
