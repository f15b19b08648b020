"""Content parts and tool definitions of the OpenAI chat API in Anthropic shape."""

from typing import Any

from refold.domain.messages import Block

from .content import Content, as_content, image_block, text_block
from .parsing import as_object


def converted_content(value: Any) -> Content | None:
    """String or parts as Anthropic content; parts that are not known stay as they came."""
    content = as_content(value)
    if content is None or isinstance(content, str):
        return content
    return tuple(_block(part) for part in content)


def converted_tool(tool: Any) -> dict[str, Any] | None:
    """A tool definition as name, description, input_schema; None where it has no name."""
    outer = as_object(tool) or {}
    function = as_object(outer.get("function")) or outer
    if not isinstance(function.get("name"), str):
        return None
    if "input_schema" in function:
        return function
    converted: dict[str, Any] = {"name": function["name"]}
    if isinstance(function.get("description"), str):
        converted["description"] = function["description"]
    if isinstance(function.get("strict"), bool):
        converted["strict"] = function["strict"]
    schema = function.get("parameters")
    # There a function without parameters may say so with an empty schema; here every schema has a type.
    converted["input_schema"] = {"type": "object", **(as_object(schema) or {})}
    return converted


def _block(part: Block) -> Block:
    match part:
        case {"type": "input_text" | "output_text", "text": str(text)}:
            return text_block(text)
        case {"type": "refusal", "refusal": str(text)}:
            return text_block(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image(url)
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return _image(url)
        case {"type": "image", "image": str(url)}:
            return _image(url)
        case {"type": "file", "file": {"file_data": str(url)} as file}:
            return _document(url, file)
        case {"type": "input_file", "file_data": str(url)}:
            return _document(url, part)
        case _:
            return part


def _document(url: str, file: Block) -> Block:
    """A document with its data; it keeps the name of the file as its title."""
    head, comma, data = url.partition(",")
    media_type = head.removeprefix("data:").split(";")[0] if comma else ""
    source = {
        "type": "base64",
        "media_type": media_type or "application/pdf",
        "data": data if comma else url,
    }
    named = file.get("filename")
    title = {"title": named} if isinstance(named, str) and named else {}
    return {"type": "document", "source": source, **title}


def _image(url: str) -> Block:
    """An image by address, or with its data where the address holds it."""
    head, comma, data = url.partition(",")
    if not url.startswith("data:") or not comma or not head.endswith(";base64"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type = head.removeprefix("data:").split(";")[0]
    if media_type == "image/jpg":  # Taken there under this name, too.
        media_type = "image/jpeg"
    return image_block(media_type or "image/png", data)
