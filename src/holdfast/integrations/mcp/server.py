"""The MCP server: the actions of an agent as tools, and the content of a memory as resources and prompts.

It supports all versions of the protocol that the SDK does: `make_server(memory).run("stdio")`.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

from holdfast import __version__
from holdfast.errors import Denied, HoldfastError, InvalidInput, MissingExtra
from holdfast.port.tools import Action, Actions, Documents, as_json, check_texts, guidance_on

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.mcpserver.resolve import AcceptedElicitation, ElicitationResult, Resolve
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
    from mcp_types import CallToolResult, GetPromptResult, InputRequiredResult, TextContent, ToolAnnotations
except ImportError as error:
    raise MissingExtra.of("mcp") from error

from holdfast.integrations.mcp import elicitation, resources
from holdfast.integrations.mcp.elicitation import Consent

if TYPE_CHECKING:
    from holdfast.contract import Provider

# An MCP client has no chat, so no notes; `status` is a resource.
_LEFT_OUT = ("notes", "status")
# The resources that an action changes: those of `_ALWAYS` with every call, others with an argument of
# `_WRITING`.
_CHANGED: Mapping[str, tuple[str, ...]] = {
    "remember": ("facts",),
    "update": ("facts", "constraints", "profile"),
    "forget": ("facts", "constraints", "profile"),
    "history": ("facts", "constraints", "profile"),
    "profile": ("profile",),
    "constraints": ("constraints",),
}
_ALWAYS = ("remember", "update", "forget")
_WRITING = ("restore", "text", "soul", "add", "remove")
_log = logging.getLogger(__name__)


class _Offer(NamedTuple):
    """An action: its function, the resolver that asks the user, and the function for calls they agreed to."""

    action: Action
    run: Callable[..., object]
    agreed: Callable[..., object]
    ask: Callable[..., object] | None


def make_server(provider: Provider, *, read_only: bool = False) -> MCPServer[object]:
    """Return the MCP server of a memory.

    Its tools are those of `recall, remember, update, forget, expand, history, profile, constraints,
    scratchpad, search_sessions` that the memory can do, and `search` and `fetch`, which some clients look
    for. A call that removes something or changes a constraint asks the user first, through the client; it is
    denied if the client cannot ask. Add tools, prompts and resources of your own as to any server of the SDK,
    with `@server.tool()`.

    Args:
        provider: the memory, bound to its user.
        read_only: offer no tool that writes.

    Raises:
        MissingExtra: the SDK is not installed.

    """
    actions = Actions(provider, read_only=read_only)
    offers = _offers(provider, actions, read_only=read_only)
    server = _Server(
        {offer.action.name: offer.action for offer in offers},
        tools=[_tool(offer) for offer in offers],
        name="holdfast",
        title="Holdfast",
        version=__version__,
        instructions=guidance_on({offer.action.name for offer in offers}),
        log_level="WARNING",
    )
    resources.add(server, provider, actions)
    return server


def _offers(provider: Provider, acting: Actions, *, read_only: bool) -> list[_Offer]:
    agreed = Actions(provider, read_only=read_only, confirm=lambda _: True)
    offers = [
        _Offer(
            action,
            getattr(acting, action.name),
            getattr(agreed, action.name),
            None if action.read_only else elicitation.asking(action, acting),
        )
        for action in acting.available()
        if action.name not in _LEFT_OUT
    ]
    documents = Documents(provider)
    there = {offer.action.name for offer in offers}
    pair = ((documents.search, "recall"), (documents.fetch, "expand"))
    reading = [method for method, needed in pair if needed in there]
    return offers + [_Offer(Action.reading(method), method, method, None) for method in reading]


# From an action to a tool


def _tool(offer: _Offer) -> Tool:
    action = offer.action
    tool = Tool.from_function(
        _function(offer),
        name=action.name,
        title=action.name.replace("_", " ").capitalize(),
        description=action.description,
        annotations=ToolAnnotations(
            read_only_hint=action.read_only,
            destructive_hint=action.destructive,
            idempotent_hint=action.idempotent,
            open_world_hint=False,
        ),
        structured_output=False,
    )
    tool.parameters = action.schema()
    gives = FuncMetadata(
        arg_model=tool.fn_metadata.arg_model, output_model=get_type_hints(offer.run)["return"]
    )
    gives.output_schema = _bare(gives.output_schema)
    tool.fn_metadata = gives
    return tool


def _bare(schema: Any) -> Any:
    """Return a schema without titles, which repeat the names, and without the docstrings of our classes."""
    if isinstance(schema, dict):
        return {
            name: _bare(value)
            for name, value in schema.items()
            if not (name in ("title", "description") and isinstance(value, str))
        }
    return [_bare(part) for part in schema] if isinstance(schema, list) else schema


def _function(offer: _Offer) -> Callable[..., CallToolResult]:
    """Return the function for the SDK: its signature has the parameters, and the consent where needed."""

    def run(*, consent: object = None, **given: Any) -> CallToolResult:
        named = {name: value for name, value in given.items() if value is not None}
        return _result((offer.agreed if _has_agreed(consent) else offer.run)(**named))

    hints: dict[str, Any] = offer.action.hints
    if offer.ask is not None:
        hints["consent"] = Annotated[ElicitationResult[Consent], Resolve(offer.ask)]
    needed = {parameter.name for parameter in offer.action.parameters if parameter.required}
    run.__name__ = offer.action.name
    run.__annotations__ = {**hints, "return": CallToolResult}
    # The SDK reads the signature.
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in needed or name == "consent" else None,
                annotation=hint,
            )
            for name, hint in hints.items()
        ],
        return_annotation=CallToolResult,
    )
    return run


def _has_agreed(consent: object) -> bool:
    """Return whether the user was asked and agreed.

    Raises:
        Denied: they were asked and did not agree.

    """
    if consent is None:
        return False
    if isinstance(consent, AcceptedElicitation):
        if consent.data is None:
            # The call needs no consent.
            return False
        if consent.data.agreed:
            return True
    raise Denied("The user was asked and did not agree.", "Leave it as it is, unless they ask for it.")


def _result(result: object) -> CallToolResult:
    data = as_json(result)
    text = json.dumps(data, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data)


def _failure(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


class _Server(MCPServer[object]):
    """A server that returns failures of the memory's tools as results with what to do.

    Tools that are added to it are called as on any server of the SDK.
    """

    def __init__(self, actions: Mapping[str, Action], **settings: Any) -> None:
        super().__init__(**settings)
        self._actions = dict(actions)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; another one may take its name."""
        super().remove_tool(name)
        self._actions.pop(name, None)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[object, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Return the result of a tool; failures of the memory's tools are results too."""
        if name in self._actions:
            return await self._act(self._actions[name], arguments, context)
        there = [tool.name for tool in await self.list_tools()]
        if name in there:
            return await super().call_tool(name, arguments, context)
        return _failure(str(InvalidInput("There is no tool of this name.", f"There are {', '.join(there)}.")))

    async def _act(
        self, action: Action, arguments: dict[str, Any], context: Context[object, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        name = action.name
        try:
            given = action.checked(arguments)
            result = await super().call_tool(name, given, context)
        except HoldfastError as error:
            return _failure(str(error))
        except UnexpectedToolError as error:
            if isinstance(error.__cause__, HoldfastError):
                return _failure(str(error.__cause__))
            _log.exception("The tool %s failed.", name)
            return _failure(f"`{name}` failed within the memory. What happened is in the log of the server.")
        except ToolError:
            return _failure(f"`{name}` was not done: the client's answer to its question cannot be used.")
        if context is not None and isinstance(result, CallToolResult):
            for resource in _changed_resources(name, given):
                await context.notify_resource_updated(f"memory://{resource}")
        return result

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[object, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt; an unknown name or argument is an error of the request."""
        takes = {prompt.name: prompt.arguments or () for prompt in await self.list_prompts()}
        with resources.request_errors():
            if name not in takes:
                there = f"There are {', '.join(takes)}." if takes else "There are none."
                raise InvalidInput("There is no prompt of this name.", there)
            required = {argument.name: bool(argument.required) for argument in takes[name]}
            given = check_texts(arguments or {}, required, f"`{name}`")
        return await super().get_prompt(name, given, context)


def _changed_resources(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the resources that a call may have changed."""
    if name in _ALWAYS or not set(_WRITING).isdisjoint(given):
        return (*_CHANGED.get(name, ()), "status")
    return ()
