import type { StoreCall } from '../history.js'
import type { Finding } from './finding.js'
import { groupedBy } from 'signalbox/engine'
import { linearizable } from './linearizable.js'
import { storeOperations } from './store-history.js'

/** Checks that an order explains the calls of each key, and that each value had its own version (P13). */
export function checkStore(calls: readonly StoreCall[]): { findings: Finding[]; undecided: number } {
  const findings: string[] = []
  let undecided = 0
  for (const [key, ofKey] of groupedBy(calls, call => call.key)) {
    const answer = linearizable('', storeOperations(ofKey))
    if (answer === 'undecided') undecided++
    if (answer === 'no') findings.push(`no order of the calls explains what was read of ${key}`)
    findings.push(...checkVersions(key, ofKey))
  }
  return { findings: findings.map(message => ({ promise: 'P13', message })), undecided }
}

function checkVersions(key: string, calls: readonly StoreCall[]): string[] {
  const findings: string[] = []
  // An absent value has version 0.
  const values = new Map([[0, '']])
  const versions = new Map([['', 0]])
  for (const { value = '', version = 0, end } of calls) {
    if (end !== 'done') continue
    const [itsValue, itsVersion] = [values.get(version) ?? value, versions.get(value) ?? version]
    if (itsValue !== value) findings.push(`version ${version} of ${key} stood for two values`)
    if (itsVersion !== version)
      findings.push(`one value of ${key} had two versions, ${itsVersion} and ${version}`)
    values.set(version, value)
    versions.set(value, version)
  }
  return findings
}
