import type { Reply } from './clients/connection.js'

/** The time in the answer to `TIME`: milliseconds since 1970. */
export function timeOf(answer: Reply): number {
  const [seconds, micros] = answer as readonly string[]
  return Number(seconds) * 1000 + Number(micros) / 1000
}
