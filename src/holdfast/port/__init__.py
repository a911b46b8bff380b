"""What adapters, importers and commands may use beside the public names of the package.

Satellites import the modules of this package, `holdfast`, and its `types`, `errors`, `contract`, `kinds` and
`settings`, and nothing else of Holdfast.

`items` stores what a framework keeps, in one transaction with the messages of chats; `vectors` searches it.
`formats` reads and writes messages in the chat formats. `prompts` has the parts of prompts, `tools` what
agents are offered. `texts` and `safety` clean, shorten and mask what is stored and displayed. `imports` and
`safekeeping` are what importers, exporters and checks of a database need. `handles` has the classes of what
`Memory` returns that are no public names.
"""
