from __future__ import annotations

import pytest

from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction, parse_slot_action

ID = "0123456789abcdef0123456789abcdef"


def test_a_slot_is_named_in_the_path_and_a_chat_by_its_id():
    assert parse_slot_action("2", "action=park") == SlotAction("park", 2)
    assert parse_slot_action("0", f"action=unpark&id={ID}") == SlotAction("unpark", 0, ID)
    dashed = "01234567-89ab-cdef-0123-456789abcdef"
    assert parse_slot_action("0", f"action=unpark&id={dashed}&worker=w2") == SlotAction("unpark", 0, ID, "w2")


@pytest.mark.parametrize("action", ["save", "restore", "erase"])
def test_what_llama_server_does_with_files_is_not_supported(action):
    with pytest.raises(RequestError, match=action) as caught:
        parse_slot_action("0", f"action={action}")
    assert (caught.value.status, caught.value.type) == (501, "not_supported_error")


@pytest.mark.parametrize(
    ("slot", "query", "param"),
    [
        ("0", "", "action"),
        ("0", "action=", "action"),
        ("0", "action=PARK", "action"),
        ("x", "action=park", "id_slot"),
        ("-1", "action=park", "id_slot"),
        ("1.0", "action=park", "id_slot"),
        ("²", "action=park", "id_slot"),
        ("9" * 5000, "action=park", "id_slot"),
        ("0", "action=unpark&id=7", "id"),
    ],
)
def test_anything_else_is_refused_and_its_field_is_named(slot, query, param):
    with pytest.raises(RequestError) as caught:
        parse_slot_action(slot, query)
    assert (caught.value.status, caught.value.param) == (400, param)
