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

/** Bytes as people read them: "340 KiB", "3.4 MiB". */
export function bytes(n) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  const i = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  const value = n / 1024 ** i;
  return `${value.toFixed(value < 10 && i ? 1 : 0)} ${units[i]}`;
}
