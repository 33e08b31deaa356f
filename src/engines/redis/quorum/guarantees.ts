import type { Guarantees, Weakness } from '../../../guarantees.js'

const RESTARTED: Weakness = {
  promise: 'P1',
  how:
    'A server that loses its data (restarted without it, or a replica promoted too early) can vote twice ' +
    "within a lease. If enough servers do, two clients can hold the same lock until the first one's next " +
    'renewal fails. If a server keeps running after its replica was promoted, two clients can hold the ' +
    'lock for as long as that server renews its vote. Tokens still increase, so fenced resources are ' +
    'safe. A semaphore can grant one permit too many if different servers become unreachable in turn ' +
    'within a lease.',
}
const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how:
    "Tokens decrease if a majority of the servers lost their data and the clients' wall clocks were set " +
    'back.',
}
const CLIENT_CLOCKS: Weakness = {
  promise: 'P4',
  how:
    "Boxes queue in the order of their processes' wall clocks, which are adjusted to each other from the " +
    'first reply on. A process whose clock is behind can get ahead of callers that asked shortly before ' +
    'its first request.',
}
const LATE_SERVERS: Weakness = {
  promise: 'P5',
  how:
    'A server whose vote a grant did not need learns of the grant some milliseconds later, or when it is ' +
    'reachable again. Until then it may wake a waiter for several keys when only one of them is free. The ' +
    'waiter checks, and waits on.',
}
const SERVER_CLOCKS: Weakness = {
  promise: 'P11',
  how:
    'Leases run on the wall clock of each server. If those of a majority are set forward by more than a ' +
    'lease, locks are freed early, and the holder finds out at its next renewal.',
}
const NO_VALUES: Weakness = {
  promise: 'P13',
  how:
    'Only locks are supported. Stores and transactions are refused with an InvalidArgumentError, because ' +
    'independent servers can lose a value that a majority of them had.',
}

/** What locks over a quorum of Redis servers promise. */
export const quorumGuarantees: Guarantees = {
  engine: 'redis-quorum',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'none',
  weaknesses: [RESTARTED, NUMBERS_LOST, CLIENT_CLOCKS, LATE_SERVERS, SERVER_CLOCKS, NO_VALUES],
}
