import type { Alive, SignOutcome } from '../contract.js'

/** The answer to a sign of life of an engine that keeps none: each request has to check in. */
export function allDue({ requests }: Alive): SignOutcome {
  return { due: requests.map(({ id }) => id), next: Infinity }
}
