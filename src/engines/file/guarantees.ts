import type { Guarantees, Weakness } from '../../base/guarantees.js'

const OFF_LINUX: Weakness = {
  promise: 'P9',
  how:
    'On macOS, the engine cannot prove that a process is dead, so its locks are freed when their leases ' +
    'expire.',
}
const STOPPED_INSIDE: Weakness = {
  promise: 'P9',
  how:
    'A process that is stopped (not killed) in the middle of a write transaction blocks the database. ' +
    'Other processes wait until it continues or dies. After 10 s, their operations fail with an ' +
    'UnavailableError.',
}
const NOT_DURABLE: Weakness = {
  promise: 'P13',
  how: 'With durable=false, a power failure can lose the newest commits. A process crash loses none.',
}

/** Returns the guarantees of the file engine on this system. */
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
