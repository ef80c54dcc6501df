class Backend:
    def __init__(self) -> None:
        self.state = {
            "members": {
                "M1": {"has": [], "overdue": False},
                "M2": {"has": ["saw"], "overdue": True},
            },
            "tools": {"drill": "in", "saw": "out", "ladder": "in"},
        }

    def find_member(self, member: str) -> dict:
        """Look a member up: what it has, and whether anything is overdue."""
        if member not in self.state["members"]:
            raise ValueError(f"There is no member {member}.")
        return self.state["members"][member]

    def lend(self, member: str, tool: str) -> dict:
        """Lend a tool to a member until next week."""
        if self.state["tools"].get(tool) != "in":
            raise ValueError(f"The {tool} cannot be lent.")
        self.state["tools"][tool] = "out"
        self.state["members"][member]["has"].append(tool)
        return {"back_by": "2031-05-21"}

    def take_back(self, member: str, tool: str, broken: bool = False) -> dict:
        """Take a tool back; a broken one goes to repair."""
        self.state["members"][member]["has"].remove(tool)
        self.state["tools"][tool] = "repair" if broken else "in"
        return {"fee": 5 if broken else 0}
