"""Where apps, users and sessions of ADK are in a memory: tenants, users and chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, shown
from holdfast.integrations.framework_keys import chat_id, escape
from holdfast.types import check_name

if TYPE_CHECKING:
    from holdfast import Memory

# The beginning of the ids of chats, and the collection of the items.
FRAMEWORK = "google-adk"
_MEMORY = f"{FRAMEWORK}-memory"


def app_memory(memory: Memory, app_name: str, user_id: str | None) -> Memory:
    """Return the memory of a user of an app, or of the app with None: the app is a tenant.

    Within a memory that has a tenant, it is one of the name `tenant/app`.

    Raises:
        InvalidInput: a name is blank, not text, too long, or has control characters.
        Denied: the memory is bound to a user.

    """
    own, app = memory.scope.tenant, escape(check_name(app_name, "app_name"))
    user = "" if user_id is None else check_name(user_id, "user_id")
    return memory.scoped(tenant=f"{escape(own)}/{app}" if own else app, user=user)


def session_chat(session_id: str) -> str:
    """Return the id of the chat of a session.

    Raises:
        InvalidInput: the id of the session is not text, or empty.

    """
    given: object = session_id
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"The id of a session is {shown(given)}.", "Pass a text.")
    return chat_id(FRAMEWORK, given)


def memory_chat(session_id: str | None) -> str:
    """Return the id of the chat for additions to memory from a session that is stored elsewhere."""
    return chat_id(_MEMORY, session_id) if session_id else _MEMORY
