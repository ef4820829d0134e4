"""Write the same records in every container that is read, and compare what comes out."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adp.converters.run import ConvertOptions, convert
from adp_schema.store import Store

OPENAI = ConvertOptions(format="openai_chat")


def chat(number, text="hello"):
    """A small record; its id tells which one it is."""
    return {
        "id": f"t{number}",
        "messages": [
            {"role": "user", "content": text},
            {"role": "assistant", "content": 'a "quoted" {[ answer\\'},
        ],
    }


def zst(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return sink.getvalue()


def tarred(members, form=tarfile.PAX_FORMAT, links=()):
    """A tar archive: name -> bytes, and links (name, kind, target)."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, kind, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    return sink.getvalue()


def lines(records) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def write_all(folder: Path, records) -> dict[str, Path]:
    """One file for each way to hold records: name of the way -> path."""
    array = json.dumps(records, indent=2, ensure_ascii=False).encode()
    documents = "\n".join(json.dumps(record, indent=2) for record in records).encode()
    glued = "".join(json.dumps(record) for record in records).encode()
    jsonl = lines(records)
    half = jsonl.index(b"\n") + 1
    contents = {
        "lines.jsonl": jsonl,
        "array.json": array,
        "documents.json": documents,
        "glued.json": glued,
        "lines.jsonl.gz": gzip.compress(jsonl, mtime=0),
        "members.jsonl.gz": gzip.compress(jsonl[:half]) + gzip.compress(jsonl[half:]) + b"\0" * 9,
        "array.json.gz": gzip.compress(array),
        "documents.json.zst": zst(documents),
        "lines.jsonl.zst": zst(jsonl[:half]) + zst(jsonl[half:]),
        "unnamed": zst(jsonl),
        "deflated.zip": zipped({"x.jsonl": jsonl}),
        "stored.zip": zipped({"x.json": array}, zipfile.ZIP_STORED),
        "bzipped.zip": zipped({"x.json": documents}, zipfile.ZIP_BZIP2),
        "gz_inside.zip": zipped({"x.jsonl.gz": gzip.compress(jsonl)}),
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    columns = {
        "id": [record["id"] for record in records],
        "messages": [record["messages"] for record in records],
    }
    pq.write_table(pa.table(columns), folder / "nested.parquet")
    columns["messages"] = [json.dumps(messages) for messages in columns["messages"]]
    pq.write_table(pa.table(columns), folder / "text.parquet")
    return {name: folder / name for name in [*contents, "nested.parquet", "text.parquet"]}


def converted(source, out: Path, options: ConvertOptions = OPENAI) -> Store:
    """Convert into a new store, check its sum, and open it."""
    counts = convert([str(source)], str(out), options=options).counts
    assert counts.balanced()
    return Store.open(str(out))


def rejections(store: Store):
    """What the trajectories of a store say, without where they come from."""
    return [
        (t.source_id, [(step.source, step.text) for step in t.steps]) for t in store.trajectories()
    ]


def reasons(store: Store) -> list[str]:
    """Why records were rejected, in order."""
    rows = store.scan("rejects").collect().sort("seq").to_dicts()
    return [row["reason"] for row in rows]
