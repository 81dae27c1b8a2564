"""What limits and priorities may be, and how that is said."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _

from inference.messages import HIGHEST, LOWEST

PRIORITY_RANGE = (MinValueValidator(HIGHEST), MaxValueValidator(LOWEST))
PRIORITY_HELP = _("The lower number goes first: -1 is high, 0 normal, 1 low.")
PRIORITY_WORDS = (_("high"), _("normal"), _("low"))  # translations of `messages.priority_name`
AT_LEAST_ONE = (MinValueValidator(1),)
