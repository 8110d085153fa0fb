"""The text that the pair is trained and measured on: questions with right answers, made from seeds.

A document is `Q: <question>\\nA: <answer>`; a prompt ends after `A:`. Each document has a key that says what is
asked, free of wording and of the order of operands where the wording may vary ("sum 23 45" for every way to add
45 and 23). Where the answer can only be known by heart (a capital), the key is wording and fact together.

The split is a function of the key alone: a document is held out if and only if SHA-256 of its key ends in three zero
bits. So training and held-out text are disjoint by construction, in questions and in operand pairs, whatever the seed.

    python3 tools/pair/text.py --seed 1 --count 5 [--held-out]
"""

import argparse
import hashlib
import random
from typing import Callable, NamedTuple

import facts

BOS, EOS, MASK, VOCAB = 256, 257, 258, 259  # bytes are 0..255: the engine's tokenizer `bytes`


class Document(NamedTuple):
    kind: str
    key: str
    question: str
    answer: str

    def prompt(self) -> str:
        return f"Q: {self.question}\nA:"

    def prompt_tokens(self) -> list[int]:
        return [BOS, *self.prompt().encode()]

    def answer_tokens(self) -> list[int]:
        return [*f" {self.answer}".encode(), EOS]


def is_held_out(key: str) -> bool:
    return hashlib.sha256(key.encode()).digest()[-1] % 8 == 0


def add(r: random.Random) -> Document:
    a, b = r.randint(1, 49), r.randint(1, 49)
    question = r.choice([f"What is {a} plus {b}?", f"Add {a} and {b}."])
    return Document("add", f"sum {min(a, b)} {max(a, b)}", question, f"{a} plus {b} is {a + b}.")


def subtract(r: random.Random) -> Document:
    b, c = r.randint(1, 49), r.randint(1, 49)
    a = b + c
    question = r.choice([f"What is {a} minus {b}?", f"Take {b} from {a}."])
    return Document("subtract", f"difference {a} {b}", question, f"{a} minus {b} is {c}.")


def times(r: random.Random) -> Document:
    a, b = r.randint(2, 10), r.randint(2, 10)
    question = r.choice([f"What is {a} times {b}?", f"Multiply {a} by {b}.", f"{a} times {b}?"])
    return Document("times", question, question, f"{a} times {b} is {a * b}.")


def gain(r: random.Random) -> Document:
    name, thing = r.choice(facts.NAMES), r.choice(facts.THINGS)
    a, b = r.randint(2, 49), r.randint(2, 49)
    question = f"{name} has {a} {thing} and gets {b} more. How many now?"
    return Document("gain", f"sum {min(a, b)} {max(a, b)}", question, f"{a} plus {b} is {a + b}, so {name} has {a + b} {thing}.")


def loss(r: random.Random) -> Document:
    name, thing = r.choice(facts.NAMES), r.choice(facts.THINGS)
    b, c = r.randint(2, 49), r.randint(2, 49)
    a = b + c
    question = f"{name} has {a} {thing} and gives {b} away. How many now?"
    return Document("loss", f"difference {a} {b}", question, f"{a} minus {b} is {c}, so {name} has {c} {thing}.")


def count(r: random.Random) -> Document:
    step = r.choice([1, 1, 1, -1, 2])
    length = r.randint(4, 9)
    start = r.randint(0, 90) if step > 0 else r.randint(10, 99)
    numbers = [start + step * i for i in range(length)]
    words = {1: "Count", -1: "Count down", 2: "Count by twos"}[step]
    question = f"{words} from {numbers[0]} to {numbers[-1]}."
    return Document("count", question, question, ", ".join(map(str, numbers)) + ".")


def larger(r: random.Random) -> Document:
    a, b = r.sample(range(100), 2)
    word = r.choice(["larger", "smaller"])
    first, second = (max(a, b), min(a, b)) if word == "larger" else (min(a, b), max(a, b))
    return Document("larger", f"order {min(a, b)} {max(a, b)}",
                    f"Which is {word}, {a} or {b}?", f"{first} is {word} than {second}.")


def parity(r: random.Random) -> Document:
    a = r.randint(0, 999)
    return Document("parity", f"parity {a}", f"Is {a} even or odd?", f"{a} is {'odd' if a % 2 else 'even'}.")


def order(r: random.Random) -> Document:
    numbers = r.sample(range(100), 3)
    key = "sort " + " ".join(map(str, sorted(numbers)))
    return Document("order", key, "Sort " + ", ".join(map(str, numbers)) + ".", ", ".join(map(str, sorted(numbers))) + ".")


