"""What each S3 request does to a key, on AWS or, where `lenient`, on a server that completes an upload twice."""

from __future__ import annotations

from tests.model.state import Key, State


def open_upload(state: State, name: str) -> State:
    return state.with_key(name, state.key(name)._replace(upload="open"))


def complete(state: State, name: str, lenient: bool) -> tuple[State, bool]:
    """CompleteMultipartUpload; False: NoSuchUpload."""
    key = state.key(name)
    if key.upload == "open" or (lenient and key.upload == "done"):
        return state.with_key(name, Key("done", (*key.data, "ours"), True)), True
    return state, False


def abort(state: State, name: str) -> State:
    """AbortMultipartUpload by id; nothing happens to a completed one."""
    key = state.key(name)
    return state.with_key(name, key._replace(upload="gone")) if key.upload == "open" else state


def delete(state: State, name: str, keep_version: bool = True) -> State:
    """DELETE of a key: a delete marker; keep_version=False: of its version, too."""
    key = state.key(name)
    return state.with_key(name, key._replace(visible=False, data=key.data if keep_version else ()))


def remove_version(state: State, name: str) -> State:
    """DELETE of a data version: for good."""
    key = state.key(name)
    return state.with_key(name, key._replace(data=key.data[:-1], visible=key.visible and len(key.data) > 1))


def put(state: State, name: str) -> State:
    """PUT of an object that no listing of the table's folder shows."""
    return state.with_key(name, Key("done", ("ours",), False))


def remove_marker(state: State, name: str) -> State:
    key = state.key(name)
    return state.with_key(name, key._replace(visible=True)) if key.data else state


def put_foreign(state: State, name: str) -> State:
    key = state.key(name)
    return state.with_key(name, key._replace(data=(*key.data, "foreign"), visible=True))


def has_data(state: State, name: str) -> bool:
    """Whether the key has a data version that can still be copied."""
    data = state.key(name).data
    return bool(data) and data[-1] != "expired"
