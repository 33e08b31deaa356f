import { UnavailableError } from 'signalbox'

/**
 * Maximum number of times that a request is sent if it is lost with its connection and not applied. Servers close the
 * connection at a request that is longer than their `jute.maxbuffer`.
 */
const MAX_LOSSES = 16

/** @throws UnavailableError if a request that was not applied was lost too often */
export function checkLosses(losses: number, what: { key: string; engine: string }): void {
  if (losses < MAX_LOSSES) return
  throw new UnavailableError(
    `lost the connection at each of ${losses} attempts; the request may be larger than the server's jute.maxbuffer`,
    what,
  )
}
