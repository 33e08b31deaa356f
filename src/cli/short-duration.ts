const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A number of milliseconds in the two greatest units that it has: `450ms`, `12.3s`, `5m 3s`, `2h 10m`, `3d 4h`. */
export function shortDuration(milliseconds: number): string {
  const whole = Math.round(milliseconds)
  if (whole < SECOND) return `${whole}ms`
  // What would be rounded to 60.0s is a minute.
  if (whole < MINUTE - 50) return `${(whole / SECOND).toFixed(1)}s`
  const seconds = Math.round(whole / SECOND) * SECOND
  if (seconds < HOUR) return pair(seconds, MINUTE, 'm', SECOND, 's')
  return seconds < DAY ? pair(seconds, HOUR, 'h', MINUTE, 'm') : pair(seconds, DAY, 'd', HOUR, 'h')
}

function pair(value: number, great: number, greatUnit: string, small: number, smallUnit: string): string {
  return `${Math.floor(value / great)}${greatUnit} ${Math.floor((value % great) / small)}${smallUnit}`
}
