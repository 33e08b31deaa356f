import type { Guarantees, Weakness } from 'signalbox'

const RESTARTED: Weakness = {
  promise: 'P1',
  how:
    'A server that loses its data (because it restarts without it, or a replica is promoted too early) can ' +
    'vote twice within a lease. If enough servers vote twice, two clients can hold the same lock until the ' +
    "first client's next renewal fails. If a server keeps running after its replica was promoted, two " +
    'clients can hold the lock for as long as that server renews its vote. Tokens still increase, so ' +
    'resources that check tokens are safe. A semaphore can grant one permit too many if different servers ' +
    'become unreachable one after another within a lease.',
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
    "Requests are queued in the order of their processes' wall clocks. A process whose clock is behind " +
    'corrects this with its first reply. Until then, it can get ahead of callers that asked shortly before ' +
    'its first request.',
}
const LATE_SERVERS: Weakness = {
  promise: 'P5',
  how:
    'A server whose vote was not needed for a grant learns about the grant some milliseconds later, or ' +
    'when it is reachable again. Until then, it may wake a waiter for several keys although only one of ' +
    'them is free. The waiter checks, and continues to wait.',
}
const SERVER_CLOCKS: Weakness = {
  promise: 'P11',
  how:
    'Leases are measured by the wall clock of each server. If a majority of these clocks are set forward ' +
    'by more than a lease, locks are freed early, and the holder finds out at its next renewal.',
}
const NO_VALUES: Weakness = {
  promise: 'P13',
  how:
    'Only locks are supported. Stores and transactions are refused with an InvalidArgumentError, because ' +
    'independent servers can lose a value that a majority of them had.',
}

/** The promises of locks over a quorum of Redis servers. */
export const quorumGuarantees: Guarantees = {
  engine: 'redis-quorum',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'none',
  weaknesses: [RESTARTED, NUMBERS_LOST, CLIENT_CLOCKS, LATE_SERVERS, SERVER_CLOCKS, NO_VALUES],
}
