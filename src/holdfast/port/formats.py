"""The chat formats: dicts of OpenAI, Anthropic and others as messages, and messages as such dicts."""

from holdfast.messages.anthropic import to_anthropic
from holdfast.messages.formats import REASONING, blocks_of, export, parse, read_time
from holdfast.messages.media import has_media
from holdfast.messages.message_tokens import message_tokens
from holdfast.messages.normalize import ready
from holdfast.messages.openai import to_openai
from holdfast.text.clean import each_text
