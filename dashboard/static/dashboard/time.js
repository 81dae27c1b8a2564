/** Seconds as people read them: "7 s", "2 min 05 s". */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const rest = String(whole % 60).padStart(2, "0");
  return `${Math.floor(whole / 60)} min ${rest} s`;
}

/** The time of day of a Date, to the second. */
export function clock(date) {
  return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
