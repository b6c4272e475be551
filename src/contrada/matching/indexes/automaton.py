"""Many words found in a text in one pass (Aho and Corasick 1975)."""

from collections import deque
from collections.abc import Mapping, Sequence


class Automaton:
    """States are beginnings of words, the empty one first.

    `outputs[state]` are the numbers of the word that a state is, if it is one. The other words in
    which it ends are those of the states on its chain of `shorter` ones, each of which is a word;
    state 0 ends the chain.
    """

    def __init__(self, words: Mapping[str, Sequence[int]]) -> None:
        """Build the states of some words, each with its numbers."""
        self._next: list[dict[str, int]] = [{}]
        self.outputs: list[Sequence[int]] = [()]
        for word, numbers in words.items():
            self.outputs[self._insert(word)] = numbers
        self._fallback = [0] * len(self._next)
        self.shorter = [0] * len(self._next)
        self._link()

    def _insert(self, word: str) -> int:
        state = 0
        for letter in word:
            if letter not in self._next[state]:
                self._next[state][letter] = len(self._next)
                self._next.append({})
                self.outputs.append(())
            state = self._next[state][letter]
        return state

    def _link(self) -> None:
        """Point from each state to the longest one that it ends in, and the longest word."""
        pending = deque(self._next[0].values())
        while pending:
            state = pending.popleft()
            back = self._fallback[state]
            self.shorter[state] = back if self.outputs[back] else self.shorter[back]
            for letter, follower in self._next[state].items():
                pending.append(follower)
                self._fallback[follower] = self._follow(back, letter)

    def _follow(self, state: int, letter: str) -> int:
        while state and letter not in self._next[state]:
            state = self._fallback[state]
        return self._next[state].get(letter, 0)

    def find(self, text: str) -> set[int]:
        """Find the numbers of all words in a text; a chain walked once is not walked again."""
        found = set(self.outputs[0])
        seen: set[int] = set()
        state = 0
        for letter in text:
            state = self._follow(state, letter)
            word = state
            while word and word not in seen:
                seen.add(word)
                found.update(self.outputs[word])
                word = self.shorter[word]
        return found
