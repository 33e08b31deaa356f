import type { Guarantees, Weakness } from '../../../guarantees.js'

const RESTARTED: Weakness = {
  promise: 'P1',
  how: 'A server that loses what it had (restarted without its data, or a replica promoted too early) can vote a second time within a lease. When as many did as are lacking from its votes to a minority, two can hold one lock until the first finds out at its next renewal, or, where a server lives on whose replica was promoted, for as long as that one renews its vote. Tokens rise all the same, so fenced resources are safe. The same holds for permits of a semaphore when different servers are out of reach in turn within a lease.',
}
const NUMBERS_LOST: Weakness = {
  promise: 'P2',
  how: "Tokens fall when a majority of the servers lost their data and the clients' wall clocks were set back.",
}
const CLIENT_CLOCKS: Weakness = {
  promise: 'P4',
  how: 'Boxes stand in the queues in the order of the wall clocks of their processes, which follow each other from their first answer on. A process whose clock is behind can come in before those who asked shortly before its first request.',
}
const LATE_SERVERS: Weakness = {
  promise: 'P5',
  how: 'A server whose vote a grant did not need hears of it some milliseconds later, or when it is back. Until then it may wake who waits for several keys when one of them is free: that one looks, and waits on.',
}
const SERVER_CLOCKS: Weakness = {
  promise: 'P11',
  how: 'Leases run by the wall clock of each server. When those of a majority are set forward by more than a lease, what is held is free early, and its holder finds out at its next renewal.',
}
const NO_VALUES: Weakness = {
  promise: 'P13',
  how: 'Keeps locks only: stores and transactions are refused with an InvalidArgumentError, because servers that know nothing of each other can lose a value that a majority of them had.',
}

/** What locks over a quorum of Redis servers promise. */
export const quorumGuarantees: Guarantees = {
  engine: 'redis-quorum',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'none',
  weaknesses: [RESTARTED, NUMBERS_LOST, CLIENT_CLOCKS, LATE_SERVERS, SERVER_CLOCKS, NO_VALUES],
}
