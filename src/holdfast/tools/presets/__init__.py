"""Sets of tools with the interfaces of other memories; `Memory.tools` makes our own.

- `observation_tools`: remember and recall findings, insights and lessons, and a scratchpad.
- `provider_tool`: one tool with up to thirteen actions, as many as the provider can do.
- `compartment_tools`: save, get and clear entries of a run, a session, or a plan.
- `fact_tool`: one tool for facts about the user and the environment, and for episodes.
"""

from holdfast.tools.presets.compartments import compartment_tools
from holdfast.tools.presets.facts import fact_tool
from holdfast.tools.presets.observations import observation_tools
from holdfast.tools.presets.provider import provider_tool

__all__ = ["compartment_tools", "fact_tool", "observation_tools", "provider_tool"]
