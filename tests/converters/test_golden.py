"""What the examples become is reviewed text: a change must show in a diff."""

from tests.golden import FOLDER, contents


def test_golden_files_are_current():
    current = contents()
    on_disk = {
        str(path.relative_to(FOLDER)): path.read_text(encoding="utf-8")
        for path in FOLDER.rglob("*.json")
    }
    assert on_disk.keys() == current.keys()
    for name, text in current.items():
        assert on_disk[name] == text, f"{name} changed; look, then run: make golden"
