import { UnavailableError } from '../../errors.js'

/**
 * A request that was lost with its connection so often, and never applied, will not come through: servers close the
 * connection at a request that is longer than their `jute.maxbuffer`.
 */
const MAX_LOSSES = 16

/** @throws UnavailableError when a request that was not applied was lost too often */
export function checkLosses(losses: number, what: { key: string; engine: string }): void {
  if (losses < MAX_LOSSES) return
  throw new UnavailableError(
    `lost the connection at each of ${losses} attempts; the request may be larger than the server's jute.maxbuffer`,
    what,
  )
}
