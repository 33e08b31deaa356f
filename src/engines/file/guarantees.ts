import type { Guarantees, Weakness } from '../../guarantees.js'

const OFF_LINUX: Weakness = {
  promise: 'P9',
  how: 'On macOS nothing proves a process dead, so its locks are free when their leases are over.',
}
const STOPPED_INSIDE: Weakness = {
  promise: 'P9',
  how:
    'A process that is stopped (not killed) in the middle of a write transaction keeps the database. Others wait ' +
    'until it goes on or dies, and after 10 s their operations are refused with an UnavailableError.',
}
const NOT_DURABLE: Weakness = {
  promise: 'P13',
  how: 'Opened with durable=false, so a power cut can lose the newest commits. A crash of processes loses none.',
}

/** What the file engine promises here. */
export function fileGuarantees(durable: boolean): Guarantees {
  const linux = process.platform === 'linux'
  return {
    engine: 'file',
    scope: 'machine',
    deadHolder: linux ? 'at once' : 'lease',
    durability: durable ? 'power loss' : 'process crash',
    weaknesses: [STOPPED_INSIDE, ...(linux ? [] : [OFF_LINUX]), ...(durable ? [] : [NOT_DURABLE])],
  }
}
