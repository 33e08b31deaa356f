import type { Guarantees, Weakness } from '../../../guarantees.js'

const RESTARTED: Weakness = {
  promise: 'P1',
  how:
    'A server that loses its data (restarted without it, or a replica promoted too early) can vote a second time ' +
    'within a lease. If enough servers do, two can hold one lock until the first finds out at its next renewal. If ' +
    'a server lives on beside its promoted replica, two can hold the lock for as long as it renews its vote. Tokens ' +
    'rise all the same, so fenced resources are safe. One permit of a semaphore too many can be given when ' +
    'different servers are out of reach in turn within a lease.',
}
const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how: "Tokens fall when a majority of the servers lost their data and the clients' wall clocks were set back.",
}
const CLIENT_CLOCKS: Weakness = {
  promise: 'P4',
  how:
    'Boxes queue in the order of the wall clocks of their processes, which follow each other from their first ' +
    'answer on. A process whose clock is behind can come in before callers that asked shortly before its first ' +
    'request.',
}
const LATE_SERVERS: Weakness = {
  promise: 'P5',
  how:
    'A server whose vote a grant did not need hears of it some milliseconds later, or when it is back. Until then ' +
    'it may wake a waiter for several keys when one of them is free. The waiter looks, and waits on.',
}
const SERVER_CLOCKS: Weakness = {
  promise: 'P11',
  how:
    'Leases run by the wall clock of each server. When those of a majority are set forward by more than a lease, ' +
    'locks are free early, and the holder finds out at its next renewal.',
}
const NO_VALUES: Weakness = {
  promise: 'P13',
  how:
    'It keeps locks only. Stores and transactions are refused with an InvalidArgumentError, because independent ' +
    'servers can lose a value that a majority of them had.',
}

/** What locks over a quorum of Redis servers promise. */
export const quorumGuarantees: Guarantees = {
  engine: 'redis-quorum',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'none',
  weaknesses: [RESTARTED, NUMBERS_LOST, CLIENT_CLOCKS, LATE_SERVERS, SERVER_CLOCKS, NO_VALUES],
}
