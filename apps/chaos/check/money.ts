import type { Account, Transfer } from '../history.js'
import type { Finding } from './finding.js'
import { groupedBy } from 'signalbox/engine'

/** Balance of every account before the first transfer. */
export const START_BALANCE = 100

export interface TransferFigures {
  readonly applied: number
  /** Deliveries of transfers that were already done. */
  readonly repeated: number
  readonly refused: number
  /** Transfers with an unknown outcome. */
  readonly unknown: number
}

export function transferFigures(transfers: readonly Transfer[]): TransferFigures {
  const ids = [...groupedBy(transfers, ({ id }) => id).values()]
  const done = ids.filter(isDone).length
  const unknown = ids.filter(mayBeDone).length
  return {
    applied: done,
    repeated: transfers.filter(({ end }) => end === 'repeated').length,
    refused: ids.length - done - unknown,
    unknown,
  }
}

/** Checks that each transfer was done once, that none was lost, and that transfers explain every balance (P13). */
export function checkMoney(
  transfers: readonly Transfer[],
  accounts: Readonly<Record<string, Account>>,
): Finding[] {
  const byId = groupedBy(transfers, ({ id }) => id)
  const names = new Set([...Object.keys(accounts), ...transfers.flatMap(({ from, to }) => [from, to])])
  const findings = [
    ...[...byId].flatMap(([id, deliveries]) => checkDeliveries(id, deliveries)),
    ...[...names].flatMap(name => checkAccount(name, accounts[name], byId)),
  ]
  return findings.map(message => ({ promise: 'P13', message }))
}

function checkDeliveries(id: string, deliveries: readonly Transfer[]): string[] {
  if (deliveries.filter(({ end }) => end === 'applied').length > 1) return [`${id} was done twice`]
  return mayBeDone(deliveries) ? [`whether ${id} was done was not found out`] : []
}

function checkAccount(
  name: string,
  account: Account | undefined,
  byId: ReadonlyMap<string, readonly Transfer[]>,
): string[] {
  if (!account) return [`the balance of account ${name} is missing`]
  const { balance, changes } = account
  const findings: string[] = []
  const known = new Map<number, string>()
  let [sum, count] = [START_BALANCE, 0]
  for (const [id, deliveries] of byId) {
    const { from, to, amount } = deliveries[0]!
    if ((from !== name && to !== name) || !isDone(deliveries)) continue
    sum += to === name ? amount : -amount
    count++
    // Absent if the answer was lost.
    const number = deliveries.find(({ end }) => end === 'applied')?.changes?.[name]
    if (number === undefined) continue
    const other = known.get(number)
    if (other !== undefined) findings.push(`${other} and ${id} both made change ${number} of ${name}`)
    if (number > changes) findings.push(`change ${number} of ${name}, by ${id}, is gone`)
    known.set(number, id)
  }
  if (changes !== count) findings.push(`${name} has ${changes} changes, and ${count} transfers were done`)
  if (balance !== sum) findings.push(`${name} has ${balance}, and the transfers leave it ${sum}`)
  return findings
}

/** Whether an answer confirmed the transfer. */
function isDone(deliveries: readonly Transfer[]): boolean {
  return deliveries.some(({ end }) => end === 'applied' || end === 'repeated')
}

/** Whether the outcome of the transfer is unknown: no answer confirms it, and at least one was lost. */
export function mayBeDone(deliveries: readonly Transfer[]): boolean {
  return !isDone(deliveries) && deliveries.some(({ end }) => end === undefined || end === 'unknown')
}
