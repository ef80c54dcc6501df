"""An agent as a program of its own: calls the tools in the order in which the request names them.

    agenteval plan test suite.jsonl --agent 'command:python -m tests.support.planner'

It speaks lines of JSON.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Work on one request."""
    start = json.loads(sys.stdin.readline())
    names = [entry["function"]["name"] for entry in start["tools"]]
    request = start["request"].lower()
    for name in sorted(names, key=lambda name: request.find(name.replace("_", " "))):
        print(json.dumps({"type": "call", "id": 0, "name": name, "arguments": {}}), flush=True)
        sys.stdin.readline()
    print(json.dumps({"type": "final", "content": "done"}), flush=True)


if __name__ == "__main__":
    main()
