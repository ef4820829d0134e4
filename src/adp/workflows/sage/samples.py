"""Samples in memory as a store, so that what works on stores works on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from adp_schema import jsontext
from adp_schema.errors import AdpError, UsageError
from adp_schema.scratch import ScratchFolder
from adp_schema.store import Store


@dataclass(frozen=True)
class SampleStore:
    """Samples as a store.

    Attributes:
        store: the store.
        places: ``seq`` of a trajectory -> place of its sample, in the order of the samples.
    """

    store: Store
    places: Mapping[int, int]


@contextmanager
def store_of(samples: Sequence[Any]) -> Iterator[SampleStore]:
    """A store of samples, for as long as the block lasts.

    Args:
        samples: records of one format that `adp convert` reads (dialogs of ``agent_sft``, rows in
            ChatML, ...), as mappings, dataclasses, or objects with ``to_dict``; or items with a
            ``text`` and nothing else to read.

    Yields:
        The store, with the place of each trajectory's sample.

    Raises:
        UsageError: a sample is not read by any format, or as several trajectories.
    """
    from adp.converters.run import ConvertOptions, convert

    with ScratchFolder("samples") as folder:
        path = folder / "samples.jsonl"
        with path.open("wb") as file:
            for number, sample in enumerate(samples):
                file.write(_line(_record(sample), number))
        try:
            convert([str(path)], str(folder / "store"), options=ConvertOptions(workers=1))
            store = Store.open(str(folder / "store"))
        except AdpError as error:
            raise UsageError(f"the samples cannot be read: {error}") from error
        seqs = store.scan("trajectories").select("seq").collect()["seq"].sort().to_list()
        if len(seqs) != len(samples):
            raise UsageError(
                f"{len(samples):,} samples gave {len(seqs):,} trajectories; give samples of one "
                "format, each of them a whole dialog or run"
            )
        yield SampleStore(store, {seq: place for place, seq in enumerate(seqs)})


def sample_id(sample: Any) -> str | None:
    """The id of a sample under the names that SAGE looks for; None when it has none."""
    for name in ("sample_id", "dialog_id", "trajectory_id"):
        value = sample.get(name) if isinstance(sample, Mapping) else getattr(sample, name, None)
        if value is not None:
            return str(value)
    return None


def _line(record: Any, number: int) -> bytes:
    try:
        return jsontext.text_of(record).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise UsageError(f"sample {number} is not JSON: {error}") from error


def _record(sample: Any) -> Any:
    if isinstance(sample, Mapping):
        record: Any = dict(sample)
    elif callable(getattr(sample, "to_dict", None)):
        record = sample.to_dict()
    elif is_dataclass(sample) and not isinstance(sample, type):
        record = asdict(sample)
    else:
        record = {"text": getattr(sample, "text", None)}
    if isinstance(record.get("text"), str) and not record.keys() & {"messages", "turns", "steps"}:
        return {"messages": [{"role": "assistant", "content": record["text"]}]}
    return record
