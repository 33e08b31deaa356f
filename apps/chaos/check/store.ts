import type { StoreCall } from '../history.js'
import type { Finding } from './finding.js'
import { grouped } from './grouped.js'
import { linearizable } from './linearizable.js'
import { storeOperations } from './store-history.js'

/** Whether calls of each key have an order that explains them, and no version was used twice (P13). */
export function checkStore(calls: readonly StoreCall[]): { findings: Finding[]; undecided: number } {
  const findings: Finding[] = []
  let undecided = 0
  for (const [key, ofKey] of grouped(calls, call => call.key)) {
    const answer = linearizable('', storeOperations(ofKey))
    if (answer === 'undecided') undecided++
    if (answer === 'no')
      findings.push({ promise: 'P13', message: `no order of the calls explains what was read of ${key}` })
    const values = new Map<number, string>()
    for (const { value = '', version = 0, end } of ofKey) {
      if (end !== 'done') continue
      if ((values.get(version) ?? value) !== value)
        findings.push({ promise: 'P13', message: `version ${version} of ${key} stood for two values` })
      values.set(version, value)
    }
  }
  return { findings, undecided }
}
