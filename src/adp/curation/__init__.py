"""Recipes, ops and the ledger: from stores to the data that is worth training on.

A run, from top to bottom:

    recipe_file, recipe    what the user wrote, checked
    check_plan             what shows before data is read
    inputs, load           the stores, and what every trajectory is: task, size, branches
    run, state             stage after stage: a pool is given to an op, its outcome is taken up
    pool, partitions, op   what an op sees, and what it says; the ops are in `ops`
    outputs, ledger        the selection, and why each trajectory is in or out
    record, write          the folder ``curation`` and the stores; `linked` writes them later
    why, diff              questions to the record

`apply` runs one op on stores, without a recipe. What ops share: `texts` (the words of trajectories,
as views, n-grams and vectors), `grouping`, `stable`, `survivors`, `tasks`.
"""
