import type { Update } from '../history.js'
import type { Finding } from './finding.js'

/** What became of the increments of one kind of register. */
export interface UpdateFigures {
  readonly accepted: number
  readonly refused: number
  /** Increments of others that an accepted one wrote over. */
  readonly lost: number
}

export function updateFigures(updates: readonly Update[]): UpdateFigures {
  const accepted = updates.filter(update => update.accepted)
  return {
    accepted: accepted.length,
    refused: updates.length - accepted.length,
    lost: accepted.filter(({ read, found }) => found !== read).length,
  }
}

/** Whether the resource that refuses old tokens lost an increment (P2). */
export function checkUpdates(updates: readonly Update[]): Finding[] {
  return updates
    .filter(({ fenced, accepted, read, found }) => fenced && accepted && read !== found)
    .map(({ who, key, token, read, found }) => ({
      promise: 'P2',
      message: `${who} with token ${token!} wrote over what it had not read: ${key} was ${found}, not ${read}`,
    }))
}
