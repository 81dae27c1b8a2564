"""What limits and priorities may be, and how that is said."""

from django.core.validators import MaxValueValidator, MinValueValidator

from inference.messages import HIGHEST, LOWEST

PRIORITY_RANGE = (MinValueValidator(HIGHEST), MaxValueValidator(LOWEST))
PRIORITY_HELP = "The lower number goes first: -1 is high, 0 normal, 1 low."
AT_LEAST_ONE = (MinValueValidator(1),)