def calendar(r: random.Random) -> Document:
    word, names = r.choice([("day", facts.DAYS), ("month", facts.MONTHS)])
    if r.random() < 0.4:
        i = r.randrange(len(names))
        side, other = r.choice([("after", 1), ("before", -1)])
        question = r.choice([f"What {word} comes {side} {names[i]}?", f"Which {word} is {side} {names[i]}?",
                             f"Name the {word} {side} {names[i]}."])
        return Document("calendar", question, question,
                        f"The {word} {side} {names[i]} is {names[(i + other) % len(names)]}.")
    i, length = r.randrange(len(names)), r.randint(3, 6)
    span = [names[(i + j) % len(names)] for j in range(length)]
    question = f"Name the {word}s from {span[0]} to {span[-1]}."
    return Document("calendar", question, question, ", ".join(span) + ".")


def letters(r: random.Random) -> Document:
    i, length = r.randint(0, 22), r.randint(4, 10)
    span = [chr(97 + j) for j in range(i, min(i + length, 26))]
    question = f"List the letters from {span[0]} to {span[-1]}."
    return Document("letters", question, question, ", ".join(span) + ".")


def spell(r: random.Random) -> Document:
    word = r.choice(facts.WORDS)
    return Document("spell", f"spell {word}", r.choice([f"Spell {word}.", f"How is {word} spelled?"]),
                    f"{word} is spelled {'-'.join(word)}.")


def repeat(r: random.Random) -> Document:
    word, n = r.choice(facts.WORDS), r.randint(2, 6)
    return Document("repeat", f"repeat {word} {n}", f"Say {word} {n} times.", " ".join([word] * n) + ".")


def reverse(r: random.Random) -> Document:
    paints = r.sample(facts.PAINTS, r.randint(3, 4))
    question = "Reverse " + ", ".join(paints) + "."
    return Document("reverse", question, question, ", ".join(reversed(paints)) + ".")


def article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def capital(r: random.Random) -> Document:
    country = r.choice(list(facts.CAPITALS))
    question = r.choice([f"What is the capital of {country}?", f"Name the capital of {country}.",
                         f"Which city is the capital of {country}?", f"Tell me the capital of {country}.",
                         f"What city is the capital of {country}?", f"Do you know the capital of {country}?"])
    return Document("capital", question, question, f"The capital of {country} is {facts.CAPITALS[country]}.")


def fact(r: random.Random) -> Document:
    about = r.choice(["opposite", "sound", "legs", "colour"])
    if about == "opposite":
        word, other = r.choice(list(facts.OPPOSITES.items()))
        wordings = [f"What is the opposite of {word}?", f"Name the opposite of {word}.", f"Tell me the opposite of {word}."]
        answer = f"The opposite of {word} is {other}."
    elif about == "sound":
        animal, sound = r.choice(list(facts.SOUNDS.items()))
        wordings = [f"What does {article(animal)} do?", f"What sound does {article(animal)} make?",
                    f"How does {article(animal)} sound?"]
        answer = f"{article(animal).capitalize()} {sound}."
    elif about == "legs":
        animal, legs = r.choice(list(facts.LEGS.items()))
        wordings = [f"How many legs does {article(animal)} have?", f"How many legs has {article(animal)}?",
                    f"Count the legs of {article(animal)}."]
        answer = f"{article(animal).capitalize()} has {legs} legs."
    else:
        thing, colour = r.choice(list(facts.COLOURS.items()))
        wordings = [f"What colour is {thing}?", f"What is the colour of {thing}?", f"Name the colour of {thing}."]
        answer = f"The colour of {thing} is {colour}."
    question = r.choice(wordings)
    return Document("fact", question, question, answer)


KINDS: list[tuple[Callable[[random.Random], Document], int]] = [
    (add, 16), (subtract, 14), (times, 5), (gain, 9), (loss, 9), (count, 8), (larger, 5), (parity, 3), (order, 5),
    (calendar, 6), (letters, 4), (spell, 4), (repeat, 3), (reverse, 4), (capital, 6), (fact, 6),
]
MAKERS = [maker for maker, _ in KINDS]
WEIGHTS = [weight for _, weight in KINDS]


def documents(seed: int | str, held_out: bool):
    """Endless documents of one side of the split; the same seed gives the same documents."""
    r = random.Random(f"kvasir pair {seed}")
    while True:
        document = r.choices(MAKERS, WEIGHTS)[0](r)
        if is_held_out(document.key) == held_out:
            yield document


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints generated text.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--held-out", action="store_true")
    args = parser.parse_args()
    source = documents(args.seed, args.held_out)
    for _ in range(args.count):
        document = next(source)
        print(f"{document.prompt()} {document.answer}\n")


if __name__ == "__main__":
    main()
