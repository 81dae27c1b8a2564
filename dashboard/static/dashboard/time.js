import { number } from "./numbers.js";
import { locale } from "./words.js";

const two = (n) => String(n).padStart(2, "0");

/** Seconds as people read them: "7 s", "2 min 05 s", "3 h 07 min". */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(whole / 60);
  if (!minutes) return `${whole} s`;
  if (minutes < 60) return `${minutes} min ${two(whole % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

const times = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** The time of day of a Date, to the second, as in logs. */
export const clock = (date) => times.format(date);

/** Bytes as people read them: "340 KiB", "3.4 MiB". */
export function bytes(n) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  const i = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  const value = n / 1024 ** i;
  return `${number(value, value < 10 && i ? 1 : 0)} ${units[i]}`;
}
