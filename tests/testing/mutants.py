"""Providers with one defect each, for the suite to find."""

from __future__ import annotations

from mutants_of_chats import CORE
from mutants_of_finding import FINDING
from mutants_of_knowledge import KNOWING, PADS, SESSIONS
from mutants_of_summaries import SUMMARIES

MUTANTS = (*CORE, *SUMMARIES, *FINDING, *KNOWING, *PADS, *SESSIONS)
