"""Reads graph.rules: who stands on which floor, and the limits."""


class RulesError(Exception):
    pass


class Rules:
    def __init__(self, path):
        self.house = []  # floors of top folders, the highest first
        self.floors = {}  # top folder: its floors of rooms
        self.public_only = set()
        self.open = set()
        self.limits = {}
        self.path = path
        section = None
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.split("#")[0].split()
                if words:
                    section = self.take(line[0].isspace(), words, section, number)
        self.height = {
            room: (-at, top)
            for top, floors in self.floors.items()
            for at, floor in enumerate(floors)
            for room in floor
        }
        self.top_height = {top: -at for at, floor in enumerate(self.house) for top in floor}

    def take(self, inside, words, section, number):
        """One line; returns the list that lines further in belong to."""
        if inside:
            if section is None:
                raise RulesError(f"{self.path}:{number}: a floor outside 'house' and 'floors'")
            section.append(words)
            return section
        if words == ["house"]:
            return self.house
        if words[0] == "floors" and len(words) == 2:
            return self.floors.setdefault(words[1], [])
        if words[0] == "public-only":
            self.public_only.update(words[1:])
        elif words[0] == "open":
            self.open.update(words[1:])
        elif words[0] == "limit" and len(words) == 3 and words[2].isdigit():
            self.limits[words[1]] = int(words[2])
        else:
            raise RulesError(
                f"{self.path}:{number}: expected house, floors FOLDER, public-only FOLDER.., open "
                f"FOLDER.. or limit NAME NUMBER, found '{' '.join(words)}'"
            )
        return None

    def refusal(self, source, target, include=True):
        """Why a file of room source may not use one of room target; None when it may."""
        if source == target:
            return None
        above, below = source.split("/")[0], target.split("/")[0]
        if above == below:
            return self.refusal_by(self.height[source][0], self.height[target][0], source, target)
        closed = below not in self.open and not target.endswith("/public")
        if include and above in self.public_only and closed:
            return f"{above} uses only public headers"
        return self.refusal_by(self.top_height[above], self.top_height[below], above, below)

    @staticmethod
    def refusal_by(source_height, target_height, source, target):
        if source_height > target_height:
            return None
        where = "beside" if source_height == target_height else "above"
        return f"{target} stands {where} {source}"
