import type { Account, Transfer } from '../history.js'
import type { Finding } from './finding.js'
import { grouped } from './grouped.js'

/** What every account has before the first transfer. */
export const START_BALANCE = 100

export interface TransferFigures {
  readonly applied: number
  /** Deliveries that found their transfer done. */
  readonly repeated: number
  readonly refused: number
  /** Transfers of which nobody knows by their answers alone whether they were done. */
  readonly unknown: number
}

export function transferFigures(transfers: readonly Transfer[]): TransferFigures {
  const ids = [...grouped(transfers, ({ id }) => id).values()]
  const done = ids.filter(isDone).length
  const unknown = ids.filter(mayBeDone).length
  return {
    applied: done,
    repeated: transfers.filter(({ end }) => end === 'repeated').length,
    refused: ids.length - done - unknown,
    unknown,
  }
}

/** Whether transfers were done once each, none was lost, and all money is there (P13). */
export function checkMoney(
  transfers: readonly Transfer[],
  accounts: Readonly<Record<string, Account>>,
): Finding[] {
  const findings: string[] = []
  const all = Object.values(accounts)
  const sum = all.reduce((total, { balance }) => total + balance, 0)
  if (sum !== all.length * START_BALANCE)
    findings.push(`the accounts have ${sum} together, and began with ${all.length * START_BALANCE}`)
  const byId = grouped(transfers, ({ id }) => id)
  for (const [id, deliveries] of byId) {
    if (deliveries.filter(({ end }) => end === 'applied').length > 1) findings.push(`${id} was done twice`)
  }
  for (const [name, { changes }] of Object.entries(accounts)) {
    const known = new Map<number, string>()
    let unknown = 0
    for (const [id, deliveries] of byId) {
      if (!touches(deliveries[0]!, name)) continue
      const number = deliveries.find(({ end }) => end === 'applied')?.changes?.[name]
      if (number === undefined) {
        // One of those whose answers were lost; what was found done was done once.
        if (isDone(deliveries) || mayBeDone(deliveries)) unknown++
        continue
      }
      const other = known.get(number)
      if (other !== undefined) findings.push(`${other} and ${id} both made change ${number} of ${name}`)
      if (number > changes) findings.push(`change ${number} of ${name}, by ${id}, is gone`)
      known.set(number, id)
    }
    const surely = [...byId.values()].filter(one => touches(one[0]!, name) && isDone(one)).length
    if (changes < surely) findings.push(`${name} has ${changes} changes, and ${surely} were confirmed`)
    if (changes > known.size + unknown)
      findings.push(
        `${name} has ${changes} changes, more than the ${known.size + unknown} that were asked for`,
      )
  }
  return findings.map(message => ({ promise: 'P13', message }))
}

function touches({ from, to }: Transfer, name: string): boolean {
  return from === name || to === name
}

function isDone(deliveries: readonly Transfer[]): boolean {
  return deliveries.some(({ end }) => end === 'applied' || end === 'repeated')
}

function mayBeDone(deliveries: readonly Transfer[]): boolean {
  return !isDone(deliveries) && deliveries.some(({ end }) => end === undefined || end === 'unknown')
}
