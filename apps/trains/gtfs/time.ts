const TIME = /^(\d{1,3}):([0-5]\d):([0-5]\d)$/

/**
 * Returns the seconds after the start of the service day for a time such as `7:05:00`, `07:05:00` or, past midnight,
 * `25:10:00`; undefined if it is invalid.
 */
export function secondsOf(time: string): number | undefined {
  const match = TIME.exec(time)
  if (!match) return undefined
  return Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3])
}
