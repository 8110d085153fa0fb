"""Small facts that the pair learns by heart. Every list is ours to extend; the generator reads nothing else."""

CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon", "Germany": "Berlin",
    "Austria": "Vienna", "Poland": "Warsaw", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki",
    "Denmark": "Copenhagen", "Iceland": "Reykjavik", "Ireland": "Dublin", "Greece": "Athens", "Hungary": "Budapest",
    "Japan": "Tokyo", "China": "Beijing", "India": "New Delhi", "Thailand": "Bangkok", "Vietnam": "Hanoi",
    "Egypt": "Cairo", "Kenya": "Nairobi", "Ghana": "Accra", "Peru": "Lima", "Chile": "Santiago",
    "Cuba": "Havana", "Canada": "Ottawa", "Mexico": "Mexico City", "Australia": "Canberra", "Nepal": "Kathmandu",
}
OPPOSITES = {
    "hot": "cold", "big": "small", "fast": "slow", "high": "low", "light": "dark", "open": "closed", "wet": "dry",
    "early": "late", "full": "empty", "hard": "soft", "young": "old", "happy": "sad", "left": "right", "up": "down",
    "rich": "poor", "near": "far", "loud": "quiet", "long": "short", "strong": "weak", "clean": "dirty",
}
SOUNDS = {
    "cow": "moos", "dog": "barks", "cat": "meows", "sheep": "bleats", "horse": "neighs", "duck": "quacks",
    "lion": "roars", "frog": "croaks", "bee": "buzzes", "snake": "hisses", "owl": "hoots", "pig": "grunts",
}
LEGS = {
    "spider": 8, "cat": 4, "dog": 4, "bird": 2, "ant": 6, "bee": 6, "horse": 4, "cow": 4, "duck": 2, "crab": 10,
    "snake": 0, "beetle": 6,
}
COLOURS = {
    "grass": "green", "snow": "white", "coal": "black", "blood": "red", "the sky": "blue", "a lemon": "yellow",
    "a carrot": "orange", "chocolate": "brown", "milk": "white", "a frog": "green",
}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December"]
WORDS = """apple bread chair dance eagle flame grape house island jacket kettle lemon mountain night ocean pencil
queen river stone tiger under violet water yellow zebra anchor bridge candle dragon engine forest garden hammer
insect jungle kitchen ladder mirror needle orange pepper rabbit silver table umbrella village window autumn basket
castle desert evening finger guitar honey iron jewel knight lantern market nature oyster planet quiet rocket summer
temple useful valley winter crystal button copper doctor earth feather glass harbor ink juice king leaf magnet nest
oak paper ring salt train uncle voice wheel yard zero barrel cotton donkey elbow fabric gentle hollow""".split()
PAINTS = ["red", "blue", "green", "black", "white", "pink", "grey", "brown", "gold", "purple"]
NAMES = ["Tom", "Anna", "Ben", "Clara", "David", "Emma", "Frank", "Grace", "Henry", "Irene", "Jack", "Lucy"]
THINGS = ["apples", "books", "coins", "eggs", "stamps", "shells", "pens", "cards", "stones", "cups"]
