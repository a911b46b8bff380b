"""How many lines of code each room of the package has at most, and why."""

from collections import Counter

# Code lines of each room at most: as planned, and what the answers to attacks (checksums, receipts, salvage,
# the guard) and the windows of real agents (media, large results, caches of providers) added since. What is
# added later is written beside it.
# Projects, teams and grants.
SPACES = 900
# Filters on metadata: the tree and its evaluator, the table of values, masks, lists, the option --where.
FILTERS = {"types": 173, "store": 310, "search": 200, "records": 70, "tools": 15, "front": 10, "cli": 112}
# Adapters and importers, each on a line of its own: first what all adapters need.
ADAPTERS = Counter[str]()
ADAPTERS += {
    "store": 135,
    "integrations": 110,
    "prompt": 25,
    "tools": 50,
    "front": 20,
}
# Databases of other programs, formats that are recognised by their text or tables.
ADAPTERS += {"store": 165, "io": 45}
# What Codex, Gemini CLI, Cursor and SpecStory write.
ADAPTERS += {"io": 600}
# Folders that are watched; parts of files came from the hooks; what hooks were told.
ADAPTERS += {"io": 185, "cli": 75, "hooks": -25}
ADAPTERS += {"io": 140, "store": 30}  # records of files, each once
# LangGraph's checkpointer: messages and items in one transaction, files that are rewritten later.
ADAPTERS += {"store": 40 + 20, "front": 3, "integrations": 1_080}
# What Letta, mem0, LangGraph and OpenAI Agents store, and the encodings it is stored in.
ADAPTERS += {"io": 665, "cli": 4}
ADAPTERS += {"integrations": 133, "types": 2}  # LangChain
# LangGraph's store: operations, filters, vectors, TTL; an index in memory over its items.
ADAPTERS += {"integrations": 735, "search": 120, "store": 30}
ADAPTERS += {"integrations": 325}  # LlamaIndex, and lists of messages
ADAPTERS += {"io": 300, "cli": 40, "store": 5}  # chats in the formats of others, and as Markdown
ADAPTERS += {"io": 215, "cli": 55}  # records as Markdown, and their edits
ADAPTERS += {"io": 155, "cli": 6}  # notes in Markdown
ADAPTERS += {"io": 215, "cli": 40}  # tables by a mapping
# Conversations of pydantic-ai that branch; the storage for CrewAI, its records in memory.
ADAPTERS += {"integrations": 235 + 310 + 15, "store": 14, "types": 1}
# Google's ADK: sessions, state and memory; values of scratchpads and items of all chats in one transaction.
ADAPTERS += {"integrations": 505, "store": 20, "front": 5, "errors": 2}
ADAPTERS += {"integrations": 287, "types": 2, "store": 4}  # Strands Agents; metadata of hits
ADAPTERS += {"integrations": 205}  # Microsoft Agent Framework; what is known and recalled
ADAPTERS += {"hooks": 35, "cli": 10}  # wishes that wait for the person's word
ADAPTERS += {"io": 20}  # two imports of records at once
ADAPTERS += {"hooks": 55, "io": 15}  # transcripts of Codex and Gemini CLI, what hooks add to a prompt
ADAPTERS += {"hooks": 11, "io": 2}  # the transcripts of Cursor
ADAPTERS += {"hooks": 44, "cli": 9}  # doctor: hooks changed or switched off; instructions around a session
ADAPTERS += {"hooks": 33, "io": 4}  # sets, folders and patterns of a shell in .holdfastignore
ADAPTERS += {"io": 46}  # texts that are not UTF-8, why a file is in no format
ADAPTERS += {"text": 11, "store": 7, "search": 1, "records": 6, "cli": 13}  # names with their space
# Sessions read without the rest of their messages; page by page.
ADAPTERS += {"store": 34, "integrations": 25}
BUDGETS = {
    "types settings kinds events contract errors": 1_050
    + 300
    + 112  # references to spaces, grants
    + 10  # who hears the events of a team; what is no part of a scope
    + 71  # names imported late, and the tables that name them
    + FILTERS["types"],
    # Tokens of values and words without content came from dedup; the form of messages, other languages and
    # nearest words were added since.
    # Statements, by their form; by what is said before and after them, and by their words; reminders.
    # Tables that are bytes; patterns compiled late; JSON of our own.
    "text": 1_000 + 150 + 500 + 120 + 70 + 330 + 65 + 7 + 6 + 8,
    # What was found in a message is cached, patterns are compiled late; names for types only.
    "safety": 1_200 + 667 + 2,
    "messages": 350 + 470 + 60,  # uses of tools, from learning
    "store": 2_700
    + 1_250
    + 135
    + 155
    + 5  # one connection to a server that is opened, not two
    + 33  # group commit, flags found when read; vectors, also of what an erasure brings back; large values
    + 10  # jobs of the same words in their order
    + 2  # the prompt of a summary
    + 10  # names for types only
    + 330  # grants, and what checks them at each statement; moves of records
    + 15  # a call by its id; texts that everyone is shown
    + FILTERS["store"]
    + 49,  # the state of a file, for doctor
    # Embedders, what they failed of as text; loaders of models on this machine; prompts that users choose.
    "llm": 700 + 190 + 190 + 115 + 16,
    # Passages, output, conclusions, what is later; questions of other languages, words that no document has;
    # the scan of vectors, fusion; explanations, for which filters have names; bounds; probabilities; what
    # waits in quarantine; how what is similar stands out; nearness of spaces.
    # Chats that are left out.
    "search": 1_500 + 240 + 45 + 75 + 451 + 163 + 118 + 60 + 8 + 5 + 60 + 12 + 16 + FILTERS["search"],
    # The value that differs, with a forest of its own; thresholds, comparisons, nearness in meaning.
    "dedup": 1_450 - 250 + 194,
    # Recall by meaning, explanations, what is behind a quarantine; feedback; proposals; release of sessions.
    # Grants, and records that go to other spaces.
    # What changed in the other space since a move, or was erased; teams, files in use; who only reads.
    "records": 1_050 + 150 + 62 + 49 + 220 + 6 + 30 + FILTERS["records"],
    "prompt": 800 + 675 + 50,  # whose an entry is
    # What was done in work sessions, and the words of their users; outlines for models, prompts of the
    # user's own.
    "compaction": 1_500 + 120 + 270 + 30,
    # The job that embeds; kinds that say what is to be learned, by their examples and over the history;
    # statements worth keeping; episodes without the words of others, and with what ran and is open; one
    # question about a session; episodes and facts learned again.
    "learning": 3_200 + 600 + 126 + 310 + 180 + 70 + 16 + 310,
    "tools": 1_900 + 620 + 30 + FILTERS["tools"],  # whose a hit is
    # The embedder of a memory and the check of its vectors, explanations; a program that only asks loads no
    # chats and windows; names that are imported late.
    "front": 1_700 + 71 + 10 + 5 + 24 + 60 + FILTERS["front"],  # projects, teams, grants
    "providers": 450 + 160 + 40,
    "integrations": 2_000,
    "testing": 2_500,
    # Feedback as questions; the tail of a session log; what the user keeps private.
    "io demo": 850 + 200 + 45 + 60 + 640,
    # What runs at the events of coding agents; what the clients write and demand, how hooks come into their
    # configurations; what the user keeps private, and what clients show anyway.
    # What doctor checks: configurations, transcripts, the journal. Logs by projects; where the database is.
    # Folders of the user without platformdirs; limits that are none; what fails after the answer.
    # Locks at the end of sessions, folders that cannot be written, hooks that run twice, decisions.
    "hooks": 1_150 + 890 + 460 + 475 + 70 + 32 + 30,
    # HOLDFAST_EMBED, why; how much is embedded; learn kind, feedback; recall what is in quarantine; ranges
    # that run backwards; compact --prompt.
    # The way to the hooks; pauses; projects, grants; install and uninstall; doctor.
    "cli": 2_600 + 1_000 + 36 + 32 + 75 + 29 + 150 + 6 + 40 + 55 + 18 + 50 + 91 + FILTERS["cli"],
}
for room, lines in ADAPTERS.items():
    BUDGETS[next(rooms for rooms in BUDGETS if room in rooms.split())] += lines

# Recall by passages, in other languages and by meaning, group commit; wished kinds and feedback;
# statements by their form; episodes; recall of what waits; prompts of summaries; one question about a
# session, episodes and facts learned again; the value in which two facts differ; what is written about
# how people decide; work sessions in summaries; reminders; hooks, their clients; privacy.
TOTAL = 28_500 + 6_540 + 2_100 + 420 + 300 + 90 + 70 + 320 + 220 + 25 + 260 + 60 + 9
TOTAL += 30  # erasure of teams and projects, beside grants
TOTAL += 108  # what a new process loads late; JSON of our own
# Messages of several spaces, ranked at once.
BUDGETS["search"] += 230
TOTAL += 230
hooks, clients, privacy, doctor = 1_150 + 6 + 60 + 12 + 18 + 16 + 38, 890 + 50, 1_140, 49 + 475 + 91 + 70
TOTAL += hooks + clients + privacy + doctor
TOTAL += SPACES + sum(FILTERS.values()) + sum(ADAPTERS.values())
