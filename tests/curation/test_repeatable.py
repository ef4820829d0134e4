from __future__ import annotations

import pytest

from adp.curation.repeatable import check_repeatable
from adp_schema.errors import QueryError


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT random()",
        "SELECT seq FROM pool WHERE (SELECT uuid()) IS NOT NULL",
        "SELECT now()",
        "SELECT seq FROM pool ORDER BY RANDOM()",
        "WITH x AS (SELECT gen_random_uuid() AS a) SELECT * FROM x",
        "SELECT seq FROM pool USING SAMPLE 3",
        "SELECT seq FROM pool TABLESAMPLE 10%",
    ],
)
def test_chance_and_clock_are_refused(sql):
    with pytest.raises(QueryError, match=r"another result each time|needs REPEATABLE"):
        check_repeatable(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT hash(seq) % 7 FROM pool",
        "SELECT 'random()' AS now FROM pool",
        "SELECT seq FROM pool TABLESAMPLE reservoir(3) REPEATABLE (7)",
        "SELECT date_trunc('day', started_at), row_number() OVER (ORDER BY seq) FROM pool",
        "no SQL at all",
    ],
)
def test_the_rest_passes(sql):
    check_repeatable(sql)
