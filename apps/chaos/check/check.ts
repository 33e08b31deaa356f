import type { History } from '../history.js'
import type { Finding } from './finding.js'
import { checkLocks } from './locks.js'
import { checkLosses } from './losses.js'
import { checkMoney, transferFigures, type TransferFigures } from './money.js'
import { checkOrder } from './order.js'
import { checkRecovery, recoveries, type Recovery } from './recovery.js'
import { checkStore } from './store.js'
import { checkTimes } from './times.js'
import { troublesOf } from './troubles.js'
import { checkUpdates, updateFigures, type UpdateFigures } from './updates.js'

/** The result of checking a history. */
export interface Verdict {
  /** Empty if every promise was kept. */
  readonly findings: readonly Finding[]
  readonly grants: number
  readonly fenced: UpdateFigures
  readonly unfenced: UpdateFigures
  readonly transfers: TransferFigures
  readonly storeCalls: number
  readonly recoveries: readonly Recovery[]
  /** Number of pairs of requests whose order of arrival was compared with that of their grants (P4). */
  readonly orders: number
  /** Number of keys for which the search for an order was abandoned. */
  readonly undecided: number
}

/** Checks a history against the promises. */
export function check(history: History): Verdict {
  const { requests, updates, transfers, calls, accounts = {}, escapes } = history
  const troubles = troublesOf(history)
  const locks = checkLocks(history)
  const order = checkOrder(history, troubles)
  const store = checkStore(calls)
  return {
    findings: [
      ...checkTimes(history),
      ...locks.findings,
      ...order.findings,
      ...checkLosses(history, troubles),
      ...checkUpdates(history),
      ...checkMoney(transfers, accounts),
      ...store.findings,
      ...checkRecovery(history),
      ...escapes.map(message => ({ promise: 'P10' as const, message })),
    ],
    grants: requests.filter(({ granted }) => granted !== undefined).length,
    fenced: updateFigures(updates.filter(({ fenced }) => fenced)),
    unfenced: updateFigures(updates.filter(({ fenced }) => !fenced)),
    transfers: transferFigures(transfers),
    storeCalls: calls.length,
    recoveries: recoveries(history),
    orders: order.orders,
    undecided: locks.undecided + store.undecided,
  }
}
