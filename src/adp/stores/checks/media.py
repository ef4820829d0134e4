"""Checks of images, other blobs and pages."""

from __future__ import annotations

from adp.stores.checks.model import Check, SqlCheck
from adp.stores.checks.sql import result_path, step_path

_ID = r'"media_id":\s*"([0-9a-f]{32})"'


def _uses() -> str:
    """SELECT of every place where a part refers to a blob."""
    parts = (
        ("steps s", "s", "0", step_path("s.step", ".content")),
        ("observations o", "o", 'o."order"', f"{result_path()} || '.content'"),
    )
    return " UNION ALL ".join(
        f"""
        SELECT {t}.seq, {t}.trajectory_id, {t}.step, {place} AS place, {path} AS path,
            unnest(regexp_extract_all({t}.content, '{_ID}', 1)) AS media_id
        FROM {table} WHERE contains({t}.content, '"media_id"')"""
        for table, t, place, path in parts
    )


def _blobs(where: str) -> str:
    """SELECT of the places that refer to blobs which fulfil a condition."""
    return f"""
        SELECT u.seq, u.trajectory_id, u.step, u.place, u.path, m.uri AS excerpt
        FROM ({_uses()}) u
        JOIN (SELECT DISTINCT media_id, uri FROM media WHERE {where}) m USING (media_id)"""


_LOCAL = r"uri IS NOT NULL AND regexp_matches(uri, '^(?:/[^/]|~/|[A-Za-z]:[\\/]|\\\\|file:)')"

CHECKS = (
    Check(
        "local-media-path",
        "warning",
        "An image or another blob is an absolute path of one machine, or a file: address.",
        "Convert with the files beside the source, or write paths relative to it.",
        SqlCheck(_blobs(_LOCAL)),
    ),
    Check(
        "media-not-stored",
        "note",
        "An image or another blob is known by its address only; the bytes are not in the store.",
        "Keep the files that the addresses name.",
        SqlCheck(_blobs(f"data IS NULL AND NOT coalesce({_LOCAL}, false)")),
    ),
    Check(
        "missing-media",
        "error",
        "A part refers to a blob that is not in the table media.",
        "Write the blob into the table media, or remove the part.",
        SqlCheck(
            f"""
            SELECT u.seq, u.trajectory_id, u.step, u.place, u.path, u.media_id AS excerpt
            FROM ({_uses()}) u ANTI JOIN media m ON m.media_id = u.media_id"""
        ),
    ),
    Check(
        "empty-page",
        "warning",
        "An observation of a page has no html, no accessibility tree, no image and no text.",
        "Get the page, or leave the step out.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {result_path()} AS path,
                coalesce(o.url, '') AS excerpt
            FROM observations o
            WHERE (o.url IS NOT NULL OR o.viewport_width IS NOT NULL
                    OR contains(o.extra, '"web_observation"'))
                AND coalesce(o.html, '') = '' AND coalesce(o.axtree, '') = ''
                AND coalesce(o.text, '') = '' AND o.content IS NULL"""
        ),
    ),
    Check(
        "incomplete-page",
        "note",
        "An observation of a page lacks its html or its address.",
        "Nothing, if the agent saw only the accessibility tree or the image.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {result_path()} AS path,
                CASE WHEN coalesce(o.html, '') <> '' THEN 'no url'
                    WHEN coalesce(o.url, '') <> '' THEN 'no html; ' || o.url
                    ELSE 'no html, no url' END AS excerpt
            FROM observations o
            WHERE (o.url IS NOT NULL OR o.html IS NOT NULL OR o.axtree IS NOT NULL
                    OR o.viewport_width IS NOT NULL OR contains(o.extra, '"web_observation"'))
                AND (coalesce(o.html, '') = '' OR coalesce(o.url, '') = '')"""
        ),
    ),
)
