"""From ADP v1 JSON to rows."""

from __future__ import annotations

from msgspec import Raw

from adp.converters.adp_v1 import images
from adp.converters.adp_v1.layout import AdpV1Object, is_null, number_of
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.parts import Parts

SOURCES = frozenset({"user", "agent", "environment"})


class AdpV1Reader:
    """Reads one record.

    Args:
        builder: takes the rows.
        losses: takes what cannot be kept.
        marked: whether the record went through `jsontext.sanitise`.
    """

    def __init__(self, builder: RowBuilder, losses: Losses, *, marked: bool) -> None:
        self._builder = builder
        self._losses = losses
        self._marked = marked
        self._acted = False
        self._after_call = False
        self._last_has_id = False

    def read(self, data: bytes) -> None:
        """Convert the record into one trajectory."""
        record = self._item(data, "$")
        record.name = "trajectory"
        version = record.text("schema_version")
        if version == "1":
            record.shape["declared"] = True
        if version is None:
            version = "1"
        columns: Columns = {"source_id": record.required("id"), "source_version": version}
        for key in ("available_apis", "available_custom_tools", "available_code_languages"):
            record.homeless(key)
        if "details" in record.values:
            if record.value("details", "{", "an object") is None:
                raise RecordError("expected an object", "$.details")
            record.fields["details"] = record.values["details"]
        content = record.value("content", "[", "a list")
        if content is None:
            reason = "expected a list" if "content" in record.values else "the key is missing"
            raise RecordError(reason, "$.content")
        columns["extra"] = record.extra()
        self._builder.trajectory(columns)
        for index, raw in enumerate(jsontext.decode_array(content)):
            self._read_item(raw, f"$.content[{index}]")
        self._builder.finish()

    def _item(self, raw: Raw | bytes, path: str) -> AdpV1Object:
        item = AdpV1Object(raw, path, self._losses)
        if self._marked:
            for key in item.values:
                if jsontext.has_mark(key):
                    name = jsontext.mend_text(key)[0]
                    self._losses.add(f"{path}.{name}", "the key holds a lone surrogate")
        return item

    def _read_item(self, raw: Raw, path: str) -> None:
        item = self._item(raw, path)
        item.name = item.required("class_")
        match item.name:
            case "text_observation" | "image_observation":
                self._stated(item)
            case "web_observation":
                self._web(item)
            case "message_action":
                self._message(item)
            case "api_action":
                self._api(item)
            case "code_action":
                self._code(item)
            case _:
                raise RecordError(f"unknown class_ {item.name!r}", f"{path}.class_")

    # ---- observations ----------------------------------------------------------------------

    def _stated(self, item: AdpV1Object) -> None:
        """A text or an image, from the user, the agent or the environment."""
        source = _source(item)
        columns: Columns = {"source": source}
        name: str | None = None
        if item.name == "text_observation":
            columns["text"] = self._builder.text(item.required("content"))
            name = item.text("name")
        else:
            columns.update(self._image(item))
        if source == "environment":
            if name == "system" and not self._acted and "tool_call_id" not in item.values:
                columns["source"] = "system"
            else:
                if name is not None:
                    columns["name"] = name
                self._observe(columns, item)
                return
        elif name is not None:
            columns["actor"] = name
        if source == "agent":
            columns["is_copied_context"] = True
        columns["kind"] = "message"
        if "annotations" in columns:
            item.fields["annotations"] = item.values["annotations"]
            del columns["annotations"]
        item.homeless("tool_call_id")
        self._step(columns, item)

    def _image(self, item: AdpV1Object) -> Columns:
        """The columns of an image: a part of ``content``, and its labelled boxes."""
        text = item.required("content")
        media_id, remember = images.lift(text, self._builder)
        if self._marked and jsontext.has_mark(text):
            item.homeless("content")
        parts = Parts()
        parts.media(media_id, remember)
        columns: Columns = {**parts.columns()}
        annotations = item.value("annotations", "[", "a list")
        if annotations is not None:
            columns["annotations"] = jsontext.one_line(annotations)
        return columns

    def _web(self, item: AdpV1Object) -> None:
        columns: Columns = {"source": "environment"}
        for key in ("html", "axtree", "url"):
            text = item.text(key)
            if text is not None:
                columns[key] = self._builder.text(text)
        viewport = item.value("viewport_size", "[", "a list")
        if viewport is not None:
            columns.update(_viewport(viewport, item))
        image = item.value("image_observation", "{", "an object")
        if image is not None:
            nested = self._item(image, f"{item.path}.image_observation")
            nested.name = "image_observation"
            if nested.text("class_") not in (None, nested.name):
                raise RecordError("expected image_observation", f"{nested.path}.class_")
            source = _source(nested)
            columns.update(self._image(nested))
            for key in ("tool_call_id", "reward"):
                nested.homeless(key)
            shape = nested.finish()
            if "class_" in nested.values and is_null(nested.values["class_"]):
                shape["null"] = ["class_"]
            if source != "environment":
                shape["source"] = source
            if shape:
                item.shape["image"] = shape
            if nested.fields:
                item.fields["image_observation"] = jsontext.raw(jsontext.text_of(nested.fields))
        # Without it a page of which every column was cleared would turn into a text.
        item.shape["class"] = item.name
        self._observe(columns, item)

    def _observe(self, columns: Columns, item: AdpV1Object) -> None:
        """Add an observation; without an id it answers the call right before it, if any."""
        answers = item.text("tool_call_id")
        by_order = answers is None and self._after_call
        if by_order and self._last_has_id:
            item.shape["by_order"] = True
        reward = item.number("reward")
        if reward is not None:
            columns["reward"] = reward
        extra = item.extra()
        if extra is not None:
            columns["extra"] = extra
        self._after_call = False
        self._builder.observation(columns, answers=answers, by_order=by_order)

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, columns: Columns, item: AdpV1Object) -> None:
        reward = item.number("reward")
        if reward is not None:
            columns["reward"] = reward
        extra = item.extra()
        if extra is not None:
            columns["extra"] = extra
        self._after_call = False
        self._builder.step(columns)

    def _message(self, item: AdpV1Object) -> None:
        """A message: what was thought before it is reasoning, in one or two keys."""
        columns: Columns = {"source": "agent", "kind": "llm_turn"}
        parts = Parts()
        thoughts = {key: item.text(key) for key in ("description", "reasoning_content")}
        for thought in thoughts.values():
            if thought is not None:
                parts.reasoning(self._builder.text(thought))
        if thoughts["reasoning_content"] is not None:
            both = thoughts["description"] is not None
            item.shape["thought"] = "both" if both else "reasoning_content"
        parts.text(self._builder.text(item.required("content")))
        columns.update(parts.columns())
        self._acted = True
        self._step(columns, item)

    def _api(self, item: AdpV1Object) -> None:
        kwargs = item.value("kwargs", "{", "an object")
        if kwargs is None:
            raise RecordError("expected an object", f"{item.path}.kwargs")
        call: Columns = {
            "kind": "function",
            "name": item.required("function"),
            "arguments": jsontext.one_line(kwargs),
            "arguments_kind": "object",
        }
        self._act(call, item)

    def _code(self, item: AdpV1Object) -> None:
        language = item.required("language")
        call: Columns = {
            "kind": "code",
            "name": language,
            "language": language,
            "arguments_raw": self._builder.text(item.required("content")),
            "arguments_kind": "text",
        }
        self._act(call, item)

    def _act(self, call: Columns, item: AdpV1Object) -> None:
        """Add the step of an action and its call."""
        columns: Columns = {"source": "agent", "kind": "llm_turn"}
        for key, column in (("description", "text"), ("reasoning_content", "reasoning")):
            text = item.text(key)
            if text is not None:
                columns[column] = self._builder.text(text)
        call_id = item.text("tool_call_id")
        if call_id is not None:
            call["call_id"] = call_id
        self._step(columns, item)
        self._builder.call(call)
        self._acted = self._after_call = True
        self._last_has_id = call_id is not None


def _source(item: AdpV1Object) -> str:
    source = item.required("source")
    if source not in SOURCES:
        raise RecordError("expected user, agent or environment", f"{item.path}.source")
    return source


def _viewport(raw: Raw, item: AdpV1Object) -> Columns:
    """Width and height of the view; numbers that are not plain integers keep their spelling."""
    path = f"{item.path}.viewport_size"
    sizes = jsontext.decode_array(raw)
    values = [None if is_null(size) else number_of(size, path) for size in sizes]
    if len(values) != 2 or None in values:
        raise RecordError("expected two numbers", path)
    width, height = values
    for key, size, value in zip(("width", "height"), sizes, values, strict=True):
        if value is not None and str(int(value)).encode() != bytes(size):
            item.exact[key] = bytes(size).decode("ascii")
    return {"viewport_width": width, "viewport_height": height}
