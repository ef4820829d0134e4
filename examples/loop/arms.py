"""What the model is trained on when parts of the curation are left out."""


def without(*names):
    """A change of a recipe: ops of these names are left out."""

    def change(recipe):
        recipe["ops"] = [op for op in recipe["ops"] if not set(op) & set(names)]

    return change


def without_option(name, option):
    """A change of a recipe: the ops of a name that have an option are left out."""

    def change(recipe):
        recipe["ops"] = [op for op in recipe["ops"] if option not in op.get(name, {})]

    return change


def at_random(recipe):
    """A change of a recipe: a random subset of the same size is trained on, with the same mask."""
    size = next(op["mix"]["total"] for op in recipe["ops"] if "mix" in op)
    mask = next(op for op in recipe["ops"] if "mask" in op)
    recipe["ops"] = [{"coreset": {"method": "random", "size": size, "coverage": False}}, mask]


def as_it_is(recipe):
    """A change of a recipe: all that was collected, with the loss on every step of the agent."""
    recipe["ops"] = []


ARMS = {
    "raw": as_it_is,
    "random subset": at_random,
    "no mask": without("mask"),
    "no decontamination": without("decontaminate"),
    "wrong answers kept": without_option("filter", "preset"),
    "circles kept": without_option("filter", "max"),
}
"""Each changes the recipe in one way; pool, start and number of steps are those of `curated`."""


def slug(name):
    """A name as it stands in names of folders."""
    return name.replace(" ", "-")


def arm(work, scale, seed, name):
    """Curate, train and measure; start and pool are those of the main run."""
    from examples.loop.run import curate, learn, measure

    folder = f"arm-{slug(name)}"
    facts = {"curated": work.once(folder, lambda: curate(work, scale, seed, folder, ARMS[name]))}
    facts["training"] = learn(work, scale, seed, f"{folder}-sft", f"{folder}/data")
    return facts | measure(work, folder, facts["training"]["model"])
