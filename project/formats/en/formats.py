"""Times to the second, as in logs and in lists; days in the one order that is read alike everywhere."""

DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s"
SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATE_FORMAT = "j F Y"
